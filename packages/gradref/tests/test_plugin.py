"""The hooks: what they answer, and what when the compiled module does not load."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

from gradcore.errors import BackendUnavailable
from gradref import plugin


def test_info() -> None:
    info = plugin.gradcore_backend_info()
    assert (info.name, info.priority, info.available) == ("ref", 20, True)
    assert info.capabilities == ("Conv2dOps", "Pool2dOps")


def test_create() -> None:
    assert plugin.gradcore_create_backend("ref").name == "ref"
    with pytest.raises(BackendUnavailable, match="'ref' has no numbered devices, got 'ref:1'"):
        plugin.gradcore_create_backend("ref:1")


def test_entry_point() -> None:
    entries = importlib.metadata.entry_points(group="gradcore.backends", name="ref")
    if not entries:
        pytest.skip("gradref is on the path, but not installed")
    assert entries["ref"].value == "gradref.plugin"


def test_found_by_gradcore() -> None:
    if not importlib.metadata.entry_points(group="gradcore.backends", name="ref"):
        pytest.skip("gradref is on the path, but not installed")
    from gradcore.backend import get_backend

    assert get_backend("ref").name == "ref"


def test_a_module_that_does_not_load_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gradref._kernels", None)
    monkeypatch.delitem(sys.modules, "gradref.backend", raising=False)
    import gradref

    monkeypatch.delattr(gradref, "_kernels", raising=False)
    info = plugin.gradcore_backend_info()
    assert not info.available
    assert info.reason.startswith("the C kernels do not load: ")
    assert "\n" not in info.reason
    with pytest.raises(BackendUnavailable, match="backend 'ref': the C kernels do not load"):
        plugin.gradcore_create_backend("ref")


def test_a_wrong_algorithm_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADREF_ALGORITHM", "quick")
    assert "GRADREF_ALGORITHM" in plugin.gradcore_backend_info().reason
    with pytest.raises(BackendUnavailable, match="GRADREF_ALGORITHM"):
        plugin.gradcore_create_backend("ref")


def test_importing_is_light() -> None:
    """Neither the package nor the plugin loads the kernels."""
    code = "import sys, gradref, gradref.plugin; sys.exit('gradref._kernels' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
