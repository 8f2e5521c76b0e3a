"""The fixtures in a test folder of a backend's author: one line in conftest.py, and marks work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = """
from gradcore.backend import Conv2dOps, GraphCapture, get_backend
from gradcore.testing import requires

def test_backend(backend):
    assert backend is get_backend()  # the current one

@requires(Conv2dOps)
def test_conv(backend):
    assert backend.conv2d

@requires(GraphCapture)
class TestGraph:
    def test_in_a_class(self, backend): ...

@requires(GraphCapture)
def test_without_the_fixture(): ...
"""


def write(folder: Path) -> None:
    (folder / "conftest.py").write_text("from gradcore.testing.fixtures import *\n")
    (folder / "test_toy.py").write_text(TESTS)


def test_a_backends_own_tests(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    write(tmp_path)
    result = run_pytest("--gradcore-backend", "bare", "-rs", "-vv")
    assert result.returncode == 0, result.stdout
    assert "test_backend[bare] PASSED" in result.stdout
    assert "backend 'bare' does not implement Conv2dOps" in result.stdout
    assert "backend 'bare' does not implement GraphCapture" in result.stdout


def test_the_default_is_numpy(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    write(tmp_path)
    result = run_pytest("-vv", "-k", "test_backend or test_conv")
    assert "test_conv[numpy] PASSED" in result.stdout


def test_an_unknown_backend_is_one_line(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    write(tmp_path)
    result = run_pytest("--gradcore-backend", "nowhere")
    assert result.returncode == 4
    assert "no backend 'nowhere'" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr + result.stdout


def test_without_the_conftest_there_are_no_fixtures(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    write(tmp_path)
    (tmp_path / "conftest.py").unlink()
    result = run_pytest("--tb=short", "-k", "test_backend")
    assert "fixture 'backend' not found" in result.stdout
