"""Throw-away plugin distributions for the registry's tests: a module and a dist-info folder, found on sys.path.

Real metadata, no pip: `importlib.metadata` reads these folders as it reads an installed wheel's.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

GOOD = """
from gradcore.backend import BackendInfo, hookimpl
from gradcore.backend.numpy import NumpyBackend

class Toy(NumpyBackend):
    def __init__(self, name):
        self.name = name

@hookimpl
def gradcore_backend_info():
    return BackendInfo({says!r}, priority={priority}, available={available}, reason={reason!r})

@hookimpl
def gradcore_create_backend(name):
    return Toy(name)
"""


class Site:
    """A folder of installed distributions. Modules are named plugin_<distribution>, so that tests can find them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = [str(folder)]

    def install(self, name: str, source: str | None = None, distribution: str | None = None, **good: object) -> str:
        """A plugin for the backend `name`; without a source a good one, shaped by says, priority, available, reason."""
        distribution = distribution or f"dist-{name}"
        module = self.module(distribution)
        settings = {"says": name, "priority": 1, "available": True, "reason": "", **good}
        (self.folder / f"{module}.py").write_text(GOOD.format(**settings) if source is None else source)
        self.metadata(distribution, f"[gradcore.backends]\n{name} = {module}\n")
        return distribution

    def metadata(self, distribution: str, entry_points: str, kind: str = "dist-info") -> None:
        """Only the metadata folder: dist-info as of a wheel, or egg-info as of a source folder."""
        stem = distribution.replace("-", "_")
        folder = self.folder / (f"{stem}-1.0.dist-info" if kind == "dist-info" else f"{stem}.egg-info")
        folder.mkdir(exist_ok=True)
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        (folder / ("METADATA" if kind == "dist-info" else "PKG-INFO")).write_text(metadata)
        (folder / "entry_points.txt").write_text(entry_points)

    @staticmethod
    def module(distribution: str) -> str:
        return "plugin_" + distribution.replace("-", "_")

    def loaded(self, distribution: str) -> bool:
        return self.module(distribution) in sys.modules


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("GRADCORE_STRICT_PLUGINS", raising=False)
    monkeypatch.delenv("GRADCORE_BACKEND", raising=False)
    yield Site(tmp_path)
    for module in [name for name in sys.modules if name.startswith("plugin_dist")]:
        del sys.modules[module]
