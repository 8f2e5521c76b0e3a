"""The installed pytest plugin: two options, two marks, no import but pytest, no fixture, and --gradcore-xfail."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcore.testing import plugin

LIGHT = """
import importlib.util, sys
before = set(sys.modules)
spec = importlib.util.spec_from_file_location("light", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(sorted({"numpy", "gradcore", "pluggy._hooks", "pytest"} & set(sys.modules)))
"""
TESTS = """
import pytest

@pytest.mark.parametrize("x", [1, 2])
def test_fails(x):
    assert x == 0

def test_passes(): ...
"""


def test_importing_it_imports_pytest_alone() -> None:
    command = [sys.executable, "-c", LIGHT, str(plugin.__file__)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "pytest" in found
    assert "numpy" not in found
    assert "gradcore" not in found


def test_options_and_marks(run_pytest: Callable[..., Any]) -> None:
    text = run_pytest("--help").stdout
    assert "--gradcore-backend" in text
    assert "--gradcore-xfail" in text
    text = run_pytest("--markers").stdout
    assert "gradcore_requires(capability)" in text
    assert "gradcore_operation(name)" in text


def test_it_brings_no_fixtures(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): ...\n")
    assert "gradcore" not in run_pytest("--fixtures").stdout


@pytest.mark.parametrize(
    ("lines", "code", "outcome"),
    [
        ("# all of them\n\ntest_fails[*]\n", 0, "1 passed, 2 xfailed"),
        ("test_it.py::test_fails[1]\ntest_passes\n", 1, "2 failed, 1 xfailed"),
    ],
    ids=["right", "unexpected_pass"],
)
def test_xfail(tmp_path: Path, run_pytest: Callable[..., Any], lines: str, code: int, outcome: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "known.txt").write_text(lines)
    result = run_pytest("--gradcore-xfail", "known.txt", "-rx")
    assert result.returncode == code
    assert outcome in result.stdout


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        ("test_conv.py::test_conv[toy-plain]", True),
        ("test_conv[toy-plain]", True),
        ("suite/test_conv.py::test_conv[toy-plain]  # why", True),
        ("test_conv[*]", True),
        ("test_conv.py::*", True),
        ("test_conv[toy-*]", True),
        ("conv[toy-plain]", False),
        ("test_conv[toy", False),
        ("test_conv[toy-plai.]", False),
        ("# test_conv[toy-plain]", False),
    ],
)
def test_which_tests_a_line_means(tmp_path: Path, line: str, listed: bool) -> None:
    (tmp_path / "known.txt").write_text(line + "\n")
    patterns = plugin.read_xfail(tmp_path / "known.txt")
    assert any(one.search("a/suite/test_conv.py::test_conv[toy-plain]") for one, _ in patterns) == listed


def test_xfail_says_the_reason(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "known.txt").write_text("test_fails[*]  # no double precision yet\n")
    assert "no double precision yet" in run_pytest("--gradcore-xfail", "known.txt", "-rx").stdout


def test_a_file_that_is_not_there(tmp_path: Path, run_pytest: Callable[..., Any]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    result = run_pytest("--gradcore-xfail", "nowhere.txt")
    assert result.returncode == 4
    assert "--gradcore-xfail nowhere.txt" in result.stderr + result.stdout
