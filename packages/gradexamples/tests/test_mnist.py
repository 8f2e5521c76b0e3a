"""The MNIST command on a tiny set of real digits: lines, record, sizes of batch, determinism, NaN (72, 74, 6, 43)."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import gradcore
from gradcore import Tensor
from gradexamples import mnist

Run = Callable[..., Result]
KEYS = [
    "backend",
    "device",
    "seed",
    "epochs",
    "steps",
    "train_seconds",
    "warmup_seconds",
    "step_microseconds",
    "test_accuracy",
    "final_loss",
    "losses",
]


def record_of(run: Run, tiny: Path, *options: object) -> dict[str, object]:
    path = tiny / "run.json"
    result = run("mnist", "--data-dir", tiny, "--json", path, *options)
    assert result.exit_code == 0, result.output
    return json.loads(path.read_text())


def test_the_network() -> None:
    model = mnist.network()
    assert sum(parameter.size for parameter in model.parameters()) == 206_922
    with gradcore.no_grad():
        assert model(Tensor(np.zeros((2, 1, 28, 28), np.float32))).shape == (2, 10)


def test_a_run_as_it_is_printed(run: Run, tiny: Path, backend: str) -> None:
    result = run("mnist", "--data-dir", tiny, "--backend", backend, "--epochs", 3, "--seed", 5, "--lr", 0.003)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert re.fullmatch(
        rf"Backend: {backend}\S* \(.+\), device: .+, precision: .+, seed: 5, parameters: 206,922", lines[0]
    )
    assert lines[1] == "Loaded 300 training samples and 100 test samples"
    steps = re.findall(
        r"^Epoch \[(\d)/3\], Step \[(\d)/5\], Loss: (\d\.\d{4}), Accuracy: (\d+\.\d\d)%$", result.stdout, re.MULTILINE
    )
    assert [(epoch, step) for epoch, step, *_ in steps] == [(e, s) for e in "123" for s in "12345"]
    assert float(steps[-1][2]) < float(steps[0][2])
    assert float(steps[-1][3]) > 50
    epochs = re.findall(r"^Epoch \[\d/3\], Loss: .*, Test: (\d+\.\d\d)%$", result.stdout, re.MULTILINE)
    final = re.findall(r"^Test Accuracy: (\d+\.\d\d)%$", result.stdout, re.MULTILINE)
    assert len(epochs) == 3
    assert final == epochs[-1:]
    assert float(final[0]) > 40
    assert "truth" in result.stdout
    assert "\x1b" not in result.stdout, "plain when piped"


def test_record(run: Run, tiny: Path) -> None:
    record = record_of(run, tiny, "--epochs", 2, "--seed", 1)
    assert list(record) == KEYS
    assert record["steps"] == len(record["losses"]) == 10
    assert record["final_loss"] == record["losses"][-1]
    assert record["train_seconds"] / record["steps"] * 1e6 == pytest.approx(record["step_microseconds"])
    assert record["train_seconds"] > 0
    assert record["warmup_seconds"] >= 0
    assert 0 <= record["test_accuracy"] <= 100


@pytest.mark.parametrize(("batch", "steps"), [(1, 300), (100, 3), (299, 2), (300, 1), (100_000, 1)])
def test_batch_sizes(run: Run, tiny: Path, batch: int, steps: int) -> None:
    record = record_of(run, tiny, "--epochs", 1, "--batch-size", batch)
    assert record["steps"] == steps


def test_no_epochs_only_evaluates(run: Run, tiny: Path) -> None:
    record = record_of(run, tiny, "--epochs", 0, "--checkpoint", tiny / "never.safetensors")
    assert record["steps"] == 0
    assert record["losses"] == []
    assert record["final_loss"] is record["step_microseconds"] is None
    assert record["train_seconds"] == 0
    assert record["test_accuracy"] is not None
    assert not (tiny / "never.safetensors").exists(), "an untrained network must not replace a checkpoint"


@pytest.mark.parametrize("loop", ["tape", "layers"])
def test_same_seed_same_digits(run: Run, tiny: Path, backend: str, loop: str) -> None:
    options = ("--backend", backend, "--epochs", 2, "--loop", loop)
    first, again, other = (record_of(run, tiny, *options, "--seed", seed)["losses"] for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first == record_of(run, tiny, "--backend", backend, "--epochs", 2, "--seed", 0)["losses"]


PROGRAM = """
import sys
import numpy as np
import gradcore
from gradexamples import mnist, mnist_data
from gradexamples.training import tape_step
images, labels = (np.frombuffer(mnist_data.unpack(name), np.uint8) for name in mnist_data.TEST)
with gradcore.use_backend(sys.argv[1]):
    gradcore.manual_seed(0)
    model = mnist.network()
    optimizer = gradcore.optim.Adam(model.parameters(), lr=1e-3)
    images = mnist_data.scale(images[16:].reshape(-1, 28, 28)[:2000])
    batches = gradcore.Batches(images, labels[8:2008].astype(np.int64), 64, 0)
    step = tape_step(model, gradcore.nn.CrossEntropyLoss(), optimizer, mnist.count_right)
    losses, right = gradcore.capture(step, batches).run(15)
print(losses.tobytes().hex(), right.sum())
"""


def test_same_digits_whatever_the_hash_seed_and_the_threads(backend: str) -> None:
    outputs = set()
    for hashing, threads in (("0", "1"), ("1", "2")):
        environment = {**os.environ, "PYTHONHASHSEED": hashing}
        environment |= {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", PROGRAM, backend]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=120)
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_diverging_run_says_so_and_keeps_the_good_checkpoint(run: Run, tiny: Path) -> None:
    path = tiny / "run.safetensors"
    assert run("mnist", "--data-dir", tiny, "--epochs", 1, "--checkpoint", path).exit_code == 0
    good = path.read_bytes()
    options = ("--epochs", 9, "--checkpoint", path, "--resume", "--lr", 1e30, "--json", tiny / "run.json")
    result = run("mnist", "--data-dir", tiny, *options)
    assert result.exit_code == 1
    assert "not a number any more" in result.stdout
    assert "not finite" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Test Accuracy" not in result.stdout
    assert path.read_bytes() == good
    record = json.loads((tiny / "run.json").read_text())
    assert record["test_accuracy"] is None
    assert None in record["losses"]


def test_outputs_that_are_not_finite_are_no_answers() -> None:
    labels = np.zeros(4, np.int64)
    outputs = np.zeros((4, 10), np.float32)
    outputs[:, 0] = 1
    assert mnist.accuracy_of(outputs, labels) == 100
    outputs[0, 3] = np.nan
    outputs[1] = np.inf
    assert mnist.accuracy_of(outputs, labels) == 50


def test_counting_does_not_wrap(backend: str) -> None:
    output = Tensor(np.eye(10, dtype=np.float32)[np.zeros(1000, int)], backend=backend)
    target = Tensor(np.zeros(1000, np.int64), backend=backend)
    assert float(mnist.count_right(output, target)) == 1000


def test_the_last_drawn_digit_is_a_mistake(
    digits: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    from gradexamples.mnist_data import Data

    images, labels = digits[0][:60], digits[1][:60].astype(np.int64)
    predicted = labels.copy()
    predicted[50] = (labels[50] + 1) % 10
    mnist.draw_examples(Data(images, labels, images, labels, tuple("0123456789")), predicted)
    out = capsys.readouterr().out
    assert f"{predicted[50]} (truth {labels[50]})" in out
    assert f"{labels[0]} (truth {labels[0]})" in out


def test_plot(run: Run, tiny: Path) -> None:
    path = tiny / "run.png"
    assert run("mnist", "--data-dir", tiny, "--epochs", 1, "--plot", path).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")
