"""From a name to a backend: one table of plugins, one instance for each full name ("cuda:1").

A plugin is loaded when it is asked for or listed, never before. `numpy` is in the table from the start and cannot be
taken over. Two distributions that claim one name: neither wins, asking for it is an error that names both.

Next: registry.py, the functions on top of it; plugins.py, how a plugin is called.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from gradcore.backend import numpy_plugin
from gradcore.backend.base import BaseBackend
from gradcore.backend.hookspec import BackendInfo, hookimpl
from gradcore.backend.plugins import HOOKS, Plugin, PluginBroken, find_plugins
from gradcore.errors import ArgumentError, BackendUnavailable

# Names that a user may know before they are installed. Only the hint in the error text reads this.
PUBLISHED = ("ref", "cuda")


class BackendWarning(UserWarning):
    """An installed backend that cannot be used, met on the way to another one."""


@dataclass(frozen=True, slots=True)
class BackendRow:
    """One line of list_backends(): a BackendInfo and the distribution that it comes from."""

    name: str
    priority: int
    available: bool
    reason: str
    capabilities: tuple[str, ...]
    distribution: str


class BackendTable:
    """Every method may be called from any thread; a backend is created once."""

    def __init__(self, path: Sequence[str] | None = None) -> None:
        self._path = path  # where distributions are looked for; None: sys.path
        self._lock = threading.RLock()  # a plugin that is being created may ask for another backend
        self._built_in = {"numpy": Plugin("numpy", "built in", lambda: numpy_plugin)}
        self._by_hand: dict[str, Plugin] = {}
        self._installed: dict[str, list[Plugin]] = {}
        self._known: dict[str, Plugin] = {}  # by entry point, so that a new scan keeps what is loaded
        self._instances: dict[str, BaseBackend] = {}
        self._warned: set[str] = set()

    def get(self, name: str, strict: bool = False) -> BaseBackend:
        """The backend of that name, created at the first call. "auto": the available one of highest priority."""
        instance = self._instances.get(name)
        return instance if instance is not None else self.choose(name, strict)[0]

    def choose(self, name: str, strict: bool = False) -> tuple[BaseBackend, str]:
        """The same, with the reason for the choice as a line for people."""
        with self._lock:
            if name == "auto":
                return self._choose_auto(strict)
            if name not in self._instances:
                self._instances[name] = self._create(name, strict)
            return self._instances[name], "asked for by name"

    def rows(self, strict: bool = False) -> list[BackendRow]:
        """Every installed backend, the highest priority first. Loads all plugins; raises only in strict mode."""
        with self._lock:
            self._scan()
            rows = [self._row(name, strict) for name in {**self._installed, **self._by_hand, **self._built_in}]
        return sorted(rows, key=lambda row: (-row.priority, row.name))

    def register(self, name: str, plugin: object) -> Registration:
        """Put a plugin into the table by hand; see register_backend."""
        with self._lock:
            if name in self._built_in:
                raise ArgumentError(f"register_backend: {name!r} is built in and cannot be replaced")
            owners = self._installed_as(name) if name not in self._by_hand else []
            if owners:
                raise ArgumentError(f"register_backend: {name!r} belongs to {_labels(owners)}; take another name")
            if not any(hasattr(plugin, hook) for hook in HOOKS):
                if not callable(plugin):
                    raise ArgumentError(f"register_backend: {plugin!r} has no gradcore hooks and is no function")
                plugin = _plugin_of_function(name, plugin)
            added = Plugin(name, "registered by hand", lambda: plugin)
            added.info()  # what does not fit is told here, not at the first use
            self._forget(name)
            self._by_hand[name] = added
        return Registration(self, added)

    def unregister(self, added: Plugin) -> None:
        """Undo that, unless the name has been registered anew since."""
        with self._lock:
            if self._by_hand.get(added.name) is added:
                del self._by_hand[added.name]
                self._forget(added.name)

    # the inside; the lock is held

    def _create(self, name: str, strict: bool) -> BaseBackend:
        plugin = self._plugin(name)
        info = plugin.info(strict)
        if not info.available:
            raise BackendUnavailable(f"backend {name!r} is not available: {' '.join(info.reason.split())}")
        backend = plugin.create(name, strict)
        return self._instances.setdefault(backend.name, backend)  # plain "cuda" may be the same device as "cuda:0"

    def _plugin(self, name: str) -> Plugin:
        base = name.partition(":")[0]
        plugin = self._built_in.get(base) or self._by_hand.get(base)
        if plugin is not None:
            return plugin
        owners = self._installed_as(base)
        if not owners:
            raise BackendUnavailable(self._unknown(name, base))
        if len(owners) > 1:
            raise BackendUnavailable(f"backend {base!r} is {_conflict(owners)}")
        return owners[0]

    def _installed_as(self, name: str) -> list[Plugin]:
        if name not in self._installed:
            self._scan()
        return self._installed.get(name, [])

    def _choose_auto(self, strict: bool) -> tuple[BaseBackend, str]:
        rows = self.rows(strict)
        passed = [f"{row.name} is not available ({row.reason})" for row in rows if not row.available]
        for row in rows:
            if not row.available:
                continue
            try:
                chosen = self.choose(row.name, strict)[0]
            except BackendUnavailable as error:  # it said that it can, and could not
                self._warn(f"auto: {error}; going on without it")
                passed.append(str(error))
                continue
            self._instances["auto"] = chosen
            return chosen, "; ".join([f"auto: highest priority ({row.priority}) of those available", *passed])
        raise BackendUnavailable("auto: no backend is available: " + "; ".join(passed))

    def _row(self, name: str, strict: bool) -> BackendRow:
        hand = self._built_in.get(name) or self._by_hand.get(name)
        owners = [hand] if hand is not None else self._installed[name]
        label = _labels(owners)
        if len(owners) > 1:
            self._warn(f"backend {name!r} is {_conflict(owners)}")
            return BackendRow(name, 0, False, _conflict(owners), (), label)
        try:
            info = owners[0].info(strict)
        except PluginBroken as error:
            self._warn(str(error))
            return BackendRow(name, 0, False, f"broken: {error.reason}", (), label)
        reason = " ".join(info.reason.split())
        return BackendRow(name, info.priority, info.available, reason, info.capabilities, label)

    def _scan(self) -> None:
        found: dict[str, dict[str, Plugin]] = {}
        for key, plugin in find_plugins(self._path):
            if plugin.name in self._built_in:
                self._warn(f"{plugin.distribution} tries to replace the built-in backend {plugin.name!r}: ignored")
                continue
            found.setdefault(plugin.name, {}).setdefault(key, self._known.setdefault(key, plugin))
        self._installed = {name: list(plugins.values()) for name, plugins in sorted(found.items())}

    def _unknown(self, name: str, base: str) -> str:
        import difflib

        rows = self.rows()
        opening = f"no backend {name!r}"
        near = difflib.get_close_matches(base.lower(), [row.name for row in rows] + [*PUBLISHED, "auto"], n=1)
        if near and near[0] != base:
            opening += f" (did you mean {near[0]!r}?)"
        parts = [opening, "Available: " + ", ".join(row.name for row in rows if row.available)]
        absent = [f"{row.name} ({row.reason})" for row in rows if not row.available]
        if absent:
            parts.append("Not available: " + ", ".join(absent))
        wanted = near[0] if near else base
        if wanted in PUBLISHED and wanted not in [row.name for row in rows]:
            parts.append(f"To install it: pip install grad{wanted}")
        return ". ".join(parts)

    def _forget(self, name: str) -> None:
        stale = [key for key, one in self._instances.items() if one.name.partition(":")[0] == name]
        for key in {*stale, "auto"} & self._instances.keys():
            del self._instances[key]

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, BackendWarning, stacklevel=2)


class Registration:
    """What register_backend returns: `undo()` takes the backend out again; so does leaving a `with`."""

    def __init__(self, table: BackendTable, plugin: Plugin) -> None:
        self._table = table
        self._plugin = plugin

    def undo(self) -> None:
        self._table.unregister(self._plugin)

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()


def _plugin_of_function(name: str, create: Callable[[str], BaseBackend]) -> object:
    info = BackendInfo(name, priority=0, available=True)
    return SimpleNamespace(
        gradcore_backend_info=hookimpl(lambda: info),
        gradcore_create_backend=hookimpl(lambda name: create(name)),
    )


def _labels(owners: Sequence[Plugin]) -> str:
    return " and ".join(sorted(plugin.distribution for plugin in owners))


def _conflict(owners: Sequence[Plugin]) -> str:
    return f"claimed by {len(owners)} distributions: {_labels(owners)}; uninstall all but one"
