"""Tensor: a backend array that remembers the Function that made it.

A tensor owns its memory: data from outside is copied in, arrays handed out are read-only views. Values change in
place only through `copy_` and the optimizers, which bump a version, so that a backward over changed values is an error.
Arithmetic lives in operators.py; here are data, gradients and devices.

Next: function.py, then autograd.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gradcore import autograd, function
from gradcore.backend.base import BaseBackend
from gradcore.backend.protocol import Array, Shape
from gradcore.convert import check_dtype, host_array
from gradcore.errors import BackendMismatch, DTypeError, GraphError, ShapeError
from gradcore.function import FLOAT32, TENSOR_TYPES, as_tensor
from gradcore.operators import Operators


class Tensor(Operators):
    """A multidimensional array with a gradient.

    data: an array (its type is kept; float16 and small integers are widened), or lists and Python numbers (float32).
    requires_grad: keep a gradient in `.grad` after backward; float types only.

    >>> x = Tensor([[1.0, 2.0]], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    Tensor([[2., 4.]])
    """

    __slots__ = ("__weakref__", "_array", "_node", "_version", "backend")
    _array: Array
    _node: Any  # the Function that made it, a Leaf if it wants a gradient, None for a constant
    _version: list[int] | None  # shared with views; None for a computed tensor, which cannot change in place
    backend: BaseBackend

    def __init__(
        self,
        data: Any,
        dtype: npt.DTypeLike | None = None,
        *,
        backend: str | BaseBackend | None = None,
        requires_grad: bool = False,
    ) -> None:
        from gradcore.backend.registry import get_backend

        if isinstance(data, Tensor):
            backend = data.backend if backend is None else backend
            data = data.numpy()
        self.backend = get_backend(backend)
        self._array = self.backend.asarray(host_array(data, dtype))
        self._node = None
        self._version = [0]
        if requires_grad:
            self.requires_grad_()

    @classmethod
    def _wrap(cls, array: Array, backend: BaseBackend) -> Tensor:
        """A read-only Tensor around an array that others may hold too."""
        out = object.__new__(Tensor)
        out._array, out.backend, out._node, out._version = array, backend, None, None
        return out

    def __init_subclass__(cls) -> None:
        TENSOR_TYPES.add(cls)
        autograd.NOT_ARRAYS.add(cls)

    # what it is

    @property
    def shape(self) -> Shape:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return len(self._array.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self._array.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len: a tensor of shape () has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        from gradcore.backend.registry import get_backend

        body = np.array2string(self.numpy(), separator=", ", threshold=100, prefix=type(self).__name__ + "(")
        notes = []
        if self.dtype != FLOAT32:
            notes.append(f"dtype={self.dtype}")
        if self.backend is not get_backend():
            notes.append(f"backend={self.backend.name}")
        if self._node is not None:
            leaf = self._node.__class__ is autograd.Leaf
            notes.append("requires_grad=True" if leaf else f"from={self._node!r}")
        return f"{type(self).__name__}({', '.join([body, *notes])})"

    # values out

    def numpy(self) -> np.ndarray:
        """The values as a read-only NumPy array; on a CPU it shares memory. Waits for the device."""
        view = self.backend.to_numpy(self._array).view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        view = self.numpy()
        if copy or (dtype is not None and np.dtype(dtype) != view.dtype):
            if copy is False:
                raise ValueError(f"__array__: {view.dtype} as {dtype} needs a copy, and copy=False was asked for")
            return view.astype(dtype or view.dtype)
        return view

    __array_ufunc__ = None  # numpy_array + tensor: NumPy steps back and __radd__ answers

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The array for another library, without a copy; writing through it bypasses the version check."""
        self._own()
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._own()
        return self._array.__dlpack_device__()

    def _own(self) -> None:
        """NumPy's functions give a scalar, not an array, where the result has no axes: make it an array after all."""
        if isinstance(self._array, np.generic):
            self._array = np.asarray(self._array)  # type: ignore[assignment]

    def item(self) -> Any:
        """The one element as a Python number, with no graph."""
        if self.size != 1:
            raise ShapeError(f"item: one element is needed, the tensor has shape {self.shape}")
        return self.backend.to_numpy(self._array).reshape(()).item()

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    # gradients

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows through this tensor."""
        return self._node is not None

    def requires_grad_(self, wanted: bool = True) -> Tensor:
        """Start (or stop) to want a gradient. Leaves only: not for a tensor that has a graph."""
        if self._node is not None and self._node.__class__ is not autograd.Leaf:
            raise GraphError(f"requires_grad_: this tensor was computed by {self._node!r}; use detach() first")
        if wanted and self.dtype.kind != "f":
            raise DTypeError(f"requires_grad: gradients need float32 or float64, the tensor is {self.dtype}")
        self._own()
        if wanted and self._version is None:  # shares memory with a recorded result, which must not change
            self._array, self._version = self.backend.astype(self._array, self.dtype), [0]
        if wanted != self.requires_grad:
            self._node = autograd.Leaf(self._array, self.backend) if wanted else None
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward left, of this tensor's shape; None before. Assign None to clear it."""
        return self._node.grad if self._node.__class__ is autograd.Leaf else None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if self._node.__class__ is not autograd.Leaf:
            if value is None:
                return  # nothing to clear: a frozen parameter in zero_grad
            raise GraphError("grad: only a tensor made with requires_grad=True keeps a gradient")
        if value is not None:
            value = as_tensor(value, self)
            if value.backend is not self.backend:
                raise BackendMismatch(f"grad: on {value.backend.name!r}, for a tensor on {self.backend.name!r}")
            if value.shape != self.shape or value.dtype != self.dtype:
                raise ShapeError(f"grad: {value.dtype} {value.shape} for a tensor of {self.dtype} {self.shape}")
            value = value if value._node is None else value.detach()  # a gradient keeps no graph alive
        self._node.grad = value

    def backward(self, grad: Any = None, *, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Add d(self)/d(leaf) to the `.grad` of every leaf. grad: the upstream gradient, ones for a single number.

        Frees the graph unless retain_graph. Raises GraphError without a graph or on a freed one.
        """
        autograd.refuse_create_graph(create_graph)
        if self._node is None:
            raise GraphError(
                "backward: this tensor has no graph: nothing it was computed from has requires_grad=True, "
                "or it was computed inside no_grad"
            )
        start = autograd.start_gradient("backward", self, grad)
        autograd.accumulate(autograd.run(self._node, start, retain_graph=retain_graph))

    def detach(self) -> Tensor:
        """The same values without the graph; shares memory."""
        out = Tensor._wrap(self._array, self.backend)
        out._version = self._version
        return out

    # change in place, copies, devices

    def copy_(self, source: Any) -> Tensor:
        """Overwrite the values. Same shape; converts the type. Not for a tensor with a graph or a gradient."""
        computed = self._node is not None and self._node.__class__ is not autograd.Leaf
        if self._version is None or computed:
            made = f"was computed by {self._node!r}" if computed else "is a result or a gradient"
            raise GraphError(f"copy_: this tensor {made} and cannot change in place; only tensors you created can")
        source = as_tensor(source, self)
        if source.shape != self.shape:
            raise ShapeError(f"copy_: values of shape {source.shape} for a tensor of shape {self.shape}")
        source = source.to(self.backend)
        array = source._array if source.dtype == self.dtype else self.backend.astype(source._array, self.dtype)
        self._own()
        self.backend.copy_(self._array, array)
        self._bump()
        return self

    def _bump(self) -> None:
        """Say that the values changed in place."""
        if self._version is not None:
            self._version[0] += 1

    def astype(self, dtype: npt.DTypeLike) -> Tensor:
        """Converted copy; the gradient converts back, and ends at an integer type. Same type: the tensor itself."""
        target = np.dtype(dtype)
        if target == self.dtype:
            return self
        check_dtype("astype", target)
        from gradcore.ops.shape import AsType

        return AsType(target)(self if target.kind == "f" else self.detach())

    def to(self, backend: str | BaseBackend) -> Tensor:
        """The tensor on another backend, by name; itself if it is there already. A leaf stays a leaf, without graph."""
        from gradcore.backend.registry import get_backend

        target = get_backend(backend)
        if target is self.backend:
            return self
        if self._node is not None and self._node.__class__ is not autograd.Leaf:
            raise GraphError("to: a tensor with a graph stays on its backend; move the inputs, or detach() first")
        return Tensor(self.numpy(), backend=target, requires_grad=self.requires_grad)

    def _move(self, backend: BaseBackend, dtype: np.dtype[Any]) -> None:
        """Give this leaf and its gradient another backend or float type, in place, for Layer.to and Layer.astype."""
        if backend is self.backend and dtype == self.dtype:
            return
        grad = self.grad
        moved = Tensor(self.numpy(), dtype, backend=backend, requires_grad=self.requires_grad)
        self._array, self.backend, self._node = moved._array, backend, moved._node
        if grad is not None:
            self.grad = Tensor(grad.numpy(), dtype, backend=backend)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Values only: a copy never carries a graph along."""
        leaf = self._node.__class__ is autograd.Leaf
        return type(self)(self.numpy(), backend=self.backend, requires_grad=leaf)

    def __reduce__(self) -> Any:
        leaf = self._node.__class__ is autograd.Leaf
        return _rebuild, (type(self), np.array(self.numpy()), self.backend.name, leaf)


def _rebuild(cls: Callable[..., Tensor], data: np.ndarray, backend: str, requires_grad: bool) -> Tensor:
    return cls(data, backend=backend, requires_grad=requires_grad)


tensor = Tensor


function.bind(Tensor)
autograd.NOT_ARRAYS.add(Tensor)
