"""Reading a digit from a picture of any size, polarity and mode.

The picture is made into what MNIST's makers made of theirs: light ink on black, scaled into a box of 20x20 pixels
with its proportions kept, and placed in a 28x28 field so that the ink's centre of mass is in the middle.
Contract: nothing here imports torch; a picture that cannot be read is one clear line. Next: terminal.py.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from rich.console import Console

import gradcore

from . import mnist, mnist_data
from .errors import ExampleError, one_line
from .mnist_data import SOURCES
from .session import find_backend, refuse_other_example
from .terminal import show_bars, show_digits
from .training import outputs_of

SIDE = 28
BOX = 20
INK = 0.1  # fainter than this, relative to the darkest ink, is paper: noise of scans and of JPEG
FLAT = 8 / 255  # less contrast than this is an empty page


def run(checkpoint: Path, pictures: list[Path], backend_name: str | None) -> None:
    """Predict each picture: the digit as the network sees it, and the probabilities as bars."""
    backend, _ = find_backend(backend_name)
    fields = [read_digit(path) for path in pictures]  # all of them first: a typing error shows at once
    refuse_other_example(checkpoint, "mnist")
    with gradcore.use_backend(backend):
        model = mnist.network()
        notes = gradcore.load_checkpoint(checkpoint, model=model)
        outputs = outputs_of(model, np.stack(fields)[:, np.newaxis])
    names = SOURCES[notes.get("dataset", "mnist")].classes
    console = Console(highlight=False)
    for path, field, output in zip(pictures, fields, outputs, strict=True):
        if not np.isfinite(output).all():
            raise ExampleError(f"{checkpoint}: the network's outputs are not finite (NaN or infinity)")
        probabilities = softmax(output)
        best = int(probabilities.argmax())
        print(f"{path}: {names[best]} ({100 * probabilities[best]:.2f}%)", flush=True)
        show_digits(field[np.newaxis], [names[best]], [True], console)
        show_bars(probabilities, names, console)


def save_sample(number: int, path: Path) -> None:
    """Write test image `number` of MNIST as a picture to try, and say what it shows."""
    data = mnist_data.load("mnist")
    count = len(data.test_images)
    if not 0 <= number < count:
        raise ExampleError(f"--save-sample {number}: the test images are numbered 0 to {count - 1}", code=2)
    try:
        Image.fromarray(data.test_images[number]).save(path)
    except (OSError, ValueError) as error:
        raise ExampleError(f"{path}: cannot be written ({one_line(error)})") from error
    print(f"Wrote test image {number}, a {data.test_labels[number]}, to {path}")


def softmax(outputs: np.ndarray) -> np.ndarray:
    """Probabilities (10,) of the outputs (10,)."""
    powers = np.exp(outputs.astype(np.float64) - outputs.max())
    return powers / powers.sum()


def read_digit(path: Path) -> np.ndarray:
    """The picture as MNIST would have it: float32 (28, 28), 0 is paper and 1 is ink. ExampleError if it cannot be."""
    try:
        with Image.open(path) as picture:
            ink = ink_of(ImageOps.exif_transpose(picture))
    except UnidentifiedImageError as error:
        raise ExampleError(f"{path}: not a picture that can be read") from error
    except Image.DecompressionBombError as error:
        raise ExampleError(f"{path}: too large a picture; make it smaller") from error
    except (OSError, ValueError, SyntaxError) as error:  # what Pillow raises for cut and damaged files
        reason = getattr(error, "strerror", None) or one_line(error)
        raise ExampleError(f"{path}: cannot be read ({reason})") from error
    if ink.max() < FLAT:
        raise ExampleError(f"{path}: no digit to see, the picture is of one colour")
    return centre(ink / ink.max())


def ink_of(picture: Image.Image) -> np.ndarray:
    """How far each pixel is from the paper, 0..1: light on dark, dark on light and transparent alike."""
    return max((_distance_from_paper(grey) for grey in _greys(picture)), key=np.std)


def _greys(picture: Image.Image) -> list[np.ndarray]:
    """The picture in grey 0..1; one with transparency on white and on black, as its ink may be either."""
    if picture.mode.startswith("I") or picture.mode == "F":  # 16 and 32 bits: convert("L") would clip them
        values = np.asarray(picture, dtype=np.float64)
        low, high = np.nanmin(values), np.nanmax(values)
        return [np.nan_to_num((values - low) / max(high - low, 1e-12))] if high > low else [np.zeros(values.shape)]
    if picture.has_transparency_data:
        coloured = picture.convert("RGBA")
        papers = [Image.new("RGBA", coloured.size, colour) for colour in ("white", "black")]
        flat = [Image.alpha_composite(paper, coloured) for paper in papers]
    else:
        flat = [picture]
    return [np.asarray(image.convert("L"), dtype=np.float64) / 255 for image in flat]


def _distance_from_paper(grey: np.ndarray) -> np.ndarray:
    """Ink is what differs from the paper, and the paper is what most of the picture's border is."""
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    return np.abs(grey - np.median(border))


def centre(ink: np.ndarray) -> np.ndarray:
    """Scale the ink (any shape, 0..1) into a 20x20 box and put its centre of mass into the middle of 28x28."""
    rows, columns = np.flatnonzero((ink > INK).any(axis=1)), np.flatnonzero((ink > INK).any(axis=0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    factor = BOX / max(ink.shape)
    height, width = (max(1, round(size * factor)) for size in ink.shape)
    # Lanczos averages when it shrinks, as MNIST's makers did; it overshoots a little, hence the clip.
    small = np.asarray(Image.fromarray(ink.astype(np.float32)).resize((width, height), Image.Resampling.LANCZOS))
    small = np.clip(small, 0, 1)
    small = small / small.max()
    y, x = (float((small.sum(axis=1 - axis) * np.arange(small.shape[axis])).sum() / small.sum()) for axis in (0, 1))
    # Pixel 14, not 13.5: in MNIST's own files the centre of mass lies between 13.5 and 14.5 in every image.
    top = min(max(round(SIDE / 2 - y), 0), SIDE - height)
    left = min(max(round(SIDE / 2 - x), 0), SIDE - width)
    field = np.zeros((SIDE, SIDE), dtype=np.float32)
    field[top : top + height, left : left + width] = small
    return field
