"""Checks of MNIST's file format (IDX), made before torchvision reads a file.

torchvision looks only whether the files exist; a cut file ends there in a bare assertion, a label of 10 in a
wrong training. Here each file is held against its own header, and the labels against the images.
Format, big-endian: images = 2051, count, 28, 28, then a byte a pixel; labels = 2049, count, then a byte each.
"""

import os
import struct
from pathlib import Path

from .errors import DataError

IMAGES_MAGIC = 2051
LABELS_MAGIC = 2049
SIDE = 28
CLASSES = 10


def check_pair(images: Path, labels: Path, remedy: str) -> int:
    """Number of samples in an images file and its labels file; DataError names the bad file and the remedy."""
    count = check_images(images, remedy)
    labelled = check_labels(labels, remedy)
    if labelled != count:
        raise DataError(f"{labels}: {labelled} labels for the {count} images of {images.name}; {remedy}")
    return count


def check_images(path: Path, remedy: str) -> int:
    """Number of images in the file."""
    count, height, width = _header(path, IMAGES_MAGIC, 4, remedy)
    if (height, width) != (SIDE, SIDE):
        raise DataError(f"{path}: images of {height}x{width} pixels, expected {SIDE}x{SIDE}; {remedy}")
    _check_length(path, 16 + count * SIDE * SIDE, remedy)
    return count


def check_labels(path: Path, remedy: str) -> int:
    """Number of labels in the file, each of them below 10."""
    (count,) = _header(path, LABELS_MAGIC, 2, remedy)
    _check_length(path, 8 + count, remedy)
    largest = max(path.read_bytes()[8:])
    if largest >= CLASSES:
        raise DataError(f"{path}: a label of {largest}, expected 0 to {CLASSES - 1}; {remedy}")
    return count


def _header(path: Path, magic: int, words: int, remedy: str) -> tuple[int, ...]:
    try:
        with open(path, "rb") as file:
            head = file.read(4 * words)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {remedy}") from error
    if len(head) < 4 * words:
        raise DataError(f"{path}: cut short, {len(head)} bytes are less than its header; {remedy}")
    found, *sizes = struct.unpack(f">{words}I", head)
    if found != magic:
        raise DataError(f"{path}: starts with the number {found}, expected {magic}; {remedy}")
    if sizes[0] == 0:
        raise DataError(f"{path}: holds no samples; {remedy}")
    return tuple(sizes)


def _check_length(path: Path, expected: int, remedy: str) -> None:
    length = os.path.getsize(path)
    if length != expected:
        raise DataError(f"{path}: {length} bytes, its header promises {expected}; {remedy}")
