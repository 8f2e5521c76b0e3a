"""The hooks of the backend `cuda`. Until the kernels are here, both say the same: not built yet.

The name, the priority and the way to say no are final already: a run with "auto" passes by, with a reason.
"""

from __future__ import annotations

from gradcore.backend import Backend, BackendInfo, hookimpl
from gradcore.errors import BackendUnavailable

REASON = "not built yet: the CUDA kernels come with a later version"


@hookimpl
def gradcore_backend_info() -> BackendInfo:
    return BackendInfo("cuda", priority=30, available=False, reason=REASON)


@hookimpl
def gradcore_create_backend(name: str) -> Backend:
    raise BackendUnavailable(f"backend {name!r} is not available: {REASON}")
