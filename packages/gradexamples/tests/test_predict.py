"""Any picture of a digit becomes what MNIST would have made of it."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from typer.testing import Result

from gradexamples import predict
from gradexamples.errors import ExampleError
from gradexamples.predict import centre, read_digit

Digits = tuple[np.ndarray, np.ndarray]
Run = Callable[..., Result]


def on_paper(digit: Image.Image) -> Image.Image:
    """Small, dark on light, in a corner of a large page."""
    page = Image.new("L", (400, 300), 235)
    page.paste(ImageOps.invert(digit).point(lambda v: v * 235 // 255).resize((84, 84)), (280, 10))
    return page


def transparent(digit: Image.Image, ink: tuple[int, int, int]) -> Image.Image:
    picture = Image.new("RGBA", digit.size, (*ink, 0))
    picture.putalpha(digit)
    return picture


def palette_with_transparency(digit: Image.Image) -> Image.Image:
    picture = ImageOps.invert(digit).quantize(16)
    picture.info["transparency"] = 0
    return picture


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "as it is": lambda d: d,
    "inverted": ImageOps.invert,
    "large": lambda d: d.resize((420, 420), Image.Resampling.BICUBIC),
    "wide canvas": lambda d: ImageOps.expand(d, (150, 3, 20, 60), fill=0),
    "on paper": on_paper,
    "faint": lambda d: d.point(lambda v: 100 + v // 6),
    "colour": lambda d: ImageOps.colorize(d, black="#ffe8b0", white="#203080"),
    "two levels": lambda d: d.resize((140, 140)).convert("1"),
    "16 bits": lambda d: Image.fromarray(np.asarray(d).astype(np.uint16) * 257),
    "32 bits": lambda d: Image.fromarray(np.asarray(d).astype(np.int32) * 1000),
    "float": lambda d: Image.fromarray(np.asarray(d).astype(np.float32) / 255),
    "black ink, transparent": lambda d: transparent(d, (0, 0, 0)),
    "white ink, transparent": lambda d: transparent(d, (255, 255, 255)),
    "grey and alpha": lambda d: transparent(d, (0, 0, 0)).convert("LA"),
    "palette": lambda d: d.quantize(32),
    "opaque alpha": lambda d: d.convert("RGBA"),
    "cmyk": lambda d: ImageOps.invert(d).convert("RGB").convert("CMYK"),
}


def likeness(field: np.ndarray, original: np.ndarray) -> float:
    """Correlation of two digits, where they may be one pixel apart."""
    shifts = [np.roll(field, (dy, dx), axis=(0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    return max(float(np.corrcoef(shifted.ravel(), original.ravel())[0, 1]) for shifted in shifts)


@pytest.mark.parametrize("name", CHANGES)
def test_every_picture_ends_as_in_mnist(name: str, digits: Digits, tmp_path: Path) -> None:
    path = tmp_path / ("digit.tif" if name in ("float", "cmyk", "32 bits") else "digit.png")
    for image in digits[0][:12]:
        CHANGES[name](Image.fromarray(image)).save(path)
        field = read_digit(path)
        assert field.shape == (28, 28)
        assert field.dtype == np.float32
        assert field.min() >= 0
        assert field.max() == 1
        assert likeness(field, image / 255) > 0.9


def test_mnist_itself_hardly_changes(digits: Digits) -> None:
    """A centre of mass on the edge between two pixels may go either way: allowed for one image in a hundred."""
    changed = 0
    for image in digits[0][:500]:
        ink = image / image.max()
        field = centre(ink)
        assert likeness(field, ink) > 0.99
        changed += np.abs(field - ink).max() > 0.1
    assert changed <= 5


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (28, 28), (500, 300), (7, 1000)])
def test_sizes(shape: tuple[int, int]) -> None:
    field = centre(np.ones(shape))
    rows, columns = np.flatnonzero(field.any(axis=1)), np.flatnonzero(field.any(axis=0))
    assert max(len(rows), len(columns)) == 20
    y = (field.sum(axis=1) * np.arange(28)).sum() / field.sum()
    x = (field.sum(axis=0) * np.arange(28)).sum() / field.sum()
    assert abs(y - 14) <= 0.51
    assert abs(x - 14) <= 0.51


def test_exif_orientation(digits: Digits, tmp_path: Path) -> None:
    upright, turned = tmp_path / "upright.jpg", tmp_path / "turned.jpg"
    picture = Image.fromarray(digits[0][0]).resize((280, 280))
    picture.save(upright, quality=95)
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to see it"
    picture.rotate(90).save(turned, exif=exif, quality=95)
    assert np.corrcoef(read_digit(upright).ravel(), read_digit(turned).ravel())[0, 1] > 0.99


@pytest.mark.parametrize("kind", ["missing", "text", "cut", "empty", "folder", "one colour", "one pixel", "clear"])
def test_pictures_that_cannot_be_read(kind: str, digits: Digits, tmp_path: Path) -> None:
    path = tmp_path / "digit.png"
    Image.fromarray(digits[0][0]).resize((280, 280)).save(path)
    if kind == "missing":
        path.unlink()
    elif kind == "text":
        path.write_text("not a picture")
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "one colour":
        Image.new("RGB", (50, 50), "navy").save(path)
    elif kind == "one pixel":
        Image.new("L", (1, 1), 255).save(path)
    else:
        Image.new("RGBA", (50, 50), (0, 0, 0, 0)).save(path)
    with pytest.raises(ExampleError) as caught:
        read_digit(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def trained(run: Run, tiny: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run.safetensors"
    result = run("mnist", "--data-dir", tiny, "--epochs", 3, "--seed", 0, "--lr", 0.003, "--checkpoint", path)
    assert result.exit_code == 0
    return path


def test_from_sample_to_prediction(run: Run, trained: Path, digits: Digits, tmp_path: Path) -> None:
    pictures = []
    for number in range(3):
        pictures.append(tmp_path / f"{number}.png")
        Image.fromarray(digits[0][number]).save(pictures[-1])
    result = run("predict", trained, *pictures)
    assert result.exit_code == 0, result.output
    answers = re.findall(r"^.*(\d)\.png: (\d) \((\d+\.\d\d)%\)$", result.stdout, re.MULTILINE)
    assert [int(number) for number, *_ in answers] == [0, 1, 2]
    assert [int(answer) for _, answer, _ in answers] == digits[1][:3].tolist(), "three that it was trained on"
    assert result.stdout.count("%") == 3 + 30
    assert "█" in result.stdout


def test_predict_on_every_backend(run: Run, trained: Path, digits: Digits, tmp_path: Path, backend: str) -> None:
    Image.fromarray(digits[0][0]).save(tmp_path / "0.png")
    assert ": 7 (" in run("predict", trained, tmp_path / "0.png", "--backend", backend).stdout


def test_save_sample(run: Run, digits: Digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradexamples.mnist_data import Data

    images, labels = digits[0][:9], digits[1][:9]
    data = Data(images, labels, images, labels, tuple("0123456789"))
    monkeypatch.setattr(predict.mnist_data, "load", lambda name: data)
    path = tmp_path / "sample.png"
    result = run("predict", "--save-sample", 3, path)
    assert result.exit_code == 0
    assert f"a {labels[3]}" in result.stdout
    with Image.open(path) as picture:
        np.testing.assert_array_equal(np.asarray(picture), images[3])
    for number in (-1, 9):
        result = run("predict", "--save-sample", number, path)
        assert result.exit_code == 2
        assert "0 to 8" in result.stderr


def test_a_checkpoint_of_something_else(run: Run, tmp_path: Path, digits: Digits) -> None:
    Image.fromarray(digits[0][0]).save(tmp_path / "0.png")
    run("xor", "--epochs", 1, "--checkpoint", tmp_path / "xor.safetensors")
    result = run("predict", tmp_path / "xor.safetensors", tmp_path / "0.png")
    assert result.exit_code == 1
    assert "xor.safetensors: made by the example 'xor', this is 'mnist'" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", ["", "run.safetensors", "--save-sample 3", "--save-sample x a.png"])
def test_missing_arguments(run: Run, arguments: str) -> None:
    assert run("predict", *arguments.split()).exit_code == 2


def test_probabilities_of_huge_outputs() -> None:
    p = predict.softmax(np.array([1e4, 0, -1e4] + [0] * 7, np.float32))
    assert p[0] == 1
    assert p.sum() == 1
