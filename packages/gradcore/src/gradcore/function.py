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
from gradcore.errors import ArgumentError, BackendMismatch, DTypeError, GraphError

if TYPE_CHECKING:
    from gradcore.backend.base import BaseBackend
    from gradcore.backend.protocol import Shape
    from gradcore.tensor import Tensor
else:
    Tensor = None  # see bind

TENSOR_TYPES: set[Any] = set()  # Tensor and its subclasses: asking for membership is cheaper than isinstance
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

    backend: BaseBackend
    inputs: Any  # the operands' nodes; None once freed
    needs: tuple[bool, ...]
    number: int
    saved: Any
    shapes: tuple[Shape, ...]
    versions: Any

    def forward(self, *arrays: Any, **_: Any) -> Any:  # a subclass names its operands
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, grad: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Apply to tensors: forward on their arrays, and a node on the tape if a gradient flows.

        Raises GraphError for an instance that waits on a tape already: its first call's gradient would be lost.
        """
        if getattr(self, "inputs", None) is not None:
            raise GraphError(f"{self!r}: one instance serves one call, and this one is on a tape: make a new one")
        try:
            if len(tensors) == 1:
                return self.unary(tensors[0])
            if len(tensors) == 2:
                return self.binary(tensors[0], tensors[1])
            return self._any(tensors)
        except (AttributeError, IndexError):
            self._refuse_others(tensors)
            raise

    # unary and binary are the hot path: a recorded operation may cost 1 us above its backend call. So they are written
    # out, without *args, loops, comprehensions (a frame of their own on Python 3.11), keywords or isinstance.

    def unary(self, x: Tensor) -> Tensor:
        a = x._array
        if a.dtype is not FLOAT32 and a.dtype is not FLOAT64:
            return self._any((x,))
        self.backend = backend = x.backend
        self.saved = None
        out = _new(Tensor)
        out.backend = backend
        out._array = self.forward(a)
        node = x._node
        if node is not None and mode.recording:
            self.number = _next_number()
            self.inputs = (node,)
            self.shapes = (a.shape,)
            version = x._version
            self.versions = None if version is None else ((version, version[0]),)
            out._node = self
            out._version = version if self.aliases else None
        else:
            self.saved = None
            out._node = None
            out._version = x._version if self.aliases else [0]
        return out

    def binary(self, x: Tensor, y: Tensor) -> Tensor:
        a, b = x._array, y._array
        backend, dtype = x.backend, a.dtype
        if b.dtype is not dtype or y.backend is not backend or (dtype is not FLOAT32 and dtype is not FLOAT64):
            return self._any((x, y))
        self.backend = backend
        self.saved = None
        out = _new(Tensor)
        out.backend = backend
        try:
            out._array = self.forward(a, b)
        except Exception:
            self.explain(a.shape, b.shape)
            raise
        node, other = x._node, y._node
        if (node is not None or other is not None) and mode.recording:
            self.number = _next_number()
            self.inputs = (node, other)
            self.shapes = (a.shape, b.shape)
            version, version2 = x._version, y._version
            if version is None:
                self.versions = None if version2 is None else ((version2, version2[0]),)
            elif version2 is None:
                self.versions = ((version, version[0]),)
            else:
                self.versions = ((version, version[0]), (version2, version2[0]))
            out._node = self
            out._version = version if self.aliases else None
        else:
            self.saved = None
            out._node = None
            out._version = x._version if self.aliases else [0]
        return out

    def _any(self, tensors: tuple[Tensor, ...]) -> Tensor:
        """The same for any number of operands, and for those that must be converted or refused first."""
        tensors = self._settle(tensors)
        first = tensors[0]
        self.backend = first.backend
        self.saved = None
        try:
            out = Tensor._wrap(self.forward(*[t._array for t in tensors]), first.backend)
        except Exception:
            self.explain(*[t.shape for t in tensors])
            raise
        if self.aliases:
            out._version = first._version
        if mode.recording and any(t._node is not None for t in tensors):
            self.number = _next_number()
            self.inputs = tuple([t._node for t in tensors])
            self.shapes = tuple([t._array.shape for t in tensors])
            self.versions = tuple([(t._version, t._version[0]) for t in tensors if t._version is not None])
            out._node = self
        else:
            self.saved = None
            if not self.aliases:
                out._version = [0]
        return out

    def record(self, x: Tensor) -> None:
        """Become a node above x that passes values through: how a layer marks its border."""
        self.number, self.backend = _next_number(), x.backend
        self.inputs, self.shapes = (x._node,), (x._array.shape,)
        self.saved = self.versions = None

    def free(self) -> None:
        """Drop what backward needed; the node stays as a mark that the graph is used up."""
        self.inputs = None
        self.saved = None
        self.versions = None

    def _settle(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Off the hot path: convert integer operands to the others' float type, and refuse what does not mix."""
        for t in tensors:
            if t.backend is not tensors[0].backend:
                raise BackendMismatch(
                    f"{self!r}: operands on backends {tensors[0].backend.name!r} and {t.backend.name!r}: "
                    "move one with .to(name)"
                )
        if not self.takes_integers:
            floats = [t._array.dtype for t in tensors if t._array.dtype.kind == "f"]
            tensors = tuple([t if t._array.dtype.kind == "f" else t.astype((floats or [FLOAT32])[0]) for t in tensors])
        for t in tensors:
            if t._array.dtype != tensors[0]._array.dtype:
                kinds = f"{tensors[0]._array.dtype} and {t._array.dtype}"
                raise DTypeError(f"{self!r}: operands of {kinds}: convert one, for example .astype('float32')")
        return tensors

    def explain(self, *shapes: Shape) -> None:
        """Called when forward failed: raise a clearer error if the operands' shapes are the cause."""

    def _refuse_others(self, operands: tuple[Any, ...]) -> None:
        """Called when the call failed: raise a clearer error if an operand is no Tensor."""
        if not operands:
            raise ArgumentError(f"{self!r}: at least one tensor is needed") from None
        for x in operands:
            if x.__class__ not in TENSOR_TYPES:
                kind = type(x).__name__
                raise DTypeError(f"{self!r}: operands are Tensors, got {kind}: make one with gradcore.tensor") from None

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


def watch(out: Tensor, option: Any) -> Tensor:
    """out, whose backward raises if `option`, a tensor that its Function was made with, changes until then."""
    node, version = out._node, getattr(option, "_version", None)
    if node is not None and version is not None:
        if node.saved is None:  # the operands may change
            node.saved, node.versions = (), ()
        node.versions = (*(node.versions or ()), (version, version[0]))
    return out


def bind(tensor_class: type[Tensor]) -> None:
    """Called once by tensor.py: operators need Functions and Functions make Tensors, so one import must wait."""
    global Tensor
    Tensor = tensor_class  # type: ignore[misc]
    TENSOR_TYPES.add(tensor_class)
