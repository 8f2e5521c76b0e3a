"""The derived operations, composed from primitives: a backend inherits them and overrides what it can do faster.

An override is the only switch there is: no flag, no lookup, nothing on the hot path. Every method here has the same
contract as its override, and the conformance suite holds both against one float64 reference.

Next: fused.py, what a peephole calls; numpy.py, the built-in backend; protocol.py, the primitives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gradcore.backend.fused import FusedOperations
from gradcore.backend.protocol import CAPABILITIES, Array, Backend, Shape
from gradcore.errors import ArgumentError, NotSupported

if TYPE_CHECKING:
    Primitives = Backend
else:
    Primitives = object  # a missing primitive must be missing, not a Protocol's empty method


class BaseBackend(FusedOperations, Primitives):
    """Derive a backend from this and implement the primitives of `Backend`."""

    name = "unnamed"
    device = "unknown device"
    precision = "float32"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Names of the optional Protocols that this backend implements."""
        return tuple(capability.__name__ for capability in CAPABILITIES if isinstance(self, capability))

    def __repr__(self) -> str:
        return f"<backend {self.name!r} on {self.device}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:  # called only for what is missing
            for capability in CAPABILITIES:
                if name in vars(capability):
                    raise NotSupported(f"backend {self.name!r} has no {name}: implement {capability.__name__}")
            if name in vars(Backend):
                raise NotSupported(f"backend {self.name!r} lacks the primitive {name!r} of gradcore.backend.Backend")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # helpers of the engine

    def sum_to(self, x: Array, shape: Shape) -> Array:
        """Undo a broadcast: sum x over the axes along which `shape` was stretched."""
        lead = len(x.shape) - len(shape)
        axes = tuple(i for i, n in enumerate(x.shape) if i < lead or (shape[i - lead] == 1 and n != 1))
        return self.reshape(self.sum(x, axes, True), shape)

    def check_indices(self, indices: Array, length: int, operation: str, ignore: int | None = None) -> None:
        """Raise ArgumentError for an index outside 0..length-1. A device overrides it: its kernels check on reading."""
        host = self.to_numpy(indices)
        bad = (host < 0) | (host >= length)
        if ignore is not None:
            bad &= host != ignore
        if bad.any():
            raise ArgumentError(bad_index(operation, int(host[bad][0]), length))

    def take_batch(self, x: Array, order: Array, cursor: Array, size: int) -> Array:
        """Rows order[cursor : cursor + size] of x. order: int64 (N,); cursor: int64 of shape ()."""
        start = int(self.to_numpy(cursor))
        return self.take(x, self.strided_slice(order, (start,), (start + size,), (1,)), 0)

    def append_(self, buffer: Array, cursor: Array, value: Array) -> None:
        """buffer[cursor] = value, cursor += 1, in place. buffer (N,), cursor int64 of shape (), value one number."""
        here = self.equal(self.asarray(np.arange(buffer.shape[0])), cursor)
        self.copy_(buffer, self.where(here, self.reshape(value, (1,)), buffer))
        self.copy_(cursor, self.add(cursor, 1))

    # activations; a backward takes the output y, which the tape keeps anyway

    def relu(self, x: Array) -> Array:
        return self.maximum(x, 0.0)

    def relu_backward(self, grad: Array, y: Array) -> Array:
        """grad, and 0 where y <= 0; a NaN in y lets grad through, as in PyTorch."""
        return self.where(self.greater_equal(0.0, y), 0.0, grad)

    def sigmoid(self, x: Array) -> Array:
        small = self.exp(self.negative(self.abs(x)))  # never overflows
        return self.divide(self.where(self.greater_equal(x, 0.0), 1.0, small), self.add(small, 1.0))

    def sigmoid_backward(self, grad: Array, y: Array) -> Array:
        return self.multiply(grad, self.multiply(y, self.subtract(1.0, y)))

    def tanh_backward(self, grad: Array, y: Array) -> Array:
        return self.multiply(grad, self.subtract(1.0, self.multiply(y, y)))

    # softmax and cross-entropy

    def softmax(self, x: Array, axis: int) -> Array:
        return self.exp(self.log_softmax(x, axis))

    def softmax_backward(self, grad: Array, y: Array, axis: int) -> Array:
        weighted = self.multiply(grad, y)
        return self.subtract(weighted, self.multiply(y, self.sum(weighted, (axis,), True)))

    def log_softmax(self, x: Array, axis: int) -> Array:
        shifted = self.subtract(x, self.max(x, (axis,), True))
        return self.subtract(shifted, self.log(self.sum(self.exp(shifted), (axis,), True)))

    def log_softmax_backward(self, grad: Array, y: Array, axis: int) -> Array:
        return self.subtract(grad, self.multiply(self.exp(y), self.sum(grad, (axis,), True)))

    def softmax_cross_entropy(
        self, logits: Array, labels: Array, ignore_index: int, reduction: str
    ) -> tuple[Array, Array]:
        """(loss, log_probs) for logits (N, C) and integer labels (N,).

        reduction "mean" (over the rows that are not ignored; NaN when there is none), "sum" or "none".
        """
        classes = logits.shape[1]
        self.check_indices(labels, classes, "cross_entropy", ignore_index)
        log_probs = self.log_softmax(logits, 1)
        chosen = self._one_hot(labels, classes)
        losses = self.negative(self.sum(self.where(chosen, log_probs, 0.0), (1,), False))
        losses = self.where(self.equal(labels, ignore_index), 0.0, losses)
        if reduction == "none":
            return losses, log_probs
        total = self.sum(losses, None, False)
        if reduction == "mean":
            total = self.divide(total, self._kept(labels, ignore_index, logits.dtype))
        return total, log_probs

    def softmax_cross_entropy_backward(
        self, grad: Array, log_probs: Array, labels: Array, ignore_index: int, reduction: str
    ) -> Array:
        """softmax - one_hot, scaled by grad (shape () or (N,) for "none"); ignored rows are exactly 0."""
        n, classes = log_probs.shape
        if reduction == "mean":
            kept = self._kept(labels, ignore_index, log_probs.dtype)
            grad = self.divide(grad, self.maximum(kept, 1.0))  # without any, all rows are 0 below
        one_hot = self.astype(self._one_hot(labels, classes), log_probs.dtype)
        scaled = self.multiply(self.subtract(self.exp(log_probs), one_hot), self.reshape(grad, (-1, 1)))
        return self.where(self.reshape(self.equal(labels, ignore_index), (n, 1)), 0.0, scaled)

    def _one_hot(self, labels: Array, classes: int) -> Array:
        every = self.asarray(np.arange(classes, dtype=labels.dtype)[None, :])
        return self.equal(self.reshape(labels, (labels.shape[0], 1)), every)

    def _kept(self, labels: Array, ignore_index: int, dtype: Any) -> Array:
        ignored = self.sum(self.astype(self.equal(labels, ignore_index), dtype), None, False)
        return self.subtract(float(labels.shape[0]), ignored)

    # linear: y = x @ w.T + b with x (N, in), w (out, in), b (out,) or None

    def linear(self, x: Array, weight: Array, bias: Array | None) -> Array:
        y = self.matmul(x, weight, False, True)
        return y if bias is None else self.add(y, bias)

    def linear_backward_input(self, grad: Array, weight: Array) -> Array:
        return self.matmul(grad, weight, False, False)

    def linear_backward_weight(self, grad: Array, x: Array) -> Array:
        return self.matmul(grad, x, True, False)

    # batch normalisation over every axis but 1 (Ioffe and Szegedy 2015)

    def batch_norm(self, x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
        """(y, mean, var): mean and var, shape (C,), are those of this batch; var divides by the count."""
        axes, column, count = _channel_layout(x.shape)
        mean = self.divide(self.sum(x, axes, True), count)
        centred = self.subtract(x, mean)
        var = self.divide(self.sum(self.multiply(centred, centred), axes, True), count)
        scale = self.divide(self.reshape(weight, column), self.sqrt(self.add(var, eps)))
        y = self.add(self.multiply(centred, scale), self.reshape(bias, column))
        return y, self.reshape(mean, weight.shape), self.reshape(var, weight.shape)

    def batch_norm_backward(
        self, grad: Array, x: Array, weight: Array, mean: Array, var: Array, eps: float
    ) -> tuple[Array, Array, Array]:
        """Gradients of x, weight and bias."""
        axes, column, count = _channel_layout(x.shape)
        rstd = self.divide(1.0, self.sqrt(self.add(self.reshape(var, column), eps)))
        normal = self.multiply(self.subtract(x, self.reshape(mean, column)), rstd)
        grad_bias = self.sum(grad, axes, True)
        grad_weight = self.sum(self.multiply(grad, normal), axes, True)
        spread = self.divide(self.add(grad_bias, self.multiply(normal, grad_weight)), count)
        scale = self.multiply(self.reshape(weight, column), rstd)
        grad_x = self.multiply(self.subtract(grad, spread), scale)
        return grad_x, self.reshape(grad_weight, weight.shape), self.reshape(grad_bias, weight.shape)

    # optimizers: all parameters in one call, in place. `rate` is float64 of shape () in backend memory and `steps`
    # holds an int64 of shape () per parameter, so that a captured step sees a changed rate and counts on.

    def sgd_(
        self,
        parameters: Sequence[Array],
        grads: Sequence[Array],
        velocities: Sequence[Array],
        steps: Sequence[Array],
        rate: Array,
        momentum: float,
        dampening: float,
        weight_decay: float,
        nesterov: bool,
    ) -> None:
        """v = momentum * v + (1 - dampening) * g (the first step without dampening); p -= rate * v.

        velocities is empty when momentum is 0.
        """
        for i, (p, g) in enumerate(zip(parameters, grads, strict=True)):
            if weight_decay:
                g = self.add(g, self.multiply(p, weight_decay))
            if momentum:
                damped = g
                if dampening:
                    factor = self.where(self.equal(steps[i], 0), 1.0, self.full((), 1.0 - dampening, g.dtype))
                    damped = self.multiply(g, factor)
                v = self.add(self.multiply(velocities[i], momentum), damped)
                self.copy_(velocities[i], v)
                g = self.add(g, self.multiply(v, momentum)) if nesterov else v
            self.copy_(p, self.subtract(p, self.multiply(g, self.astype(rate, p.dtype))))
            self.copy_(steps[i], self.add(steps[i], 1))

    def adam_(
        self,
        parameters: Sequence[Array],
        grads: Sequence[Array],
        firsts: Sequence[Array],
        seconds: Sequence[Array],
        steps: Sequence[Array],
        rate: Array,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
    ) -> None:
        """Adam (Kingma and Ba 2015), eps added after the bias-corrected root; decoupled decay is AdamW's."""
        for p, g, m, v, step in zip(parameters, grads, firsts, seconds, steps, strict=True):
            self.copy_(step, self.add(step, 1))
            count = self.astype(step, np.float64)
            correction1 = self.subtract(1.0, self.power(beta1, count))
            correction2 = self.sqrt(self.subtract(1.0, self.power(beta2, count)))
            if weight_decay and not decoupled:
                g = self.add(g, self.multiply(p, weight_decay))
            self.copy_(m, self.add(self.multiply(m, beta1), self.multiply(g, 1.0 - beta1)))
            self.copy_(v, self.add(self.multiply(v, beta2), self.multiply(self.multiply(g, g), 1.0 - beta2)))
            root = self.add(self.divide(self.sqrt(v), self.astype(correction2, p.dtype)), eps)
            size = self.astype(self.divide(rate, correction1), p.dtype)
            kept = p
            if weight_decay and decoupled:
                kept = self.multiply(p, self.astype(self.subtract(1.0, self.multiply(rate, weight_decay)), p.dtype))
            self.copy_(p, self.subtract(kept, self.divide(self.multiply(m, size), root)))


def bad_index(operation: str, value: int, length: int) -> str:
    """The one text for a label or an index that does not exist."""
    what = "label" if operation == "cross_entropy" else "index"
    size = f"{length} classes" if what == "label" else f"an axis of {length}"
    return f"{operation}: {what} {value} is not one of 0..{length - 1} ({size})"


def _channel_layout(shape: Shape) -> tuple[Shape, Shape, int]:
    """(axes to reduce, shape that broadcasts a (C,) array, entries per channel)."""
    axes = tuple(i for i in range(len(shape)) if i != 1)
    column = tuple(n if i == 1 else 1 for i, n in enumerate(shape))
    return axes, column, math.prod(shape[i] for i in axes)
