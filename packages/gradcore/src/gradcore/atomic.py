"""Write a file so that a reader sees the old contents or the new, never a part, whenever the writer dies.

The file keeps the permissions of the one that it replaces; a new one gets those that the umask leaves. A symbolic
link stays, and the file behind it is replaced. A device or a pipe is written to, never replaced, and a
write-protected file is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from pathlib import Path

_STALE = 3600.0  # seconds after which a temporary file cannot belong to a save in progress


def write_atomically(path: Path, data: bytes) -> None:
    """Replace path by data. Raises OSError and leaves no temporary file.

    On Linux the new file has no name until it is complete (O_TMPFILE), so that not even a killed process leaves a part.
    """
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    mode = _mode(path)
    if mode is not None:
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "the file there is write-protected", os.fspath(path))
        if not stat.S_ISREG(mode):
            path.write_bytes(data)
            return
    folder = path.parent
    name = os.fspath(folder / f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    _remove_stale(folder, path.name, name)
    try:
        handle, nameless = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), True
    except (AttributeError, OSError):  # not Linux, or a file system without it
        handle, nameless = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            if nameless:
                _give_name(file.fileno(), name, folder)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    with contextlib.suppress(OSError):
        _sync_folder(folder)


def _mode(path: Path) -> int | None:
    """Type and permissions of the file; None if there is none."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _remove_stale(folder: Path, target: str, name: str) -> None:
    """What killed processes left: a complete file just before its renaming, or a part where O_TMPFILE is missing."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            mine = entry.path == name
            if mine or (entry.name.startswith(f".{target}.") and entry.name.endswith(".new")):
                with contextlib.suppress(OSError):
                    if mine or time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE:
                        os.unlink(entry.path)


def _give_name(handle: int, name: str, folder: Path) -> None:
    """Link the nameless file beside its target; os.replace follows at once."""
    # with a folder's descriptor Python calls linkat, which follows the link in /proc; link alone would not
    at = os.open(folder, os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=at, follow_symlinks=True)
    finally:
        os.close(at)


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
