"""The pytest plugin that gradcore installs: two options and two marks, nothing else. Fixtures are in fixtures.py.

`--gradcore-backend NAME` chooses the backend of the conformance suite. `--gradcore-xfail FILE` lists tests that a
backend is known to fail, one id a line, as pytest prints it ("test_conv.py::test_conv[toy-conv2d-plain-float64]", or
what ends like that; `*` stands for anything), with `#` before a reason. A listed test that passes fails the run.

This file imports pytest alone: every pytest run on a machine with gradcore loads it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradcore", "gradcore: the conformance suite of backends")
    group.addoption(
        "--gradcore-backend",
        metavar="NAME",
        help="backend that the suite tests (default: GRADCORE_BACKEND, else numpy)",
    )
    group.addoption(
        "--gradcore-xfail",
        metavar="FILE",
        help="tests of the suite that are expected to fail, one id a line, # before a reason",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gradcore_requires(capability): skip on a backend that does not implement it")
    config.addinivalue_line("markers", "gradcore_operation(name): the backend's method that the test is about")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    name = config.getoption("--gradcore-xfail")
    if not name:
        return
    expected = read_xfail(Path(name))
    for item in items:
        for pattern, reason in expected:
            if pattern.search(item.nodeid):
                item.add_marker(pytest.mark.xfail(reason=reason or f"listed in {name}", strict=True))
                break


def read_xfail(path: Path) -> list[tuple[re.Pattern[str], str]]:
    """(pattern of the id, reason) for each line. Raises pytest.UsageError for a file that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"--gradcore-xfail {path}: {error}") from error
    expected = []
    for line in text.splitlines():
        test, _, reason = line.partition("#")
        if test.strip():
            any_of = ".*".join(map(re.escape, test.strip().split("*")))
            expected.append((re.compile(rf"(?:^|/|::){any_of}$"), reason.strip()))
    return expected
