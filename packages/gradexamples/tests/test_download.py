"""Fetching other data sets with torchvision's downloader replaced: no network, a hang, success."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from gradexamples import download, mnist_data
from gradexamples.mnist_data import NAMES, TRAIN

datasets = pytest.importorskip("torchvision.datasets")


def replace_downloader(monkeypatch: pytest.MonkeyPatch, work: Callable[[Path], None]) -> None:
    """Let torchvision's FashionMNIST call `work` with its raw folder instead of the network."""

    def fetch(self: object) -> None:
        folder = Path(self.raw_folder)  # type: ignore[attr-defined]
        if not folder.exists():
            folder.mkdir(parents=True)
            work(folder)

    monkeypatch.setattr(datasets.FashionMNIST, "download", fetch)


def nothing_left(root: Path) -> bool:
    return not [path for path in root.rglob("*") if path.is_file() or path.name.startswith(".fetch")]


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Result]) -> None:
    def fail(folder: Path) -> None:
        (folder / "half.gz").write_bytes(b"half a file")
        raise RuntimeError("Error downloading train-images:\nTried http://x, got:\n<urlopen error unreachable>")

    replace_downloader(monkeypatch, fail)
    result = run("mnist", "--dataset", "fashion", "--data-dir", tmp_path / "data")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    for words in ("unreachable", str(tmp_path / "data" / "FashionMNIST" / "raw"), *NAMES, "by hand", "fashion-mnist"):
        assert words in result.stderr
    assert nothing_left(tmp_path / "data")


def test_a_hang_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Result]) -> None:
    replace_downloader(monkeypatch, lambda folder: time.sleep(5))
    monkeypatch.setattr(download, "STALL", 0.3)
    started = time.monotonic()
    result = run("mnist", "--dataset", "fashion", "--data-dir", tmp_path / "data")
    assert time.monotonic() - started < 4
    assert result.exit_code == 1
    assert "nothing arrived" in result.stderr
    assert "gives up after" in result.stdout
    assert nothing_left(tmp_path / "data")


def test_what_arrives_is_checked(
    tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Result]
) -> None:
    def bring(folder: Path) -> None:
        for name in NAMES:
            shutil.copy(tiny / "MNIST" / "raw" / name, folder / name)
        (folder / TRAIN[1]).write_bytes(b"cut")

    replace_downloader(monkeypatch, bring)
    result = run("mnist", "--dataset", "fashion", "--data-dir", tmp_path / "data")
    assert result.exit_code == 1
    assert "damaged" in result.stderr
    assert nothing_left(tmp_path / "data")


def test_fetched_once(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Result]) -> None:
    calls = []

    def bring(folder: Path) -> None:
        calls.append(folder)
        for name in NAMES:
            shutil.copy(tiny / "MNIST" / "raw" / name, folder / name)

    replace_downloader(monkeypatch, bring)
    for _ in range(2):
        result = run("mnist", "--dataset", "fashion", "--epochs", 0)
        assert result.exit_code == 0, result.stderr
    assert len(calls) == 1
    folder = mnist_data.cache_root() / "FashionMNIST" / "raw"
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)


def test_ctrl_c_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_downloader(monkeypatch, lambda folder: time.sleep(2))

    def stop(worker: object, workspace: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "_wait", stop)
    with pytest.raises(KeyboardInterrupt):
        mnist_data.provide("fashion", tmp_path, own=False)
    assert not [path for path in tmp_path.rglob(".fetch*") if path.is_file()]
