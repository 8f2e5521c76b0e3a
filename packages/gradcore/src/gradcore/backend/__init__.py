"""Everything that the author of a backend needs; nothing but imports.

Derive from BaseBackend, implement the primitives that Backend lists and the capabilities that you have, mark two
functions with hookimpl, name their module in the entry-point group `gradcore.backends`. Then run
`pytest --pyargs gradcore.testing.suite --gradcore-backend NAME`.

Next: protocol.py, the primitives; hookspec.py, the two functions.
"""

from gradcore.backend.base import BaseBackend
from gradcore.backend.hookspec import BackendInfo, hookimpl, hookspec
from gradcore.backend.protocol import (
    CAPABILITIES,
    Array,
    Backend,
    Conv2dOps,
    GraphCapture,
    Pair,
    Pool2dOps,
    Scalar,
    Shape,
)
from gradcore.backend.registry import choose_backend, get_backend, list_backends, register_backend, use_backend

__all__ = [
    "CAPABILITIES",
    "Array",
    "Backend",
    "BackendInfo",
    "BaseBackend",
    "Conv2dOps",
    "GraphCapture",
    "Pair",
    "Pool2dOps",
    "Scalar",
    "Shape",
    "choose_backend",
    "get_backend",
    "hookimpl",
    "hookspec",
    "list_backends",
    "register_backend",
    "use_backend",
]
