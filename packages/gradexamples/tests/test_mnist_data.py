"""Unpacking, caching and loading: offline, read-only, two at once, damaged (cases 43, 67, 69)."""

import gzip
import hashlib
import importlib.resources
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from gradexamples import mnist_data
from gradexamples.errors import DataError
from gradexamples.mnist_data import NAMES, SHA256, TEST, TRAIN

SIZES = dict(zip(NAMES, (47_040_016, 60_008, 7_840_016, 10_008), strict=True))
# Big enough to matter, small enough to unpack in every test.
SMALL = ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte")


@pytest.mark.parametrize("name", NAMES)
def test_the_packaged_files(name: str) -> None:
    raw = mnist_data.unpack(name)
    assert len(raw) == SIZES[name]
    assert hashlib.sha256(raw).hexdigest() == SHA256[name]


def test_origin_and_licence_travel_with_the_data() -> None:
    note = (importlib.resources.files("gradexamples") / "data" / "README.md").read_text()
    for words in ("CC BY-SA 3.0", "Yann LeCun and Corinna Cortes", *SHA256.values()):
        assert words in note


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["bit", "cut", "other"])
def test_damaged_package(place: float, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit flipped in the compressed part, a cut, and a sound xz file with other contents."""
    import lzma

    name = SMALL[1]
    packed = bytearray((importlib.resources.files("gradexamples") / "data" / f"{name}.xz").read_bytes())
    where = int(len(packed) * place)
    if kind == "bit":
        packed[where] ^= 1
    elif kind == "cut":
        del packed[where:]
    else:
        packed = bytearray(lzma.compress(b"x" * where))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / f"{name}.xz").write_bytes(packed)
    monkeypatch.setattr(mnist_data, "files", lambda package: tmp_path)
    with pytest.raises(DataError, match="install gradexamples again") as caught:
        mnist_data.unpack(name)
    assert f"{name}.xz" in str(caught.value)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "set/grad"),
        ("linux", None, "home/.cache/grad"),
        ("darwin", None, "home/Library/Caches/grad"),
        ("win32", "LOCALAPPDATA", "set/grad"),
    ],
)
def test_the_users_cache_folder(
    platform: str, variable: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # of the fixture that keeps tests away from it
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "set"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(mnist_data.sys, "platform", platform)
    assert mnist_data.cache_root() == tmp_path / expected


def test_unpacked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    root = mnist_data.cache_root()
    mnist_data.provide("mnist", root, own=False)
    folder = root / "MNIST" / "raw"
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == SIZES
    monkeypatch.setattr(mnist_data, "unpack", lambda name: pytest.fail("unpacked again"))
    mnist_data.provide("mnist", root, own=False)


def test_a_deleted_file_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_data, "unpack", lambda name: name.encode())
    root = mnist_data.cache_root()
    mnist_data.provide("mnist", root, own=False)
    gone = root / "MNIST" / "raw" / TEST[1]
    gone.unlink()
    mnist_data.provide("mnist", root, own=False)
    assert gone.read_bytes() == TEST[1].encode()


def test_two_processes_start_together(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gradexamples import mnist_data as m\n"
        "m.provide('mnist', Path(sys.argv[1]), own=False)\n"
        "m.check_pair(*(Path(sys.argv[1]) / 'MNIST' / 'raw' / n for n in m.TRAIN), '')"
    )
    together = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(timeout=60) for process in together] == [0, 0, 0]
    folder = tmp_path / "MNIST" / "raw"
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == SIZES, "and no temporary file"


def test_interrupted_unpacking_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(name: str) -> bytes:
        if name == TRAIN[1]:
            raise KeyboardInterrupt
        return b"whole"

    monkeypatch.setattr(mnist_data, "unpack", stop)
    with pytest.raises(KeyboardInterrupt):
        mnist_data.provide("mnist", tmp_path, own=False)
    assert [path.name for path in (tmp_path / "MNIST" / "raw").iterdir()] == [TRAIN[0]]


def test_own_folder_in_part_is_not_mixed(tiny: Path) -> None:
    (tiny / "MNIST" / "raw" / TRAIN[1]).unlink()
    with pytest.raises(DataError, match=f"{TRAIN[1]} missing"):
        mnist_data.provide("mnist", tiny, own=True)


def test_own_empty_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_data, "unpack", lambda name: b"whole")
    mnist_data.provide("mnist", tmp_path / "new", own=True)
    assert len(list((tmp_path / "new" / "MNIST" / "raw").iterdir())) == 4


def test_folder_that_cannot_be_made(tmp_path: Path, run: Callable[..., Result]) -> None:
    """A file where the folder should be: nobody can write there, root neither."""
    (tmp_path / "taken").write_text("a file")
    result = run("mnist", "--data-dir", tmp_path / "taken")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    for words in ("taken", *NAMES, "by hand"):
        assert words in result.stderr


def test_write_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, contents: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mnist_data, "write_atomically", refuse)
    with pytest.raises(DataError, match="No space left on device"):
        mnist_data.provide("mnist", tmp_path, own=False)


def test_reads_from_a_read_only_folder(tiny: Path) -> None:
    folder = tiny / "MNIST" / "raw"
    for path in (*folder.iterdir(), folder, folder.parent, tiny):
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        data = mnist_data.load("mnist", tiny)
    finally:
        for path in (tiny, folder.parent, folder):
            path.chmod(0o700)
    assert data.train_images.shape == (300, 28, 28)
    assert data.train_images.dtype == np.uint8
    assert data.train_labels.dtype == np.int64
    assert data.test_labels.shape == (100,)


def test_files_put_there_as_gz(tiny: Path) -> None:
    folder = tiny / "MNIST" / "raw"
    for name in NAMES:
        path = folder / name
        (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    mnist_data.provide("mnist", tiny, own=True)
    assert all((folder / name).exists() for name in NAMES)


@pytest.mark.parametrize("damage", ["bit", "cut"])
def test_damaged_gz(tiny: Path, damage: str) -> None:
    path = tiny / "MNIST" / "raw" / TRAIN[0]
    packed = bytearray(gzip.compress(path.read_bytes()))
    if damage == "bit":
        packed[len(packed) // 2] ^= 1
    else:
        del packed[len(packed) // 2 :]
    path.unlink()
    path.with_name(f"{path.name}.gz").write_bytes(packed)
    with pytest.raises(DataError, match=r"\.gz: damaged"):
        mnist_data.provide("mnist", tiny, own=True)
    assert not path.exists()


def test_old_files_of_torchvision_are_noticed(tiny: Path) -> None:
    """torchvision prefers processed/*.pt to the raw files; a label of 10 in there must not slip through."""
    torch = pytest.importorskip("torch")
    folder = tiny / "MNIST" / "processed"
    folder.mkdir()
    for name in ("training.pt", "test.pt"):
        torch.save((torch.zeros(5, 28, 28, dtype=torch.uint8), torch.tensor([0, 1, 2, 3, 10])), folder / name)
    with pytest.raises(DataError, match="processed"):
        mnist_data.load("mnist", tiny)


def test_scaling_and_normalising() -> None:
    """Small integers become float32 first: 5 - 7 is -2, never 254."""
    images = np.zeros((1, 28, 28), np.uint8)
    images[0, 0, :2] = 255, 5
    scaled = mnist_data.scale(images)
    assert scaled.shape == (1, 1, 28, 28)
    assert scaled.dtype == np.float32
    assert scaled.min() == 0
    assert scaled.max() == 1
    normal = mnist_data.normalise(images)
    assert normal[0, 0, 0, 0] == pytest.approx(2.8214865, abs=1e-6)
    assert normal[0, 0, 1, 0] == pytest.approx(-0.4242129, abs=1e-6)


def test_unpacking_into_a_missing_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (f"Unpacked MNIST into {tmp_path / 'new' / 'MNIST' / 'raw'}\n", ""):
        mnist_data.provide("mnist", tmp_path / "new", own=True)
        assert capsys.readouterr().out == words
