"""Writing a file whole or not at all: killed writers, full and protected places, permissions, links, devices."""

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcore.atomic import write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions, links and signals as POSIX has them")


@pytest.fixture(params=["nameless", "named"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With O_TMPFILE, and as on a file system that lacks it."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return tmp_path


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("data", [b"", b"x", b"ab" * 100_000])
def test_new_and_replaced(folder: Path, data: bytes) -> None:
    target = folder / "file"
    write_atomically(target, data)
    assert target.read_bytes() == data
    write_atomically(target, data + b"!")
    assert target.read_bytes() == data + b"!"
    assert names(folder) == ["file"]


@pytest.mark.parametrize("name", ["plain", ".hidden", "with space", "ü" * 50, "a.b.c"])
def test_names(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path, and a path without a folder."""
    monkeypatch.chdir(folder)
    write_atomically(Path(name), b"1")
    assert names(folder) == [name]
    os.mkdir("sub")
    write_atomically(Path("sub") / ".." / "sub" / name, b"2")
    assert (folder / "sub" / name).read_bytes() == b"2"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_gets_what_the_umask_leaves(folder: Path, umask: Any, mask: int) -> None:
    """As open(path, "w") does: a private umask keeps weights private."""
    umask(mask)
    write_atomically(folder / "file", b"1")
    (folder / "plain").write_bytes(b"1")
    assert (folder / "file").stat().st_mode == (folder / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o640])
def test_a_replaced_file_keeps_its_permissions(folder: Path, mode: int) -> None:
    target = folder / "file"
    target.write_bytes(b"old")
    target.chmod(mode)
    write_atomically(target, b"new")
    assert target.stat().st_mode & 0o777 == mode
    assert target.read_bytes() == b"new"


def test_a_link_stays_and_its_file_is_replaced(folder: Path) -> None:
    """latest -> runs/3: people keep such links, also before the file exists, also in a chain."""
    (folder / "runs").mkdir()
    (folder / "latest").symlink_to("runs/3")
    (folder / "alias").symlink_to("latest")
    for link in ("latest", "alias"):
        write_atomically(folder / link, link.encode())
        assert (folder / link).is_symlink()
        assert (folder / "runs" / "3").read_bytes() == link.encode()
    assert names(folder) == ["alias", "latest", "runs"]
    assert names(folder / "runs") == ["3"]


def test_a_link_to_itself(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        write_atomically(folder / "loop", b"1")
    assert names(folder) == ["loop"]


def test_a_hard_link_keeps_the_old_contents(folder: Path) -> None:
    """What replacing means: a second name of the old file is a backup."""
    (folder / "file").write_bytes(b"old")
    os.link(folder / "file", folder / "backup")
    write_atomically(folder / "file", b"new")
    assert (folder / "backup").read_bytes() == b"old"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """Run by root, replacing /dev/null would break the machine (so this uses a node of its own). A full one says so."""
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        full.open("wb").close()
    except OSError:
        pytest.skip("needs the right to make and open devices")
    with pytest.raises(OSError, match="No space left") as error:
        write_atomically(full, b"1")
    assert error.value.errno == errno.ENOSPC
    assert full.is_char_device()
    assert names(tmp_path) == ["full"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"through")
    reader.join(10)
    assert got == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("where", "kind"),
    [("sub", IsADirectoryError), ("none/file", FileNotFoundError), ("plain/file", NotADirectoryError)],
)
def test_where_no_file_can_be(folder: Path, where: str, kind: type[OSError]) -> None:
    (folder / "sub").mkdir()
    (folder / "plain").write_bytes(b"old")
    with pytest.raises(kind):
        write_atomically(folder / where, b"1")
    assert names(folder) == ["plain", "sub"]
    assert names(folder / "sub") == []
