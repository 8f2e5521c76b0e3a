"""Ctrl-C at every moment: exit code 130, one line, no traceback, and the last good checkpoint loads (case 71)."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import gradcore
from gradexamples import mnist, mnist_data

Run = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


def press(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


def assert_interrupted(result: Result) -> None:
    assert result.exit_code == 130
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Interrupted")
    assert "Traceback" not in result.output


@pytest.fixture
def press_at_call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Press Ctrl-C inside call number `number` of a function, after the function did its work."""

    def arrange(owner: object, name: str, number: int, times: int = 1) -> None:
        original, calls = getattr(owner, name), []

        def pressing(*arguments: object, **options: object) -> object:
            result = original(*arguments, **options)
            calls.append(name)
            if len(calls) == number:
                press(times)
                time.sleep(0.01)
            return result

        monkeypatch.setattr(owner, name, pressing)

    return arrange


@pytest.mark.parametrize(
    ("owner", "name", "number", "kept"),
    [
        (mnist_data, "load", 1, 0),  # data just read
        (mnist, "count_right", 1, 0),  # the first batch
        (mnist, "count_right", 3, 0),  # mid-epoch
        (mnist, "count_right", 8, 1),  # mid-epoch, one epoch saved
        (mnist, "outputs_of", 1, 0),  # during an evaluation
        (mnist, "outputs_of", 2, 1),
        (mnist, "report", 1, 3),  # all done
    ],
)
def test_one_line_and_the_last_good_checkpoint(
    run: Run, tiny: Path, press_at_call: Callable[..., None], owner: object, name: str, number: int, kept: int
) -> None:
    path = tiny / "run.safetensors"
    press_at_call(owner, name, number)
    # without a graph, whose steps would not come by here
    result = run("mnist", "--data-dir", tiny, "--epochs", 3, "--checkpoint", path, "--no-graph")
    assert_interrupted(result)
    assert path.exists() == (kept > 0)
    if kept:
        assert gradcore.load_checkpoint(path, model=mnist.network())["epoch"] == str(kept)
    if 0 < kept < 3:
        assert f"holds epoch {kept}" in result.stderr


@pytest.mark.parametrize("times", [1, 2, 5])
def test_during_a_save(run: Run, tiny: Path, press_at_call: Callable[..., None], times: int) -> None:
    """The save is finished first, however often the keys are pressed."""
    path = tiny / "run.safetensors"
    press_at_call(gradcore.io, "_named", 2, times)  # the second save is being prepared
    result = run("mnist", "--data-dir", tiny, "--epochs", 3, "--checkpoint", path)
    assert_interrupted(result)
    assert gradcore.load_checkpoint(path, model=mnist.network())["epoch"] == "2"
    left = sorted(entry.name for entry in tiny.iterdir())
    assert left == ["MNIST", "run.safetensors"], "no temporary file"


def test_xor_too(run: Run, tmp_path: Path, press_at_call: Callable[..., None]) -> None:
    press_at_call(gradcore, "save_checkpoint", 2)
    path = tmp_path / "run.safetensors"
    result = run("xor", "--checkpoint", path)
    assert_interrupted(result)
    assert "holds epoch 200" in result.stderr


@pytest.mark.parametrize("command", ["mnist", "xor"])
def test_the_process_itself(start: Start, tiny: Path, command: str, backend: str) -> None:
    """A real process, twice in quick succession, gone within a second or so, with its children."""
    data = ("--data-dir", tiny) if command == "mnist" else ()
    process = start(
        command, *data, "--epochs", 10_000_000, "--backend", backend, "--checkpoint", tiny / "run.safetensors"
    )
    wanted = 5 if command == "mnist" else 1  # xor prints its first line after a million epochs
    for _ in range(wanted):
        assert process.stdout is not None
        process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - started < 3
    assert process.returncode == 130
    assert errors.count("\n") == 1
    assert errors.startswith("Interrupted")
