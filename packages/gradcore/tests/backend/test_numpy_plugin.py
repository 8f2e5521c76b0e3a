"""The built-in backend goes through the same two hooks as everybody else."""

import pytest

from gradcore.backend import CAPABILITIES, numpy_plugin
from gradcore.backend.plugins import Plugin
from gradcore.errors import BackendUnavailable


def test_hooks() -> None:
    plugin = Plugin("numpy", "built in", lambda: numpy_plugin)
    info = plugin.info()
    backend = plugin.create("numpy")
    assert (info.name, info.priority, info.available, backend.name) == ("numpy", 10, True, "numpy")
    assert info.capabilities == tuple(one.__name__ for one in CAPABILITIES if isinstance(backend, one))


def test_no_numbered_devices() -> None:
    with pytest.raises(BackendUnavailable, match="no numbered devices, got 'numpy:1'"):
        Plugin("numpy", "built in", lambda: numpy_plugin).create("numpy:1")
