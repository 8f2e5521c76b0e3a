"""MNIST and its relatives as arrays: where the files are, how they get there, how they are read.

The four MNIST files travel inside this package, compressed. They are unpacked once into the user's cache folder,
in the layout of `torchvision.datasets.MNIST` (ROOT/MNIST/raw/...), which then reads them: no network is needed.
Fashion-MNIST and KMNIST come through torchvision's own download (download.py).
Contract: torch is imported only inside `load`, and no half-written file ever has a final name. Next: idx.py.
"""

import gzip
import hashlib
import lzma
import os
import sys
import zlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from gradcore.atomic import write_atomically

from .errors import DataError
from .idx import CLASSES, check_pair

TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
NAMES = TRAIN + TEST

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


@dataclass(frozen=True)
class Source:
    """A data set: its name for people, its class in torchvision, where it is published, its class names."""

    title: str
    torchvision: str
    home: str
    classes: tuple[str, ...]


SOURCES = {
    "mnist": Source("MNIST", "MNIST", "the package gradexamples", tuple("0123456789")),
    "fashion": Source(
        "Fashion-MNIST",
        "FashionMNIST",
        "https://github.com/zalandoresearch/fashion-mnist",
        ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"),
    ),
    "kmnist": Source(
        "KMNIST",
        "KMNIST",
        "https://codh.rois.ac.jp/kmnist/",
        ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    ),
}


@dataclass(frozen=True)
class Data:
    """Images uint8 (N, 28, 28) and labels int64 (N,), for training and for the test, and the class names."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: tuple[str, ...]


def scale(images: np.ndarray) -> np.ndarray:
    """Pixels 0..255 as float32 0..1, with the channel axis that Conv2d expects: (N, 28, 28) -> (N, 1, 28, 28)."""
    return (images.astype(np.float32) / np.float32(255))[:, np.newaxis]


def normalise(images: np.ndarray, mean: float = 0.1307, deviation: float = 0.3081) -> np.ndarray:
    """The usual MNIST normalisation, for comparing with other programs; the trainer itself only scales.

    >>> print(normalise(np.array([[[0, 255]]], dtype=np.uint8)).ravel().round(2))
    [-0.42  2.82]
    """
    return (scale(images) - np.float32(mean)) / np.float32(deviation)


def cache_root() -> Path:
    """The user's cache folder for data sets: it has one folder a data set, as torchvision wants it."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "grad"


def load(name: str = "mnist", data_dir: Path | None = None) -> Data:
    """Read a data set, after unpacking or fetching what is missing and checking every file."""
    source = SOURCES[name]
    root = cache_root() if data_dir is None else Path(data_dir).expanduser()
    folder = root / source.torchvision / "raw"
    provide(name, root, own=data_dir is not None)
    remedy = (
        "delete it, and the next run unpacks or fetches it again" if data_dir is None else "replace it by a good copy"
    )
    for images, labels in (TRAIN, TEST):
        check_pair(folder / images, folder / labels, remedy)

    from torchvision import datasets  # pulls in torch, some seconds: only when data is really read

    parts: list[np.ndarray] = []
    for train in (True, False):
        dataset = getattr(datasets, source.torchvision)(root=str(root), train=train)
        images, labels = dataset.data.numpy(), dataset.targets.numpy()
        # torchvision prefers an old processed/*.pt to the files just checked, so look at what it really read.
        if (
            len(images) != len(labels)
            or images.shape[1:] != (28, 28)
            or not 0 <= labels.min() <= labels.max() < CLASSES
        ):
            raise DataError(f"{folder.parent / 'processed'}: old files with other contents; delete that folder")
        parts += [images, labels]
    return Data(*parts, classes=source.classes)


def provide(name: str, root: Path, own: bool) -> None:
    """Make sure that the four files lie under `root`.

    In a folder of the user's own (`own`) nothing is mixed: it is filled only when it holds none of the four.
    """
    source = SOURCES[name]
    folder = root / source.torchvision / "raw"
    by_hand = f"put {', '.join(NAMES)} (or the same as .gz) there by hand"
    missing = [file for file in NAMES if not _is_there(folder / file, by_hand)]
    if not missing:
        return
    if own and len(missing) < len(NAMES):
        raise DataError(f"{folder}: {', '.join(missing)} missing; {by_hand}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if name == "mnist":
            for file in missing:
                write_atomically(folder / file, unpack(file))
            print(f"Unpacked {source.title} into {folder}", flush=True)
        else:
            from .download import fetch

            fetch(source, root, folder, by_hand)
    except OSError as error:
        raise DataError(
            f"{folder}: {source.title} is not there and the folder cannot be written ({error.strerror}); "
            f"{by_hand}, or choose a folder with --data-dir"
        ) from error


def unpack(name: str) -> bytes:
    """The contents of one of the files that travel in this package, checked."""
    packed = files("gradexamples") / "data" / f"{name}.xz"
    try:
        raw = lzma.decompress(packed.read_bytes())
    except (lzma.LZMAError, EOFError) as error:
        raise DataError(f"{packed}: damaged ({error}); install gradexamples again") from error
    if hashlib.sha256(raw).hexdigest() != SHA256[name]:
        raise DataError(f"{packed}: damaged (its SHA-256 differs); install gradexamples again")
    return raw


def _is_there(path: Path, by_hand: str) -> bool:
    """Whether the file exists, after unpacking a .gz that somebody put there by hand."""
    packed = path.with_name(path.name + ".gz")
    if path.exists() or not packed.exists():
        return path.exists()
    try:
        write_atomically(path, gzip.decompress(packed.read_bytes()))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{packed}: damaged ({error}); delete it and fetch it again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); {by_hand}") from error
    return True
