"""What a backend is: the primitives it must have and the capabilities it may have.

An Array is opaque: gradcore never writes `a + b` on arrays, it calls `backend.add(a, b)`. Names and meanings come
from the Python array API standard wherever it has one. Shapes, dtypes and options reach a backend already checked
by `gradcore.ops`; axes are non-negative. Arguments are passed by position. No result may change an operand;
a result may be a view of an operand (`reshape`, `permute_dims`, `broadcast_to`, `strided_slice`).

Next: base.py, the derived operations that a backend inherits and may override.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]
Pair = tuple[int, int]
Scalar = int | float


@runtime_checkable
class Array(Protocol):
    """A block of numbers on some device. Element types: float32, float64, int32, int64, uint8, bool."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype object, native byte order."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class Backend(Protocol):
    """The primitives. A backend derives from BaseBackend, which adds the derived operations to them."""

    name: str  # as registered: "numpy", "ref", "cuda:1"
    device: str  # for people: "CPU, 1 thread (AVX-512)"
    precision: str  # for people: "float32", "tf32"

    # memory
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> Array: ...
    def full(self, shape: Shape, value: Scalar, dtype: npt.DTypeLike) -> Array: ...
    def asarray(self, host: np.ndarray) -> Array:
        """A contiguous copy of a host array (any strides, native byte order), owned by the backend."""

    def to_numpy(self, x: Array) -> np.ndarray:
        """The values on the host; may share memory with x on a CPU. Waits for them."""

    def from_dlpack(self, x: Any) -> Array:
        """Another library's array, without a copy where the device is the same."""

    def copy_(self, destination: Array, source: Array) -> None:
        """Overwrite destination's memory. Same shape and dtype."""

    def astype(self, x: Array, dtype: npt.DTypeLike) -> Array:
        """Converted copy; float to integer truncates, anything to bool is `!= 0`."""

    def synchronize(self) -> None:
        """Wait for all work; raise what it left behind (a bad label on the device, say)."""

    # elementwise, with broadcasting; one of the two operands may be a Python scalar (it takes the array's dtype)
    def add(self, a: Array, b: Array | Scalar) -> Array: ...
    def subtract(self, a: Array | Scalar, b: Array | Scalar) -> Array: ...
    def multiply(self, a: Array, b: Array | Scalar) -> Array: ...
    def divide(self, a: Array | Scalar, b: Array | Scalar) -> Array: ...
    def power(self, a: Array | Scalar, b: Array | Scalar) -> Array: ...
    def maximum(self, a: Array, b: Array | Scalar) -> Array:
        """NaN if either is NaN."""

    def greater(self, a: Array | Scalar, b: Array | Scalar) -> Array: ...
    def greater_equal(self, a: Array | Scalar, b: Array | Scalar) -> Array: ...
    def equal(self, a: Array, b: Array | Scalar) -> Array: ...
    def where(self, condition: Array, a: Array | Scalar, b: Array | Scalar) -> Array:
        """At least one of a and b is an array."""

    def negative(self, x: Array) -> Array: ...
    def abs(self, x: Array) -> Array: ...
    def sign(self, x: Array) -> Array: ...
    def exp(self, x: Array) -> Array: ...
    def log(self, x: Array) -> Array: ...
    def log1p(self, x: Array) -> Array: ...
    def sqrt(self, x: Array) -> Array: ...
    def tanh(self, x: Array) -> Array: ...

    # reductions; axis None is all axes
    def sum(self, x: Array, axis: Shape | None, keepdims: bool) -> Array:
        """Float sums are as good as pairwise: a million float32 terms stay within 1e-4 relative, along any axis."""

    def max(self, x: Array, axis: Shape | None, keepdims: bool) -> Array:
        """NaN if a NaN is among the entries."""

    def argmax(self, x: Array, axis: int | None, keepdims: bool) -> Array:
        """int64: the first NaN if there is one, else the first of the largest."""

    # shape
    def reshape(self, x: Array, shape: Shape) -> Array: ...
    def permute_dims(self, x: Array, axes: Shape) -> Array: ...
    def broadcast_to(self, x: Array, shape: Shape) -> Array: ...
    def concat(self, arrays: Sequence[Array], axis: int) -> Array: ...
    def strided_slice(self, x: Array, starts: Shape, stops: Shape, steps: Shape) -> Array:
        """x[starts[0]:stops[0]:steps[0], ...], one entry an axis. A negative step may have stop -1: down to index 0."""

    def strided_slice_backward(self, grad: Array, shape: Shape, starts: Shape, stops: Shape, steps: Shape) -> Array:
        """Zeros of `shape` with grad written where strided_slice read."""

    def take(self, x: Array, indices: Array, axis: int) -> Array:
        """indices: int32 or int64, any shape, 0 <= index < x.shape[axis]; the index axes replace `axis`."""

    def take_backward(self, grad: Array, indices: Array, axis: int, length: int) -> Array:
        """Sum grad into zeros where take read; an index taken twice receives both. Deterministic."""

    # linear algebra
    def matmul(self, a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array:
        """At least two axes each; leading axes broadcast. A transpose flag swaps the last two axes first."""

    # random numbers
    def random_uniform(self, shape: Shape, key: int, counter: Array) -> Array:
        """float32 in [0, 1) from Philox4x32-10 (Salmon et al. 2011), the same bits on every backend.

        Element 4*i + j is word j of the block with the 64-bit counter value c + i in the low two counter words
        (high two 0) under the 64-bit key (low word first), as (word >> 8) * 2**-24. `counter`, int64 of shape (),
        holds c; it lives in backend memory and is advanced in place by ceil(size / 4).
        """


@runtime_checkable
class Conv2dOps(Protocol):
    """Two-dimensional cross-correlation (PMPP chapter 16), NCHW.

    x (N, C, H, W), weight (O, C/groups, KH, KW), bias (O,) or None, y and grad (N, O, OH, OW);
    OH = (H + 2*padding - dilation*(KH-1) - 1) // stride + 1. Pairs are (rows, columns). N may be 0.
    """

    def conv2d(
        self, x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
    ) -> Array: ...
    def conv2d_backward_input(
        self, grad: Array, weight: Array, x_shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
    ) -> Array: ...
    def conv2d_backward_weight(
        self, grad: Array, x: Array, weight_shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
    ) -> Array: ...


@runtime_checkable
class Pool2dOps(Protocol):
    """Two-dimensional pooling, NCHW.

    The output size is given (ceil_mode is decided in gradcore.ops); a window may hang over the right and lower
    edge. Every window holds at least one entry of the input.
    """

    def max_pool2d(
        self, x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, out_size: Pair
    ) -> tuple[Array, Array]:
        """(y, indices): indices int32, flat in the H*W plane: the window's last NaN, else its first maximum.

        Padding never wins.
        """

    def max_pool2d_backward(
        self,
        grad: Array,
        indices: Array,
        x_shape: Shape,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
    ) -> Array:
        """Each grad entry is added where its index points; overlapping windows add up."""

    def avg_pool2d(
        self, x: Array, kernel: Pair, stride: Pair, padding: Pair, out_size: Pair, count_include_pad: bool
    ) -> Array:
        """Divide by the entries of the window that lie within the padded input, or within the input alone."""

    def avg_pool2d_backward(
        self, grad: Array, x_shape: Shape, kernel: Pair, stride: Pair, padding: Pair, count_include_pad: bool
    ) -> Array: ...


class Graph(Protocol):
    """A recorded step."""

    def replay(self) -> None: ...


@runtime_checkable
class GraphCapture(Protocol):
    """Record the work of a function once and replay it without Python. Used through `gradcore.capture`."""

    def capture_graph(self, function: Callable[[], None]) -> Graph: ...


CAPABILITIES: tuple[type, ...] = (Conv2dOps, Pool2dOps, GraphCapture)
