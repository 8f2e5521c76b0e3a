"""Finding the installed plugins, and calling one without trusting it.

gradcore enumerates the entry points itself: pluggy's own loader imports every plugin, stops at the first broken
one, lets a plugin's SystemExit through and drops a second plugin of the same name without a word. Here a plugin is
loaded when it is asked, gets a pluggy manager of its own (so that only it answers), and whatever it raises, save
KeyboardInterrupt, becomes a PluginBroken that names the distribution.

Next: table.py, which turns names into backends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn, TypeGuard

from gradcore.backend.base import BaseBackend
from gradcore.backend.hookspec import BackendInfo, manager_for
from gradcore.errors import BackendUnavailable

GROUP = "gradcore.backends"
STRICT_VARIABLE = "GRADCORE_STRICT_PLUGINS"
HOOKS = ("gradcore_backend_info", "gradcore_create_backend")


class PluginBroken(BackendUnavailable):
    """A plugin that cannot be imported or breaks the contract; the plugin's own error is the cause."""

    def __init__(self, plugin: Plugin, reason: str) -> None:
        super().__init__(f"backend {plugin.name!r} ({plugin.distribution}) is broken: {reason}")
        self.reason = reason


class Plugin:
    """One backend's name, the distribution that brought it, and its hooks, loaded at the first question."""

    __slots__ = ("_broken", "_hooks", "_load", "distribution", "name")

    def __init__(self, name: str, distribution: str, load: Callable[[], object]) -> None:
        self.name = name
        self.distribution = distribution  # for people: "gradref 0.1.0"
        self._load = load
        self._hooks: Any = None
        self._broken: BaseException | None = None

    def info(self, strict: bool = False) -> BackendInfo:
        """The checked answer to gradcore_backend_info, asked anew each time: a device may come or go."""
        hooks = self._loaded(strict)
        with self._guard(strict):
            info = hooks.gradcore_backend_info()
            if not isinstance(info, BackendInfo):
                raise TypeError(f"gradcore_backend_info returned {_kind(info)}, expected BackendInfo")
            if info.name != self.name:
                raise ValueError(f"BackendInfo.name is {info.name!r}, the entry point's name is {self.name!r}")
        return info

    def create(self, name: str, strict: bool = False) -> BaseBackend:
        """A new backend for the full name; a BackendUnavailable of the plugin's passes through as it is."""
        hooks = self._loaded(strict)
        with self._guard(strict, passing=BackendUnavailable):
            backend = hooks.gradcore_create_backend(name=name)
            if not is_backend(backend):
                raise TypeError(f"gradcore_create_backend({name!r}) returned {_kind(backend)}, expected a Backend")
            # Errors and Tensor.to() speak of backends by this name, so it must lead back here. Plain "cuda" may
            # answer as "cuda:0"; "cuda:1" may not answer as anything else.
            if backend.name != name and not (name == self.name and backend.name.startswith(f"{name}:")):
                raise ValueError(f"the backend's name is {backend.name!r}, asked for was {name!r}: set its `name`")
        return backend

    def _loaded(self, strict: bool) -> Any:
        if self._broken is not None and not is_strict(strict):  # strict tries again, to show the whole traceback
            raise PluginBroken(self, one_line(self._broken)) from self._broken
        if self._hooks is None:
            try:
                self._hooks = self._register()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit too
                self._broken = error  # kept: a failed import runs its side effects once, not at every listing
                with self._guard(strict):
                    raise
        return self._hooks

    def _register(self) -> Any:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", self.name) or self.name == "auto":
            raise ValueError(f"{self.name!r} cannot be a backend's name: letters, digits, '_', '-', '.', not 'auto'")
        manager = manager_for(self._load(), self.name)
        for hook in HOOKS:
            if not getattr(manager.hook, hook).get_hookimpls():
                raise TypeError(f"it has no {hook} marked with @gradcore.backend.hookimpl")
        return manager.hook

    @contextmanager
    def _guard(self, strict: bool, passing: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, passing):
            raise
        except BaseException as error:
            # Strict re-raises for the plugin's author; SystemExit stays wrapped, or it would end the process mutely.
            if is_strict(strict) and isinstance(error, Exception):
                raise
            raise PluginBroken(self, one_line(error)) from error


def find_plugins(path: Sequence[str] | None = None) -> Iterator[tuple[str, Plugin]]:
    """Every entry point of the group as (key, Plugin), importing none; equal keys are one entry point seen twice.

    path: folders to search, default sys.path. A distribution found twice (egg-info beside dist-info, a source
    folder on the path) counts once; damaged metadata of one package never hides another's.
    """
    import importlib.metadata as metadata  # late: 20 ms that `import gradcore` need not pay

    for found in metadata.distributions() if path is None else metadata.distributions(path=list(path)):
        try:
            if GROUP not in (found.read_text("entry_points.txt") or ""):
                continue
            project = found.metadata["Name"] or "unnamed"
            label = f"{project} {found.metadata['Version'] or ''}".strip()
        except Exception:
            continue  # not even its name can be read
        key = re.sub(r"[-_.]+", "-", project).lower()
        try:
            entries = [entry for entry in found.entry_points if entry.group == GROUP]
        except Exception as error:
            yield key, Plugin(project, label, partial(_raise, error))
            continue
        for entry in entries:
            yield f"{key}:{entry.name}", Plugin(entry.name, label, entry.load)


def is_strict(strict: bool = False) -> bool:
    """Whether plugin errors are raised as they are: asked for, or GRADCORE_STRICT_PLUGINS is set (and not 0)."""
    return strict or os.environ.get(STRICT_VARIABLE, "") not in ("", "0")


def is_backend(x: object) -> TypeGuard[BaseBackend]:
    """A quick look, not a proof: a BaseBackend, or a named instance with the first primitive.

    One whose primitives are not all written yet passes: the conformance suite lists what is missing.
    """
    named = isinstance(x, BaseBackend) or hasattr(x, "asarray")
    return named and not isinstance(x, type) and isinstance(getattr(x, "name", None), str)


def one_line(error: BaseException) -> str:
    """`ImportError: libtoy.so: cannot open`, whatever line breaks the text had."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def _kind(x: object) -> str:
    return "None" if x is None else f"an object of type {type(x).__name__}"


def _raise(error: Exception) -> NoReturn:
    raise error
