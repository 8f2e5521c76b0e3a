"""A Function is one differentiable step: a forward in backend primitives, and its gradient rule beside it.

    class Multiply(Function):
        def forward(self, a, b):            # raw backend arrays
            self.saved = a, b
            return self.backend.multiply(a, b)

        def backward(self, grad):           # one gradient per operand
            a, b = self.saved
            return self.backend.multiply(grad, b), self.backend.multiply(grad, a)

Options go to __init__, tensors to the call: MaxPool2d(...)(x). One instance serves one call, so a weight used twice
is two nodes. The engine (autograd.py) sums over broadcast axes, accumulates and frees; a rule never does.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcore.autograd import mode
from gradcore.errors import BackendMismatch, DTypeError

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Backend
    from gradcore.tensor import Tensor
else:
    Tensor = None  # see bind

TENSOR_TYPES: set[type] = set()  # Tensor and its subclasses: asking for membership is cheaper than isinstance
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_next_number = itertools.count(1).__next__
_new = object.__new__


class Function:
    """Derive from this; write `forward` and `backward`.

    self.backend: the operands' backend. self.saved: what backward needs (None lets operands change afterwards).
    self.needs, in backward: which operands want a gradient; the others may get None.
    """

    __slots__ = ("backend", "inputs", "needs", "number", "saved", "shapes", "versions")

    broadcasts = False  # operands may be stretched: the engine sums their gradients back
    aliases = False  # the output may share memory with the first operand
    takes_integers = False  # integer and bool operands pass unconverted

    def forward(self, *arrays: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, grad: Array) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def __call__(self, *tensors: Tensor) -> Tensor:
        # The hot path: no keyword, no isinstance, no formatting. A recorded operation may cost 1 us above its backend.
        backend = tensors[0].backend
        dtype = tensors[0]._array.dtype
        if dtype is not FLOAT32 and dtype is not FLOAT64:
            tensors = self._settle(tensors)
        else:
            for t in tensors:
                if t._array.dtype is not dtype or t.backend is not backend:
                    tensors = self._settle(tensors)
                    break
        self.backend = backend
        self.saved = None
        out = _new(Tensor)
        out._array = self.forward(*[t._array for t in tensors])
        out.backend = backend
        if mode.recording:
            nodes = tuple([t._node for t in tensors])
            for node in nodes:
                if node is not None:
                    self.number = _next_number()
                    self.inputs = nodes
                    self.shapes = [t._array.shape for t in tensors]
                    self.versions = [(t._version, t._version[0]) for t in tensors if t._version is not None]
                    out._node = self
                    out._version = tensors[0]._version if self.aliases else None
                    return out  # type: ignore[no-any-return]
        out._node = None
        out._version = tensors[0]._version if self.aliases else [0]
        self.saved = None
        return out  # type: ignore[no-any-return]

    def record(self, x: Tensor) -> None:
        """Become a node above x that passes values through: how a layer marks its border."""
        self.number, self.backend = _next_number(), x.backend
        self.inputs, self.shapes = (x._node,), [x._array.shape]
        self.saved = self.versions = None

    def free(self) -> None:
        """Drop what backward needed; the node stays as a mark that the graph is used up."""
        self.inputs = None
        self.saved = None
        self.versions = None

    def _settle(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Off the hot path: convert integer operands to float32, and refuse what does not mix."""
        for t in tensors:
            if t.backend is not tensors[0].backend:
                raise BackendMismatch(
                    f"{self!r}: operands on backends {tensors[0].backend.name!r} and {t.backend.name!r}: "
                    "move one with .to(name)"
                )
        if not self.takes_integers:
            tensors = tuple([t if t._array.dtype.kind == "f" else t.astype(FLOAT32) for t in tensors])
        for t in tensors:
            if t._array.dtype != tensors[0]._array.dtype:
                kinds = f"{tensors[0]._array.dtype} and {t._array.dtype}"
                raise DTypeError(f"{self!r}: operands of {kinds}: convert one, for example .astype('float32')")
        return tensors

    def __repr__(self) -> str:
        return type(self).__name__

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} is part of a graph and cannot be copied or pickled: use tensor.detach()")


def as_tensor(value: Any, like: Tensor) -> Tensor:
    """value as an operand beside `like`: on its backend; lists and scalars take its type, arrays keep theirs."""
    if value.__class__ in TENSOR_TYPES:
        return value  # type: ignore[no-any-return]
    weak = isinstance(value, int | float | list | tuple | np.generic)
    dtype = like.dtype if weak and like.dtype.kind == "f" else None
    return Tensor(value, dtype, backend=like.backend)


def bind(tensor_class: type[Tensor]) -> None:
    """Called once by tensor.py: operators need Functions and Functions make Tensors, so one import must wait."""
    global Tensor
    Tensor = tensor_class  # type: ignore[misc]
    TENSOR_TYPES.add(tensor_class)
