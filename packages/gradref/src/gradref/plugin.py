"""The two hooks by which gradcore finds the backend `ref`.

The compiled module is imported inside them: a build that does not load makes the backend unavailable, with the reason,
and nothing else.
Next: backend.py.
"""

from __future__ import annotations

from gradcore.backend import BackendInfo, BaseBackend, hookimpl
from gradcore.errors import BackendUnavailable

PRIORITY = 20  # above numpy (10), below cuda (30)


@hookimpl
def gradcore_backend_info() -> BackendInfo:
    try:
        from gradref.backend import RefBackend

        capabilities = RefBackend().capabilities
    except (ImportError, ValueError) as error:
        return BackendInfo("ref", PRIORITY, available=False, reason=_reason(error))
    return BackendInfo("ref", PRIORITY, available=True, capabilities=capabilities)


@hookimpl
def gradcore_create_backend(name: str) -> BaseBackend:
    if name != "ref":
        raise BackendUnavailable(f"backend 'ref' has no numbered devices, got {name!r}")
    try:
        from gradref.backend import RefBackend

        return RefBackend()
    except (ImportError, ValueError) as error:
        raise BackendUnavailable(f"backend 'ref': {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """One line. The kernels are missing, say, where the source folder is on the path and nothing was installed."""
    text = " ".join(str(error).split())
    return f"the C kernels do not load: {text}" if isinstance(error, ImportError) else text
