"""Write a file so that a reader sees the old contents or the new, never a part, whenever the writer dies."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace path by data. Raises OSError and leaves no temporary file.

    On Linux the new file has no name until it is complete (O_TMPFILE), so that not even a killed process leaves one.
    """
    folder = path.parent
    name = os.fspath(folder / f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)  # of a process of this number that was killed
    try:
        handle, nameless = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), True
    except (AttributeError, OSError):  # not Linux, or a file system without it
        handle, nameless = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if nameless:
                _give_name(file.fileno(), name, folder)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    with contextlib.suppress(OSError):
        _sync_folder(folder)


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
