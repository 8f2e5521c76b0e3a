"""Pictures are drawn for every kind of run, also for one without steps or with all answers wrong."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gradexamples import plots
from gradexamples.errors import ExampleError
from gradexamples.mnist_data import Data
from gradexamples.report import History

Digits = tuple[np.ndarray, np.ndarray]
FILTERS = np.random.default_rng(0).normal(size=(16, 1, 3, 3))


def history(steps: int, epochs: int = 2) -> History:
    losses = np.linspace(2, 0, steps, dtype=np.float32)  # ends at exactly 0
    right = np.full(steps, 60, np.float32)
    tests = [(steps * k // epochs, 90.0 + k) for k in range(1, epochs + 1)] if steps else []
    return History(losses=[losses], right=[right], seen=[np.full(steps, 64)], tests=tests)


def data_of(digits: Digits, count: int) -> Data:
    images, labels = digits[0][:count], digits[1][:count].astype(np.int64)
    return Data(images, labels, images, labels, tuple("0123456789"))


@pytest.mark.parametrize("steps", [0, 1, 150])
@pytest.mark.parametrize("count", [1, 100])
def test_mnist_picture(steps: int, count: int, digits: Digits, tmp_path: Path) -> None:
    data = data_of(digits, count)
    outputs = np.eye(10)[data.test_labels]
    outputs[::3] = outputs[::3, ::-1]
    path = tmp_path / "run.png"
    plots.draw_mnist(path, history(steps), data, outputs, FILTERS, "a title")
    with Image.open(path) as picture:
        assert picture.size == (1440, 1104)


@pytest.mark.parametrize("right", [True, False])
def test_all_right_and_all_wrong(right: bool, digits: Digits, tmp_path: Path) -> None:
    data = data_of(digits, 80)
    outputs = np.eye(10)[data.test_labels if right else (data.test_labels + 1) % 10]
    plots.draw_mnist(tmp_path / "run.png", history(10), data, outputs, FILTERS, "a title")


def test_mistakes_have_red_frames(digits: Digits, tmp_path: Path) -> None:
    """The same run with and without mistakes: only then is there the red of the frames, in hundreds of pixels."""
    data = data_of(digits, 100)
    reds = []
    for wrong in (0, 5):
        outputs = np.eye(10)[data.test_labels]
        outputs[:wrong] = outputs[:wrong, ::-1]
        plots.draw_mnist(tmp_path / "run.png", history(10), data, outputs, np.zeros((4, 1, 3, 3)) + 1, "a title")
        with Image.open(tmp_path / "run.png") as picture:
            pixels = np.asarray(picture.convert("RGB")).astype(int)
        red = tuple(int(plots.RED[i : i + 2], 16) for i in (1, 3, 5))
        reds.append(int((np.abs(pixels - red).max(axis=2) < 8).sum()))
    assert reds[0] < 50
    assert reds[1] > 1000


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_xor_picture(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run{suffix}"
    surface = np.random.default_rng(0).random((21, 21))
    weights, bias = np.array([[1.0, 0.0], [0.0, 1.0], [1e-9, -1.0]]), np.zeros(3)
    plots.draw_xor(path, history(30), surface, weights, bias, "a title")
    assert path.stat().st_size > 5000


def test_a_folder_that_went_away(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match="cannot be written"):
        plots.draw_xor(tmp_path / "gone" / "a.png", history(0), np.zeros((5, 5)), np.eye(2), np.zeros(2), "")
