"""Fetching Fashion-MNIST and KMNIST through torchvision, with a limit on waiting.

torchvision's downloader has no time limit of its own and writes straight to the final names. Here it works in a
thread of its own and a temporary folder: when nothing has arrived for STALL seconds the run gives up, and only
files that passed the checks are moved to their place.
"""

import contextlib
import io
import os
import secrets
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import DataError, one_line
from .idx import check_pair

if TYPE_CHECKING:
    from .mnist_data import Source

STALL = 20.0  # seconds without a byte


def fetch(source: "Source", root: Path, folder: Path, by_hand: str) -> None:
    """Download the four files into `folder` (ROOT/NAME/raw), or raise a DataError that says how to do without."""
    from torchvision import datasets

    from .mnist_data import NAMES

    print(f"Fetching {source.title} through torchvision (gives up after {STALL:.0f} s without a byte)", flush=True)
    workspace = root / f".fetch-{secrets.token_hex(4)}"
    failure: list[BaseException] = []

    def work() -> None:
        try:
            getattr(datasets, source.torchvision)(root=str(workspace), train=True, download=True)
        except BaseException as error:
            failure.append(error)

    try:
        workspace.mkdir()
        # A daemon: it may hang in the network for longer than we wait, and must not keep the process alive.
        worker = threading.Thread(target=work, daemon=True)
        # Its progress bars would land in a log as thousands of lines. Redirected here and not in the worker:
        # a worker that hangs would keep stderr for ever.
        with contextlib.redirect_stderr(io.StringIO()):
            worker.start()
            reason = _wait(worker, workspace)
        if failure:
            reason = one_line(failure[0])
        arrived = workspace / source.torchvision / "raw"
        if all((arrived / name).exists() for name in NAMES):  # torchvision's own words for a bad file say little
            reason = _damage(arrived) or reason
        if reason:
            raise DataError(
                f"{folder}: {source.title} is not there and could not be fetched ({reason}); "
                f"get it from {source.home} and {by_hand}"
            )
        for name in NAMES:
            os.replace(arrived / name, folder / name)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _damage(arrived: Path) -> str:
    """What is wrong with the four files, or nothing."""
    from .mnist_data import TEST, TRAIN

    try:
        for images, labels in (TRAIN, TEST):
            check_pair(arrived / images, arrived / labels, "damaged on its way")
    except DataError as error:
        return str(error).replace(f"{arrived}{os.sep}", "")
    return ""


def _wait(worker: threading.Thread, workspace: Path) -> str:
    """Wait for the worker while bytes keep arriving; otherwise the reason for giving up."""
    seen, size, since = -1, 0, time.monotonic()
    while worker.is_alive():
        worker.join(0.2)
        with contextlib.suppress(OSError):  # a file may go away between listing and asking
            size = sum(file.stat().st_size for file in workspace.rglob("*") if file.is_file())
        if size != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > STALL:
            return f"nothing arrived for {STALL:.0f} s"
    return ""
