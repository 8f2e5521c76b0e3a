"""What the tests share: a tiny data set of real digits, the command line, and who may send Ctrl-C.

No test reads or writes the user's own cache folder, and none needs the network.
"""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gradcore.backend import list_backends
from gradexamples import mnist_data
from gradexamples.__main__ import app

BACKENDS = [row.name for row in list_backends() if row.available]
TRAIN, TEST = 300, 100  # samples of the tiny data set: five batches of 64, the last one smaller


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `backend` runs on every available one."""
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", BACKENDS)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for the test, in place of the user's."""
    cache = tmp_path / "cache"
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(cache))
    monkeypatch.setattr(mnist_data, "cache_root", lambda: cache / "grad")
    return cache


@pytest.fixture(autouse=True)
def _same_signals() -> Iterator[None]:
    """A command that was interrupted stops listening to Ctrl-C; the test run must not."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """MNIST's 10,000 test images, uint8 (N, 28, 28), and labels, straight from the package."""
    images, labels = (np.frombuffer(mnist_data.unpack(name), np.uint8) for name in mnist_data.TEST)
    return images[16:].reshape(-1, 28, 28), labels[8:]


def write_idx(folder: Path, images: np.ndarray, labels: np.ndarray, names: tuple[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_bytes(struct.pack(">4I", 2051, *images.shape) + images.tobytes())
    (folder / names[1]).write_bytes(struct.pack(">2I", 2049, len(labels)) + labels.tobytes())


@pytest.fixture
def tiny(tmp_path: Path, digits: tuple[np.ndarray, np.ndarray]) -> Path:
    """A user's own data folder with 300 training and 100 test images, to break or to train on."""
    images, labels = digits
    folder = tmp_path / "tiny" / "MNIST" / "raw"
    write_idx(folder, images[:TRAIN], labels[:TRAIN], mnist_data.TRAIN)
    write_idx(folder, images[-TEST:], labels[-TEST:], mnist_data.TEST)
    return tmp_path / "tiny"


@pytest.fixture
def run() -> Callable[..., Result]:
    """The command line in this process: run("xor", "--seed", 0)."""

    def call(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """The command line in a process of its own, without color, stopped when the test ends."""
    running = []

    def call(*arguments: object, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "gradexamples", *map(str, arguments)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
        running.append(process)
        return process

    yield call
    for process in running:
        process.kill()
        process.communicate()
