"""A write that fails or dies: the old file stays whole and nothing lies beside it. What works is in test_atomic.py."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcore.atomic import write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions and signals as POSIX has them")


@pytest.fixture(params=["nameless", "named"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With O_TMPFILE, and as on a file system that lacks it."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def as_nobody(action: Callable[[], None]) -> str:
    """Run in a child process without rights; the name of the OSError that came, or what else happened."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "done"
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            action()
        except OSError as error:
            said = errno.errorcode.get(error.errno or 0, repr(error))
        except BaseException as error:
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that a process without rights can reach."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o777)
    yield made
    made.chmod(0o700)
    shutil.rmtree(made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_read_only_folder(public: Path) -> None:
    (public / "file").write_bytes(b"old")
    (public / "file").chmod(0o666)
    public.chmod(0o555)
    assert as_nobody(lambda: write_atomically(public / "file", b"new")) == "EACCES"
    assert as_nobody(lambda: write_atomically(public / "other", b"new")) == "EACCES"
    assert names(public) == ["file"]
    assert (public / "file").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_write_protected_file(public: Path) -> None:
    """chmod -w protects a checkpoint, though its folder would let it be replaced."""
    (public / "best").write_bytes(b"old")
    (public / "best").chmod(0o444)
    assert as_nobody(lambda: write_atomically(public / "best", b"new")) == "EACCES"
    assert (public / "best").read_bytes() == b"old"
    assert as_nobody(lambda: write_atomically(public / "other", b"new")) == "done"
    assert names(public) == ["best", "other"]


@pytest.mark.parametrize("failing", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_any_failure_leaves_the_old_file_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    """A disk that runs full (often noticed at fsync only), and Ctrl-C at any point (case 71)."""
    target = folder / "file"
    target.write_bytes(b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(type(error)):
            write_atomically(target, b"new")
    assert names(folder) == ["file"]
    assert target.read_bytes() == b"old"
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE as Linux has it")
def test_a_place_that_is_full_half_way(folder: Path) -> None:
    """A file-size limit stands for a full disk: the write itself fails, after a part was written."""
    import resource

    target = folder / "file"
    target.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as error:
            write_atomically(target, bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert error.value.errno == errno.EFBIG
    assert names(folder) == ["file"]
    assert target.read_bytes() == b"old"


WRITER = """
import sys
from pathlib import Path
from gradcore.atomic import write_atomically
target = Path(sys.argv[1])
print("ready", flush=True)
number = 0
while True:
    number = (number + 1) % 256
    write_atomically(target, bytes([number]) * 3_000_000)
"""


def test_killed_writers(tmp_path: Path) -> None:
    """Case 50: SIGKILL at any moment; the file is always one whole version, and no part lies beside it."""
    target = tmp_path / "file"
    write_atomically(target, bytes(3_000_000))
    for kill in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, os.fspath(target)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.01 + 0.007 * kill)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        for entry in tmp_path.iterdir():  # killed between naming and renaming, a complete file may be left
            data = entry.read_bytes()
            assert len(data) == 3_000_000
            assert data == data[:1] * len(data)
            assert entry == target or (hasattr(os, "O_TMPFILE") and entry.name.endswith(".new"))


def test_what_a_killed_writer_left_is_removed_in_time(folder: Path) -> None:
    """Left-overs of this file older than an hour; nothing of another file, nothing of a save in progress."""
    old, young, other = (folder / name for name in (".file.99.1.new", ".file.99.2.new", ".other.99.1.new"))
    for left in (old, young, other):
        left.write_bytes(b"?")
    for left in (old, other):
        os.utime(left, (0, time.time() - 4000))
    write_atomically(folder / "file", b"1")
    assert names(folder) == [".file.99.2.new", ".other.99.1.new", "file"]


def test_two_threads_and_one_target(folder: Path) -> None:
    """Each save is whole, whichever comes last."""
    versions = [bytes([i]) * 10_000 for i in range(4)]
    errors: list[BaseException] = []

    def write(data: bytes) -> None:
        try:
            for _ in range(10):
                write_atomically(folder / "file", data)
                assert (folder / "file").read_bytes() in versions
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(data,)) for data in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert names(folder) == ["file"]
