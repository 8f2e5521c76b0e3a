"""Going on as if never stopped (case 49), checkpoints that do not fit, and Ctrl-C during a save."""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import Result

import gradcore
from gradcore.backend import register_backend
from gradcore.backend.numpy import NumpyBackend
from gradexamples import session, xor
from gradexamples.options import Settings
from gradexamples.session import uninterrupted

Run = Callable[..., Result]


def losses_and_weights(folder: Path) -> tuple[list[float], dict[str, np.ndarray]]:
    return json.loads((folder / "run.json").read_text())["losses"], load_file(folder / "run.safetensors")


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_resumed_run_is_bit_identical(run: Run, tiny: Path, tmp_path: Path, backend: str, optimizer: str) -> None:
    """2 epochs at once, against 1, a new start of the command, and 1 more; weights alone would not do."""
    common = ("--data-dir", tiny, "--backend", backend)

    def train(folder: str, *options: object) -> tuple[list[float], dict[str, np.ndarray]]:
        (tmp_path / folder).mkdir(exist_ok=True)
        files = ("--checkpoint", tmp_path / folder / "run.safetensors", "--json", tmp_path / folder / "run.json")
        result = run("mnist", *common, *files, *options)
        assert result.exit_code == 0, result.output
        return losses_and_weights(tmp_path / folder)

    whole, whole_weights = train("whole", "--optimizer", optimizer, "--seed", 4, "--epochs", 2)
    first, _ = train("parts", "--optimizer", optimizer, "--seed", 4, "--epochs", 1)
    second, weights = train("parts", "--resume", "--epochs", 2)
    assert first + second == whole
    assert weights.keys() == whole_weights.keys()
    for name, value in whole_weights.items():
        np.testing.assert_array_equal(value, weights[name], err_msg=name)
    fresh, _ = train("fresh", "--optimizer", optimizer, "--seed", 5, "--epochs", 1)
    assert fresh != second


def test_weights_alone_would_not_do(run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above really tests: without the optimizer's moments the second half differs."""
    files = ("--checkpoint", tmp_path / "run.safetensors", "--json", tmp_path / "run.json")
    run("mnist", "--data-dir", tiny, *files, "--epochs", 2, "--seed", 4)
    whole, _ = losses_and_weights(tmp_path)
    run("mnist", "--data-dir", tiny, *files, "--epochs", 1, "--seed", 4)
    load = gradcore.load_checkpoint
    monkeypatch.setattr(gradcore, "load_checkpoint", lambda path, **parts: load(path, **{**parts, "optimizer": None}))
    result = run("mnist", "--data-dir", tiny, *files, "--epochs", 2, "--resume")
    assert result.exit_code == 0
    second, _ = losses_and_weights(tmp_path)
    assert second[0] == whole[5]
    assert second[1:] != whole[6:]


def test_xor_resumes_too(run: Run, tmp_path: Path) -> None:
    files = ("--checkpoint", tmp_path / "run.safetensors", "--json", tmp_path / "run.json")
    run("xor", *files, "--epochs", 200, "--seed", 1)
    whole, whole_weights = losses_and_weights(tmp_path)
    run("xor", *files, "--epochs", 100, "--seed", 1)
    assert run("xor", *files, "--epochs", 200, "--resume").exit_code == 0
    second, weights = losses_and_weights(tmp_path)
    assert second == whole[100:]
    for name, value in whole_weights.items():
        np.testing.assert_array_equal(value, weights[name], err_msg=name)


def test_a_resumed_run_takes_its_settings_along(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    run("xor", "--checkpoint", path, "--epochs", 10, "--seed", 12, "--optimizer", "sgd", "--lr", 0.25)
    result = run("xor", "--checkpoint", path, "--epochs", 10, "--resume")
    assert result.exit_code == 0
    assert "seed: 12," in result.stdout
    assert "Epoch" not in result.stdout, "nothing is left to do"
    assert f"Resumed from {path} after epoch 10; nothing is left to train: --epochs 10 is the total" in result.stdout
    more = run("xor", "--checkpoint", path, "--epochs", 20, "--resume")
    assert f"Resumed from {path} after epoch 10\n" in more.stdout
    for option, value in (("--seed", 13), ("--optimizer", "adam"), ("--batch-size", 2)):
        result = run("xor", "--checkpoint", path, "--epochs", 20, "--resume", option, value)
        assert result.exit_code == 2
        assert option in result.stderr
    assert run("xor", "--checkpoint", path, "--epochs", 20, "--resume", "--lr", 0.1).exit_code == 0


def test_evaluating_a_checkpoint(run: Run, tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    trained = run("mnist", "--data-dir", tiny, "--checkpoint", path, "--epochs", 2)
    kept = path.read_bytes()
    result = run("mnist", "--data-dir", tiny, "--checkpoint", path, "--resume", "--epochs", 0)
    assert result.exit_code == 0
    accuracy = [line for line in trained.stdout.splitlines() if line.startswith("Test Accuracy")]
    assert accuracy[0] in result.stdout
    assert path.read_bytes() == kept


@pytest.mark.parametrize("kind", ["missing", "cut", "empty", "pickle", "of xor"])
def test_checkpoints_that_do_not_fit(run: Run, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.safetensors"
    run("xor", "--checkpoint", path, "--epochs", 1)
    whole = path.read_bytes()
    contents = {"cut": whole[: len(whole) // 2], "empty": b"", "pickle": b"\x80\x04cos\nsystem\n.", "of xor": whole}
    if kind == "missing":
        path.unlink()
    else:
        path.write_bytes(contents[kind])
    result = run("mnist", "--checkpoint", path, "--resume")
    assert result.exit_code == 1
    assert str(path) in result.stderr
    assert result.stderr.count("\n") == 1
    if kind == "of xor":
        assert "made by the example 'xor', this is 'mnist'" in result.stderr
    else:
        assert "checkpoint" in result.stderr, "gradcore's own text"


def test_another_data_set_of_the_same_shape(run: Run, tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    run("mnist", "--data-dir", tiny, "--checkpoint", path, "--epochs", 1)
    result = run("mnist", "--checkpoint", path, "--resume", "--dataset", "fashion")
    assert result.exit_code == 1
    assert "'mnist'" in result.stderr
    assert "'fashion'" in result.stderr


def test_ctrl_c_waits_for_a_save() -> None:
    done, before = [], signal.getsignal(signal.SIGINT)

    def save() -> None:
        with uninterrupted():
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
            done.append("saved")
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        save()
    assert done == ["saved"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_failed_save_gives_the_signals_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(OSError, match="disk"), uninterrupted():
        raise OSError("disk full")
    assert signal.getsignal(signal.SIGINT) is before


def test_uninterrupted_in_another_thread() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]


def test_find_backend_gives_the_reason() -> None:
    backend, why = session.find_backend("auto")
    assert backend.name
    assert why.startswith("auto")
    assert len(why) < 60, "the reasons are told by the command backends"


def test_auto_names_what_it_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        SimpleNamespace(name="cuda", priority=30, available=False),
        SimpleNamespace(name="ref", priority=20, available=True),
    ]
    monkeypatch.setattr(session, "list_backends", lambda: rows)
    assert session.passed_over("ref", "auto") == "auto; cuda is not available here"
    rows[0].available = True  # it said so, and could not
    assert session.passed_over("ref", "auto") == "auto; cuda is not available here"
    assert session.passed_over("cuda:0", "auto") == "auto"


class Toy(NumpyBackend):
    """A backend with a choice of precisions, and one with something to say about convolution."""

    name = "toy"
    convolution = "convolution: by hand"

    def with_precision(self, precision: str) -> "Toy":
        other = Toy()
        other.precision = precision
        return other


def test_precision_and_convolution_in_the_header(run: Run) -> None:
    with register_backend("toy", lambda name: Toy()):
        assert "convolution: by hand, precision: float32," in run("xor", "--backend", "toy", "--epochs", 1).stdout
        result = run("xor", "--backend", "toy", "--epochs", 1, "--precision", "tf32")
        assert "precision: tf32," in result.stdout


@pytest.mark.parametrize("option", ["--graph", "--no-graph"])
def test_graph_reaches_the_loop(run: Run, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, capture = [], gradcore.capture

    def note(*arguments: object, graph: bool) -> object:
        asked.append(graph)
        return capture(*arguments, graph=graph)

    monkeypatch.setattr(gradcore, "capture", note)
    assert run("xor", "--epochs", 2, option).exit_code == 0
    assert asked == [option == "--graph"]


def test_title_of_one_epoch() -> None:
    for epochs, words in ((1, "1 epoch"), (2, "2 epochs"), (0, "0 epochs")):
        settings = Settings(backend="numpy", seed=3, epochs=epochs)
        assert session.Session("xor", settings, xor.network, 4, xor.RATES).title() == f"backend numpy, seed 3, {words}"
