"""Write a file so that a reader sees the old contents or the new, never a part, whenever the writer dies."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace path by data. Raises OSError and leaves no temporary file.

    On Linux the new file has no name until it is complete (O_TMPFILE), so that not even a killed process leaves one.
    """
    folder = path.parent
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o644)
        named = None
    except (AttributeError, OSError):
        handle, named = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
        os.chmod(named, 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if named is None:
                named = _give_name(file.fileno(), path)
        os.replace(named, path)
    except BaseException:
        if named is not None:
            with contextlib.suppress(OSError):
                os.unlink(named)
        raise
    with contextlib.suppress(OSError):
        _sync_folder(folder)


def _give_name(handle: int, path: Path) -> str:
    """Link the nameless file beside its target; os.replace follows at once."""
    name = os.fspath(path.parent / f".{path.name}.{os.getpid()}.new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    os.link(f"/proc/self/fd/{handle}", name, follow_symlinks=True)
    return name


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
