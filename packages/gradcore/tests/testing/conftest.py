"""run_suite: pytest in a process of its own, as the author of a backend runs it; wrong_backends, the module beside."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def wrong_backends() -> ModuleType:
    """wrong_backends.py, which is a pytest plugin of the runs below too."""
    spec = importlib.util.spec_from_file_location("wrong_backends", HERE / "wrong_backends.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_pytest(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """run_pytest(*arguments): in an empty folder, with gradcore's plugin, and its backends of wrong_backends.py."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GRADCORE"))}
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *sys.path])
        # the plugin, whether gradcore is installed or lies on the path
        plugins = ["-p", "no:gradcore", "-p", "gradcore.testing.plugin", "-p", "wrong_backends"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--import-mode=importlib", *plugins]
        command += ["--strict-markers", "-q", "--tb=line", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def run_suite(
    run_pytest: Callable[..., "subprocess.CompletedProcess[str]"],
) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """run_suite(backend, *arguments): the conformance suite."""
    return lambda backend, *arguments: run_pytest(
        "--pyargs", "gradcore.testing.suite", "--gradcore-backend", backend, *arguments
    )
