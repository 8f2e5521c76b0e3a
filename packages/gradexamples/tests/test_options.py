"""Threads and paths; the options themselves are tried in test_main.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gradexamples import options
from gradexamples.options import Settings


@pytest.mark.parametrize("value", [0.0, 1e-3, 10.0, None])
def test_learning_rates_that_make_sense(value: float | None) -> None:
    assert options.learning_rate(value) == value


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), -float("inf")])
def test_learning_rates_that_do_not(value: float) -> None:
    with pytest.raises(typer.BadParameter):
        options.learning_rate(value)


def test_resume_needs_a_checkpoint() -> None:
    with pytest.raises(typer.BadParameter, match="--checkpoint"):
        Settings(resume=True)


def test_threads_are_set_before_numpy_is_loaded() -> None:
    code = (
        "import sys, os; from gradexamples.options import limit_threads; assert 'numpy' not in sys.modules;"
        "limit_threads(1); assert os.environ['OPENBLAS_NUM_THREADS'] == os.environ['OMP_NUM_THREADS'] == '1'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_threads_with_numpy_there(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    options.limit_threads(2)
    assert "threadpoolctl" in capsys.readouterr().err


def test_pictures_and_folders(tmp_path: Path) -> None:
    assert options.picture(tmp_path / "a.PNG") == tmp_path / "a.PNG"
    with pytest.raises(typer.BadParameter, match="must end in"):
        options.picture(tmp_path / "a")
    with pytest.raises(typer.BadParameter, match="is a folder"):
        options.writable(tmp_path)
    with pytest.raises(typer.BadParameter, match="does not exist"):
        options.writable(tmp_path / "b" / "c")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(typer.BadParameter, match="cannot be written"):
        options.writable(tmp_path / "a.json")


def test_write_protected_file(tmp_path: Path) -> None:
    """By its mode, so that root is warned too: the file would be replaced, whatever its mode."""
    path = tmp_path / "run.json"
    path.touch()
    assert options.writable(path) == path
    path.chmod(0o444)
    with pytest.raises(typer.BadParameter, match="is write-protected"):
        options.writable(path)


def test_one_file_for_two_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(typer.BadParameter, match="the file of --checkpoint too"):
        Settings(checkpoint=Path("a"), json=tmp_path / "a")
    with pytest.raises(typer.BadParameter, match="the file of --plot too"):
        Settings(plot=Path("a.png"), json=Path("./a.png"))
    Settings(checkpoint=Path("a"), plot=Path("a.png"), json=Path("a.json"))


def test_sample_is_a_png(tmp_path: Path) -> None:
    assert options.sample((7, tmp_path / "a.png")) == (7, tmp_path / "a.png")
    with pytest.raises(typer.BadParameter, match=r"must end in \.png"):
        options.sample((7, tmp_path / "a.pdf"))
    assert options.sample(None) is None
