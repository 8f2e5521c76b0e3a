"""Every exception that grad raises on purpose.

The text names the operation, what came, what was expected and, where something is missing, what to do.
Each class also derives from the built-in that a Python programmer would catch.
"""


class GradcoreError(Exception):
    """Base of all errors below."""


class ShapeError(GradcoreError, ValueError):
    """Shapes or sizes that do not fit an operation."""


class DTypeError(GradcoreError, TypeError):
    """An element type that an operation does not take, or two that do not mix."""


class ArgumentError(GradcoreError, ValueError):
    """An option out of its range: a stride of 0, a label that is no class, a negative learning rate."""


class GraphError(GradcoreError, RuntimeError):
    """A backward that cannot be done: no graph, a freed one, or values changed since the forward."""


class BackendMismatch(GradcoreError, TypeError):
    """Tensors of two backends in one operation."""


class BackendUnavailable(GradcoreError, RuntimeError):
    """A backend that is not installed, is broken, or cannot run on this machine."""


class NotSupported(GradcoreError, AttributeError):
    """An operation that a backend does not implement."""


class CheckpointError(GradcoreError, OSError):
    """A checkpoint that cannot be written, read, or does not fit the model."""
