"""What RefBackend does in C besides convolution and pooling: linear layers, ReLU, sums, optimizers, the loss.

Each override takes float32 and leaves the rest to NumpyBackend. Where C is not always the faster one, a rule written
below decides from the shapes.
Next: backend.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcore.backend import Shape
from gradcore.backend.numpy import NumpyBackend
from gradref import _kernels
from gradref.memory import SMALL, Blocks

FLOAT32 = np.dtype(np.float32)
SMALL_LOGITS = 10_000  # up to so many, one exp after the other beats NumPy's passes
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}


class DenseOps(NumpyBackend):
    """Inherited by RefBackend."""

    _reference = False

    def __init__(self) -> None:
        self._empty = Blocks().empty

    # linear: in C or by NumPy's BLAS; in C the ReLU costs nothing

    def linear(self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        if not float32(x, weight):
            return super().linear(x, weight, bias)
        if self._reference or _forward_in_c(*x.shape, weight.shape[0]):
            return self._linear(x, weight, bias, False)
        y = self._blas(x, weight.T)
        return y if bias is None else np.add(y, bias, out=y)

    def linear_relu(self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        if not float32(x, weight):
            return super().linear_relu(x, weight, bias)
        if self._reference or _forward_in_c(*x.shape, weight.shape[0]):
            return self._linear(x, weight, bias, True)
        y = self.linear(x, weight, bias)
        return np.maximum(y, 0.0, out=y)

    def _linear(self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, relu: bool) -> np.ndarray:
        y = self._empty((x.shape[0], weight.shape[0]), np.float32)
        bias = None if bias is None else contiguous(bias)
        _kernels.linear(y, contiguous(x), contiguous(weight), bias, relu, self._reference)
        return y

    def linear_backward_input(self, grad: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if not float32(grad, weight):
            return super().linear_backward_input(grad, weight)
        if not self._reference and not _input_in_c(grad.shape[0], *weight.shape):
            return self._blas(grad, weight)
        dx = self._empty((grad.shape[0], weight.shape[1]), np.float32)
        _kernels.linear_backward_input(dx, contiguous(grad), contiguous(weight), self._reference)
        return dx

    def linear_backward_weight(self, grad: np.ndarray, x: np.ndarray) -> np.ndarray:
        if not float32(grad, x):
            return super().linear_backward_weight(grad, x)
        if not self._reference and not _weight_in_c(*grad.shape, x.shape[1]):
            return self._blas(grad.T, x)
        dw = self._empty((grad.shape[1], x.shape[1]), np.float32)
        _kernels.linear_backward_weight(dw, contiguous(grad), contiguous(x), self._reference)
        return dw

    def _blas(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows, columns = a.shape[0], b.shape[1]
        with np.errstate(all="ignore"):
            if rows * columns * 4 < SMALL:
                return np.matmul(a, b)
            return np.matmul(a, b, out=self._empty((rows, columns), np.float32))

    # elementwise and sums: one textbook loop each, so there is no other algorithm

    def relu(self, x: np.ndarray) -> np.ndarray:
        if not float32(x):
            return super().relu(x)
        x = contiguous(x)
        y = self._empty(x.shape, np.float32)
        _kernels.relu(y, x)
        return y

    def relu_backward(self, grad: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not float32(grad, y):
            return super().relu_backward(grad, y)
        dx = self._empty(y.shape, np.float32)
        _kernels.relu_backward(dx, contiguous(grad), contiguous(y))
        return dx

    def sum(self, x: np.ndarray, axis: Shape | None, keepdims: bool) -> np.ndarray:
        """The bias of a convolution in C: NumPy sums its axes one after the other."""
        if axis != (0, 2, 3) or x.ndim != 4 or not float32(x):
            return super().sum(x, axis, keepdims)
        sums = np.empty(x.shape[1], np.float32)
        _kernels.channel_sum(sums, contiguous(x))
        return sums.reshape(1, -1, 1, 1) if keepdims else sums

    # optimizers: one pass over memory

    def sgd_(
        self,
        parameters: Sequence[np.ndarray],
        grads: Sequence[np.ndarray],
        velocities: Sequence[np.ndarray],
        steps: Sequence[np.ndarray],
        rate: np.ndarray,
        momentum: float,
        dampening: float,
        weight_decay: float,
        nesterov: bool,
    ) -> None:
        for i, (p, g) in enumerate(zip(parameters, grads, strict=True)):
            v = velocities[i] if momentum else None
            if not _updatable(p, v) or not float32(g):
                rest = velocities[i : i + 1], steps[i : i + 1], rate, momentum, dampening, weight_decay, nesterov
                super().sgd_([p], [g], *rest)
                continue
            kept = 1.0 - dampening if int(steps[i]) else 1.0
            _kernels.sgd(p, contiguous(g), v, float(rate), momentum, kept, weight_decay, nesterov)
            steps[i][()] += 1

    def adam_(
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
        kept, decay = (1.0 - lr * weight_decay, 0.0) if decoupled else (1.0, weight_decay)
        for p, g, m, v, step in zip(parameters, grads, firsts, seconds, steps, strict=True):
            if not _updatable(p, m, v) or not float32(g):
                super().adam_([p], [g], [m], [v], [step], rate, beta1, beta2, eps, weight_decay, decoupled)
                continue
            step[()] += 1
            count = int(step)
            size, root = lr / (1.0 - beta1**count), (1.0 - beta2**count) ** -0.5
            _kernels.adam(p, contiguous(g), m, v, beta1, 1.0 - beta1, beta2, 1.0 - beta2, size, root, eps, kept, decay)

    # the loss

    def softmax_cross_entropy(
        self, logits: np.ndarray, labels: np.ndarray, ignore_index: int, reduction: str
    ) -> tuple[np.ndarray, np.ndarray]:
        if not _small(logits, labels):
            return super().softmax_cross_entropy(logits, labels, ignore_index, reduction)
        loss = np.empty(labels.shape if reduction == "none" else (), np.float32)
        log_probs = np.empty(logits.shape, np.float32)
        if not _kernels.softmax_cross_entropy(
            loss, log_probs, contiguous(logits), contiguous(labels), ignore_index, _REDUCTIONS[reduction]
        ):
            self.check_indices(labels, logits.shape[1], "cross_entropy", ignore_index)
        return loss, log_probs

    def softmax_cross_entropy_backward(
        self, grad: np.ndarray, log_probs: np.ndarray, labels: np.ndarray, ignore_index: int, reduction: str
    ) -> np.ndarray:
        if not _small(log_probs, labels):
            return super().softmax_cross_entropy_backward(grad, log_probs, labels, ignore_index, reduction)
        dx = np.empty(log_probs.shape, np.float32)
        grad = np.asarray(grad, np.float32, order="C")  # order, not ascontiguousarray, which gives a scalar an axis
        _kernels.softmax_cross_entropy_backward(
            dx, grad, contiguous(log_probs), contiguous(labels), ignore_index, _REDUCTIONS[reduction]
        )
        return dx


# Where the C product is at least as fast as NumPy's OpenBLAS with one thread (AVX-512, 64 to 10,000 rows).


def _forward_in_c(rows: int, inputs: int, outputs: int) -> bool:
    """Not for few rows or little work, nor where most of the last sixteen lanes would be empty."""
    return rows >= 8 and rows * inputs * outputs >= 2**17 and outputs > 0.6 * (outputs + -outputs % 16)


def _input_in_c(rows: int, outputs: int, inputs: int) -> bool:
    """BLAS packs the weight, which does not pay for few rows."""
    return 8 <= rows <= 48 and rows * inputs * outputs >= 2**20


def _weight_in_c(rows: int, outputs: int, inputs: int) -> bool:
    """A long sum for each entry, or none at all: of one row NumPy does not make a BLAS call."""
    return rows == 1 or rows >= max(256, 2 * inputs, 2 * outputs)


def contiguous(x: np.ndarray) -> np.ndarray:
    """x, or a copy that the kernels can read."""
    return x if x.flags.c_contiguous else np.array(x, order="C")


def float32(*arrays: np.ndarray) -> bool:
    """Whether all are float32 in native byte order."""
    return all([a.dtype == FLOAT32 for a in arrays])  # noqa: C419 a generator would cost as much as a small kernel


def _updatable(*arrays: np.ndarray | None) -> bool:
    """Whether a kernel can change them where they are."""
    return all(a is None or (a.dtype == np.float32 and a.flags.c_contiguous) for a in arrays)


def _small(logits: np.ndarray, labels: np.ndarray) -> bool:
    return logits.dtype == np.float32 and labels.dtype == np.int64 and 0 < logits.size <= SMALL_LOGITS
