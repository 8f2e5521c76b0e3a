"""The command line as a whole: what loads torch, exit codes, mistakes in the options."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from gradexamples import mnist_data

Run = Callable[..., Result]

LIGHT = """
import sys
from typer.testing import CliRunner
from gradexamples.__main__ import app
result = CliRunner().invoke(app, sys.argv[2:])
assert result.exit_code == int(sys.argv[1]), (result.exit_code, result.output)
assert "torch" not in sys.modules, "torch was imported"
assert "matplotlib" not in sys.modules, "matplotlib was imported"
if sys.argv[2] == "--help" or sys.argv[1] == "2":
    assert "numpy" not in sys.modules, "numpy was imported before --threads could count"
"""


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, "--help"),
        (0, "mnist --help"),
        (0, "xor --epochs 3"),
        (0, "backends"),
        (2, "mnist --epochs -1"),
        (2, "mnist --lr nan"),
        (1, "predict none.safetensors none.png"),
    ],
)
def test_runs_without_torch(code: int, arguments: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIGHT, str(code), *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["xor", "mnist"])
@pytest.mark.parametrize(
    "options",
    [
        "--epochs -1",
        "--epochs ten",
        "--epochs 1.5",
        "--batch-size 0",
        "--batch-size -5",
        "--lr -1",
        "--lr nan",
        "--lr inf",
        "--lr fast",
        "--seed -1",
        "--threads 0",
        "--optimizer rmsprop",
        "--loop graph",
        "--precision float16",
        "--plot a.png --json a.png",
        "--resume",
        "--no-such-option",
        "--plot picture.xyz",
        "--plot no/such/folder/picture.png",
        "--json no/such/folder/record.json",
        "--checkpoint .",
        "surplus",
    ],
)
def test_silly_options(run: Run, command: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("data was read")

    monkeypatch.setattr(mnist_data, "load", read)
    result = run(command, *options.split())
    assert result.exit_code == 2
    assert "Usage:" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("options", ["--dataset letters", "--data-dir"])
def test_silly_options_of_mnist(run: Run, options: str) -> None:
    assert run("mnist", *options.split()).exit_code == 2


@pytest.mark.parametrize("command", ["xor", "mnist"])
def test_unknown_backend(run: Run, command: str) -> None:
    result = run(command, "--backend", "cdua")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    for word in ("cdua", "cuda", "numpy"):
        assert word in result.stderr


def test_backend_that_cannot_run_here(run: Run) -> None:
    import gradcore
    from gradcore.backend import BackendInfo, hookimpl
    from gradcore.backend.registry import register_backend
    from gradcore.errors import BackendUnavailable

    class Plugin:
        @hookimpl
        def gradcore_backend_info(self) -> BackendInfo:
            return BackendInfo("toy", priority=99, available=False, reason="needs a toy box")

        @hookimpl
        def gradcore_create_backend(self, name: str) -> gradcore.backend.Backend:
            raise BackendUnavailable("backend 'toy' is not available: needs a toy box")

    with register_backend("toy", Plugin()):
        result = run("xor", "--backend", "toy")
        assert result.exit_code == 1
        assert "toy box" in result.stderr
        assert result.stderr.count("\n") == 1
        assert run("xor", "--epochs", 1).exit_code == 0, "auto passes it over"


def test_backends_lists_what_gradcore_lists(run: Run) -> None:
    from gradcore.__main__ import format_table
    from gradcore.backend import list_backends

    assert run("backends").output.strip() == format_table(list_backends()).strip()


def test_a_bug_keeps_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradexamples import xor

    monkeypatch.setattr(xor, "network", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("xor")


def test_module_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gradexamples", "xor", "--epochs", "20", "--seed", "1", "--threads", "1"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "seed: 1," in done.stdout


@pytest.mark.parametrize("command", ["xor", "mnist"])
def test_write_protected_files_are_refused_before_training(run: Run, command: str, tmp_path: Path) -> None:
    for option in ("--json", "--plot", "--checkpoint"):
        path = tmp_path / f"{option[2:]}.png"
        path.touch(mode=0o444)
        result = run(command, option, path)
        assert result.exit_code == 2
        assert f"'{option}'" in result.output
        assert "Backend" not in result.output


@pytest.mark.parametrize("command", ["xor", "mnist"])
def test_help_tells_the_defaults_of_its_own_command(run: Run, command: str) -> None:
    from gradexamples import mnist, xor

    text = " ".join(run(command, "-h").output.replace("│", " ").split())
    rates, batch = (xor.RATES, len(xor.POINTS)) if command == "xor" else (mnist.RATES, mnist.BATCH_SIZE)
    assert run(command, "--help").output == run(command, "-h").output
    for value in (*rates.values(), batch, "momentum", "GRADCORE_BACKEND", ".svg"):
        assert str(value) in text
    assert "[default: (" not in text


def test_sample_that_is_no_png(run: Run) -> None:
    result = run("predict", "--save-sample", 0, "seven.svg")
    assert result.exit_code == 2
    assert "--save-sample" in result.output
    assert ".png" in result.output


def test_precision_that_the_backend_does_not_offer(run: Run) -> None:
    assert run("xor", "--backend", "numpy", "--epochs", 1, "--precision", "float32").exit_code == 0
    result = run("xor", "--backend", "numpy", "--precision", "tf32")
    assert result.exit_code == 2
    assert result.stderr == "Error: backend 'numpy' computes float32 only\n"


def test_backend_of_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADCORE_BACKEND", "numpy")
    assert "Backend: numpy (GRADCORE_BACKEND=numpy)," in run("xor", "--epochs", 1).stdout
    monkeypatch.setenv("GRADCORE_BACKEND", "nmpy")
    assert run("xor", "--epochs", 1, "--backend", "numpy").exit_code == 0, "the option goes first"
    result = run("xor", "--epochs", 1)
    assert result.exit_code == 2
    assert "GRADCORE_BACKEND=nmpy" in result.stderr
    monkeypatch.setenv("GRADCORE_BACKEND", "")
    assert "(auto" in run("xor", "--epochs", 1).stdout
