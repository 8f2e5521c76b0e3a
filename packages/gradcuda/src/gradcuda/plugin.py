"""The hooks of the backend `cuda`: whether it can run here, or why not, and the making of it.

Next: probe.py, the reasons; backend.py.
"""

from __future__ import annotations

from gradcore.backend import Backend, BackendInfo, hookimpl
from gradcore.errors import BackendUnavailable
from gradcuda.probe import reason

CAPABILITIES = ("Conv2dOps", "Pool2dOps", "GraphCapture")


@hookimpl
def gradcore_backend_info() -> BackendInfo:
    why = reason()
    return BackendInfo("cuda", priority=30, available=not why, reason=why, capabilities=() if why else CAPABILITIES)


@hookimpl
def gradcore_create_backend(name: str) -> Backend:
    why = reason()
    if why:
        raise BackendUnavailable(f"backend {name!r} is not available: {why}")
    from gradcuda.backend import CudaBackend

    return CudaBackend(name)
