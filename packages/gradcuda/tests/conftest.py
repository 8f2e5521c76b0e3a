"""Tests marked `gpu` are skipped, with the reason, where the backend cannot run; `backend` is the registry's own."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gradcore.backend import get_backend
from gradcuda.probe import reason

REASON = reason()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if REASON and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=f"no GPU here: {REASON}"))


@pytest.fixture
def backend() -> Any:
    return get_backend("cuda")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python text in a process of its own, with extra environment variables."""

    def run(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False)

    return run
