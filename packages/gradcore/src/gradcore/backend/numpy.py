"""The built-in backend: an Array is a NumPy array, a primitive is the NumPy function of that name.

Obvious code first; what NumPy itself gets wrong (float sums down a column, warnings on infinities) is put right here.
It computes any float type, so float64 networks and the gradient checks run on it.

Next: numpy_conv2d.py and numpy_pool2d.py; philox.py for the random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcore.backend.base import BaseBackend
from gradcore.backend.numpy_conv2d import NumpyConv2d
from gradcore.backend.numpy_pool2d import NumpyPool2d
from gradcore.backend.philox import uniform
from gradcore.backend.protocol import Scalar, Shape
from gradcore.errors import GraphError

_BLOCK = 256  # terms added one by one before partial sums are summed again


class NumpyBackend(NumpyConv2d, NumpyPool2d, BaseBackend):
    """Everything on the CPU, with NumPy."""

    name = "numpy"
    device = "CPU"

    # memory

    def empty(self, shape: Shape, dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def full(self, shape: Shape, value: Scalar, dtype: Any) -> np.ndarray:
        return np.full(shape, value, dtype)

    def asarray(self, host: np.ndarray) -> np.ndarray:
        return np.array(host, order="C")

    def to_numpy(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x)

    def from_dlpack(self, x: Any) -> np.ndarray:
        return np.from_dlpack(x)

    def copy_(self, destination: np.ndarray, source: np.ndarray) -> None:
        if not destination.flags.writeable:
            raise GraphError(f"copy_: a broadcast view of shape {destination.shape} cannot change in place")
        np.copyto(destination, source)

    def astype(self, x: np.ndarray, dtype: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    # elementwise: the NumPy functions themselves

    add = staticmethod(np.add)
    subtract = staticmethod(np.subtract)
    multiply = staticmethod(np.multiply)
    maximum = staticmethod(np.maximum)
    greater = staticmethod(np.greater)
    greater_equal = staticmethod(np.greater_equal)
    equal = staticmethod(np.equal)
    negative = staticmethod(np.negative)
    abs = staticmethod(np.abs)
    sign = staticmethod(np.sign)
    tanh = staticmethod(np.tanh)

    def where(self, condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
        return np.where(condition, a, b)

    # these pass through infinity or NaN in correct programs (log 0, 1/0): no warning for that

    def divide(self, a: Any, b: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.divide(a, b)

    def power(self, a: Any, b: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.power(a, b)

    def exp(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.exp(x)

    def log(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.log(x)

    def log1p(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.log1p(x)

    def sqrt(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.sqrt(x)

    # reductions

    def sum(self, x: np.ndarray, axis: Shape | None, keepdims: bool) -> np.ndarray:
        """NumPy adds pairwise along contiguous memory only; other long axes are summed in blocks, or apart, first."""
        if x.ndim > 1 and x.size > _BLOCK:
            axes = range(x.ndim) if axis is None else axis
            if len(axes) < x.ndim or not x.flags.c_contiguous:
                for i in axes:
                    while x.shape[i] > _BLOCK and x.strides[i] != x.itemsize:
                        x = np.add.reduceat(x, np.arange(0, x.shape[i], _BLOCK), axis=i)
                strided = [i for i in axes if x.strides[i] != x.itemsize]
                while len(strided) > 1 and math.prod(x.shape[i] for i in strided) > 16 * _BLOCK:
                    x = np.sum(x, axis=strided.pop(0), keepdims=True)
        elif x.ndim == 1 and x.size > _BLOCK:
            x = np.ascontiguousarray(x)
        return np.sum(x, axis=axis, keepdims=keepdims)

    def max(self, x: np.ndarray, axis: Shape | None, keepdims: bool) -> np.ndarray:
        return np.max(x, axis=axis, keepdims=keepdims)

    def argmax(self, x: np.ndarray, axis: int | None, keepdims: bool) -> np.ndarray:
        return np.argmax(x, axis=axis, keepdims=keepdims)

    # shape

    def reshape(self, x: np.ndarray, shape: Shape) -> np.ndarray:
        return np.reshape(x, shape)

    def permute_dims(self, x: np.ndarray, axes: Shape) -> np.ndarray:
        return np.transpose(x, axes)

    def broadcast_to(self, x: np.ndarray, shape: Shape) -> np.ndarray:
        return np.broadcast_to(x, shape)

    def concat(self, arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
        return np.concatenate(arrays, axis)

    def strided_slice(self, x: np.ndarray, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
        return x[_slices(starts, stops, steps)]

    def strided_slice_backward(
        self, grad: np.ndarray, shape: Shape, starts: Shape, stops: Shape, steps: Shape
    ) -> np.ndarray:
        grad_x = np.zeros(shape, grad.dtype)
        grad_x[_slices(starts, stops, steps)] = grad
        return grad_x

    def take(self, x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
        try:
            return np.take(x, indices, axis)
        except IndexError:
            self.check_indices(indices, x.shape[axis], "take")
            raise

    def take_backward(self, grad: np.ndarray, indices: np.ndarray, axis: int, length: int) -> np.ndarray:
        shape = (*grad.shape[:axis], length, *grad.shape[axis + indices.ndim :])
        grad_x = np.zeros(shape, np.float64)  # adds one by one: an index may come a million times
        index_axes = tuple(range(axis, axis + indices.ndim))
        wide = np.moveaxis(grad.astype(np.float64), index_axes, tuple(range(indices.ndim)))
        np.add.at(np.moveaxis(grad_x, axis, 0), indices, wide)
        return grad_x.astype(grad.dtype)

    # linear algebra and random numbers

    def matmul(self, a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.matmul(a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b)

    def random_uniform(self, shape: Shape, key: int, counter: np.ndarray) -> np.ndarray:
        size = int(np.prod(shape))
        values = uniform(key, int(counter), size)
        counter += -(-size // 4)
        return values.reshape(shape)

    # derived operations that NumPy does in fewer passes, or warns about

    def log_softmax(self, x: np.ndarray, axis: int) -> np.ndarray:
        with np.errstate(all="ignore"):  # inf - inf
            return super().log_softmax(x, axis)

    def append_(self, buffer: np.ndarray, cursor: np.ndarray, value: np.ndarray) -> None:
        buffer[int(cursor)] = np.reshape(value, ())
        cursor += 1

    def softmax_cross_entropy(
        self, logits: np.ndarray, labels: np.ndarray, ignore_index: int, reduction: str
    ) -> tuple[np.ndarray, np.ndarray]:
        log_probs = self.log_softmax(logits, 1)
        self.check_indices(labels, logits.shape[1], "cross_entropy", ignore_index)
        kept = labels != ignore_index
        losses = np.zeros(labels.shape, logits.dtype)
        losses[kept] = -log_probs[kept, labels[kept]]
        if reduction == "none":
            return losses, log_probs
        total = np.sum(losses)
        return (self.divide(total, logits.dtype.type(kept.sum())) if reduction == "mean" else total), log_probs

    def adam_(  # the formula of BaseBackend.adam_ without its temporary arrays
        self,
        parameters: Sequence[np.ndarray],
        grads: Sequence[np.ndarray],
        firsts: Sequence[np.ndarray],
        seconds: Sequence[np.ndarray],
        steps: Sequence[np.ndarray],
        rate: np.ndarray,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
    ) -> None:
        lr = float(rate)
        with np.errstate(all="ignore"):
            for p, g, m, v, step in zip(parameters, grads, firsts, seconds, steps, strict=True):
                step += 1
                count = int(step)
                if weight_decay and decoupled:
                    p *= 1.0 - lr * weight_decay
                elif weight_decay:
                    g = g + p * weight_decay
                scratch = np.multiply(g, 1.0 - beta1, out=np.empty_like(p))  # an array also for shape ()
                m *= beta1
                m += scratch
                np.multiply(g, g, out=scratch)
                scratch *= 1.0 - beta2
                v *= beta2
                v += scratch
                np.sqrt(v, out=scratch)
                scratch /= (1.0 - beta2**count) ** 0.5
                scratch += eps
                np.divide(m, scratch, out=scratch)
                scratch *= lr / (1.0 - beta1**count)
                p -= scratch


def _slices(starts: Shape, stops: Shape, steps: Shape) -> tuple[slice, ...]:
    """Slices for NumPy, where a stop of -1 would mean "before the last"."""
    return tuple(
        slice(start, None if step < 0 and stop < 0 else stop, step)
        for start, stop, step in zip(starts, stops, steps, strict=True)
    )
