"""Each way in which a data file can be wrong is one clear line with the file's name and the remedy (case 67)."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from gradexamples.errors import DataError
from gradexamples.idx import check_images, check_labels, check_pair
from gradexamples.mnist_data import TRAIN

REMEDY = "do something"


def cut_in_half(images: Path, labels: Path) -> Path:
    raw = images.read_bytes()
    images.write_bytes(raw[: len(raw) // 2])
    return images


def cut_four_bytes(images: Path, labels: Path) -> Path:
    images.write_bytes(images.read_bytes()[:-4])
    return images


def cut_labels(images: Path, labels: Path) -> Path:
    labels.write_bytes(labels.read_bytes()[:-4])
    return labels


def cut_header(images: Path, labels: Path) -> Path:
    images.write_bytes(images.read_bytes()[:7])
    return images


def empty(images: Path, labels: Path) -> Path:
    labels.write_bytes(b"")
    return labels


def too_long(images: Path, labels: Path) -> Path:
    images.write_bytes(images.read_bytes() + b"\0")
    return images


def wrong_magic(images: Path, labels: Path) -> Path:
    images.write_bytes(struct.pack(">I", 2049) + images.read_bytes()[4:])
    return images


def swapped(images: Path, labels: Path) -> Path:
    labels.write_bytes(images.read_bytes())
    return labels


def one_label_less(images: Path, labels: Path) -> Path:
    raw = labels.read_bytes()
    labels.write_bytes(struct.pack(">2I", 2049, len(raw) - 9) + raw[8:-1])
    return labels


def label_of_ten(images: Path, labels: Path) -> Path:
    raw = bytearray(labels.read_bytes())
    raw[20] = 10
    labels.write_bytes(raw)
    return labels


def label_of_255(images: Path, labels: Path) -> Path:
    raw = bytearray(labels.read_bytes())
    raw[-1] = 255
    labels.write_bytes(raw)
    return labels


def no_samples(images: Path, labels: Path) -> Path:
    images.write_bytes(struct.pack(">4I", 2051, 0, 28, 28))
    return images


def other_size(images: Path, labels: Path) -> Path:
    count = struct.unpack(">I", images.read_bytes()[4:8])[0]
    images.write_bytes(struct.pack(">4I", 2051, count, 14, 56) + images.read_bytes()[16:])
    return images


def a_folder(images: Path, labels: Path) -> Path:
    images.unlink()
    images.mkdir()
    return images


DAMAGES = [
    cut_in_half,
    cut_four_bytes,
    cut_labels,
    cut_header,
    empty,
    too_long,
    wrong_magic,
    swapped,
    one_label_less,
    label_of_ten,
    label_of_255,
    no_samples,
    other_size,
    a_folder,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage: Callable[[Path, Path], Path], tiny: Path, run: Callable[..., Result]) -> None:
    images, labels = (tiny / "MNIST" / "raw" / name for name in TRAIN)
    bad = damage(images, labels)
    with pytest.raises(DataError, match=REMEDY) as caught:
        check_pair(images, labels, REMEDY)
    assert str(bad) in str(caught.value)
    result = run("mnist", "--data-dir", tiny, "--epochs", 1)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert str(bad) in result.stderr
    assert "Epoch" not in result.stdout


def test_good_files(tiny: Path) -> None:
    images, labels = (tiny / "MNIST" / "raw" / name for name in TRAIN)
    assert check_images(images, REMEDY) == check_labels(labels, REMEDY) == check_pair(images, labels, REMEDY) == 300


def test_all_labels_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(struct.pack(">2I", 2049, 10) + np.arange(10, dtype=np.uint8).tobytes())
    assert check_labels(path, REMEDY) == 10
