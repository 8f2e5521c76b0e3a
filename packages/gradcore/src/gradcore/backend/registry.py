"""Which backend is meant when nobody names one: the thread's own choice, else GRADCORE_BACKEND, else `numpy`.

`use_backend` sets the choice of the calling thread only. Another thread, also one started later, begins with
GRADCORE_BACKEND again (as with `decimal` contexts): a `with` block in one thread can never change what another
computes on. Hand the backend to a worker thread, or call use_backend in it.

Next: table.py, how a name becomes a backend.
"""

from __future__ import annotations

import os
import threading

from gradcore.backend.base import BaseBackend
from gradcore.backend.plugins import is_backend
from gradcore.backend.table import BackendRow, BackendTable, Registration
from gradcore.errors import ArgumentError, BackendUnavailable

VARIABLE = "GRADCORE_BACKEND"
DEFAULT = "numpy"

_table = BackendTable()


class _Thread(threading.local):
    backend: BaseBackend | None = None
    why: str = ""


_thread = _Thread()


def get_backend(name: str | BaseBackend | None = None, *, strict: bool = False) -> BaseBackend:
    """The backend of that name ("ref", "cuda:1", "auto"), the current one for None, a Backend as it is.

    One instance for each name. Raises BackendUnavailable: unknown (the text lists the others), broken, or unable to
    run here. strict: an error of the plugin's is raised as it is (GRADCORE_STRICT_PLUGINS=1 does the same).

    >>> get_backend("numpy").name
    'numpy'
    """
    if name is None:
        if _thread.backend is not None:
            return _thread.backend
        variable = os.environ.get(VARIABLE)
        if not variable:
            return _table.get(DEFAULT, strict)
        try:
            return _table.get(variable, strict)
        except BackendUnavailable as error:
            raise BackendUnavailable(f"{VARIABLE}={variable}: {error}") from error
    if isinstance(name, str):
        return _table.get(name, strict)
    if is_backend(name):
        return name
    raise ArgumentError(f"get_backend: expected a backend's name or a Backend, got {name!r}")


def choose_backend(name: str | BaseBackend | None = None, *, strict: bool = False) -> tuple[BaseBackend, str]:
    """As get_backend, with the reason for the choice, for a run to print: `numpy`, "the default"."""
    if name is None:
        if _thread.backend is not None:
            return _thread.backend, _thread.why
        variable = os.environ.get(VARIABLE)
        if not variable:
            return get_backend(None, strict=strict), "the default"
        if variable != "auto":
            return get_backend(None, strict=strict), f"{VARIABLE}={variable}"
        backend, why = _table.choose("auto", strict)
        return backend, f"{VARIABLE}={why}"
    if isinstance(name, str):
        return _table.choose(name, strict)
    return get_backend(name), "given as an object"


class use_backend:
    """Make a backend this thread's current one: for good when called, for a block in a `with`.

    name: as for get_backend; BackendUnavailable leaves the choice as it was. The `with` gives the Backend and, at
    its end, brings back what was current before.

    >>> with use_backend("numpy") as backend:
    ...     get_backend() is backend
    True
    """

    def __init__(self, name: str | BaseBackend) -> None:
        chosen, why = choose_backend(name)
        self._before = _thread.backend, _thread.why
        self._mine = _thread.backend, _thread.why = chosen, f"set by use_backend ({why})"

    def __enter__(self) -> BaseBackend:
        _thread.backend, _thread.why = self._mine  # again, for an object that is entered twice
        return self._mine[0]

    def __exit__(self, *error: object) -> None:
        _thread.backend, _thread.why = self._before


def list_backends(*, strict: bool = False) -> list[BackendRow]:
    """Every installed backend with its availability, the reason why not, capabilities and distribution.

    Never raises (but in strict mode): a broken plugin is a row with its reason, and one warning.

    >>> [row.distribution for row in list_backends() if row.name == "numpy"]
    ['built in']
    """
    return _table.rows(strict)


def register_backend(name: str, plugin: object) -> Registration:
    """Add a backend for this process, in a notebook or a test, without packaging it.

    plugin: an object with the two hooks, or a function name -> BaseBackend (priority 0, so "auto" prefers all others).
    Registering a name again replaces it; the result's `undo()`, or leaving its `with`, removes it. Raises
    ArgumentError for `numpy` and for an installed distribution's name, BackendUnavailable for hooks that do not fit.

    >>> from gradcore.backend.numpy import NumpyBackend
    >>> class Toy(NumpyBackend):
    ...     name = "toy"
    >>> with register_backend("toy", lambda name: Toy()):
    ...     get_backend("toy").name
    'toy'
    """
    return _table.register(name, plugin)
