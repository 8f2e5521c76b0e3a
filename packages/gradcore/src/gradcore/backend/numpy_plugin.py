"""The plugin of the built-in `numpy` backend: the same two hooks that a foreign package writes.

It is the one plugin that needs no entry point, so gradcore computes even where package metadata is missing.

Next: numpy.py, the backend itself; registry.py, who calls this.
"""

from __future__ import annotations

from gradcore.backend.base import BaseBackend
from gradcore.backend.hookspec import BackendInfo, hookimpl
from gradcore.errors import BackendUnavailable


@hookimpl
def gradcore_backend_info() -> BackendInfo:
    from gradcore.backend.numpy import NumpyBackend  # late: only when somebody asks

    return BackendInfo("numpy", priority=10, available=True, capabilities=NumpyBackend().capabilities)


@hookimpl
def gradcore_create_backend(name: str) -> BaseBackend:
    if name != "numpy":
        raise BackendUnavailable(f"backend 'numpy' has no numbered devices, got {name!r}")
    from gradcore.backend.numpy import NumpyBackend

    return NumpyBackend()
