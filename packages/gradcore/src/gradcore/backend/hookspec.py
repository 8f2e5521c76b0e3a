"""The two hooks that a backend package implements, and what the first of them returns.

A plugin is a module (or any object) with both functions, each marked `@hookimpl`. The entry-point group is
`gradcore.backends`; the entry's name is the backend's name. gradcore loads a plugin only when somebody asks for
it or lists the backends, so a plugin should import its kernels inside the functions.

Next: plugins.py, which finds and guards plugins; numpy_plugin.py, the smallest one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from gradcore.backend.base import BaseBackend

PROJECT = "gradcore"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """What a backend says of itself before it is created.

    name: as in the entry point. priority: "auto" takes the available backend with the highest (numpy has 10).
    available: whether it can run on this machine. reason: if not, why, in one line. capabilities: the names of
    the optional protocols that it implements. Wrong types raise TypeError, a missing reason ValueError.

    >>> BackendInfo("toy", priority=5, available=False, reason="needs a toy box").available
    False
    """

    name: str
    priority: int
    available: bool
    reason: str = ""
    capabilities: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wanted = {"name": str, "priority": int, "available": bool, "reason": str, "capabilities": tuple}
        for field, kind in wanted.items():
            value = getattr(self, field)
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise TypeError(f"BackendInfo: {field} must be {kind.__name__}, got {value!r}")
        if not all(isinstance(capability, str) for capability in self.capabilities):
            raise TypeError(f"BackendInfo: capabilities must be names, got {self.capabilities!r}")
        if not self.available and not self.reason.strip():
            raise ValueError(f"BackendInfo: {self.name!r} is not available and gives no reason")


@hookspec(firstresult=True)
def gradcore_backend_info() -> BackendInfo:
    """Describe the backend. Called for every listing: cheap, and without touching the device for good.

    No CUDA context, no large library: a machine that lacks them is told so through `available` and `reason`.
    """
    raise NotImplementedError


@hookspec(firstresult=True)
def gradcore_create_backend(name: str) -> BaseBackend:
    """Create the backend. `name` comes whole: "cuda" or "cuda:1"; the result's `name` says which it is.

    Called once for each name. Raises BackendUnavailable with a one-line reason if it cannot.
    """
    raise NotImplementedError


def manager_for(plugin: object, name: str) -> pluggy.PluginManager:
    """A manager that knows the two hooks and this one plugin; PluginValidationError for hooks that do not fit."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(sys.modules[__name__])  # by name: `gradcore.backend.hookspec` is also the marker
    manager.register(plugin, name)
    manager.check_pending()  # refuses a misspelt gradcore_... hook
    return manager
