"""A layer with a backward of its own: its forward becomes one node of the tape, whose rule is that method.

    class Scale(Layer):
        def forward(self, x):                   # runs without a tape
            self.x = x
            return x * self.factor

        def backward(self, grad_output):        # adds to .grad, returns the input's gradient
            self.factor.grad = add(self.factor.grad, (self.x * grad_output).sum())
            return grad_output * self.factor

It mixes freely with layers that live on the tape. `accumulate_grad` below does the adding.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcore.autograd import mode, no_grad
from gradcore.errors import GraphError, ShapeError
from gradcore.function import Function
from gradcore.tensor import Tensor

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array
    from gradcore.nn.layer import Layer


class HandWritten(Function):
    """Operands: the layer's inputs, then its parameters, so that the engine knows what leads to a gradient."""

    __slots__ = ("call_number", "forward_of", "input_count", "layer", "parameters")

    def __init__(self, layer: Layer, forward_of: Callable[..., Tensor], inputs: int, parameters: list[Any]) -> None:
        self.layer, self.forward_of, self.input_count, self.parameters = layer, forward_of, inputs, parameters
        self.call_number = layer._calls = getattr(layer, "_calls", 0) + 1  # type: ignore[attr-defined]

    def forward(self, *arrays: Array) -> Array:
        inputs = [Tensor._wrap(array, self.backend) for array in arrays[: self.input_count]]
        with no_grad():
            y = self.forward_of(self.layer, *inputs)
        self.saved = ()  # the layer keeps what it needs; changed parameters are an error all the same
        return y._array

    def backward(self, grad: Array) -> Any:
        name = type(self.layer).__name__
        if self.layer._calls != self.call_number:  # type: ignore[attr-defined]
            raise GraphError(
                f"{name}: a hand-written backward remembers only the last call, and the layer was called again since; "
                "use one layer a call, or write forward on the tape"
            )
        held = [p.grad for p in self.parameters]
        for p in self.parameters:
            p.grad = None
        try:
            with no_grad():
                result = self.layer.backward(Tensor._wrap(grad, self.backend))
            found = [p.grad for p in self.parameters]
        finally:
            for p, before in zip(self.parameters, held, strict=True):
                p.grad = before
        inputs = result if isinstance(result, tuple) else (result,)
        if len(inputs) != self.input_count:
            raise ShapeError(f"{name}.backward: returned {len(inputs)} gradients for {self.input_count} inputs")
        return tuple(None if g is None else g._array for g in (*inputs, *found))

    def __repr__(self) -> str:
        return type(self.layer).__name__


def install(cls: type[Layer]) -> None:
    """Wrap the forward and backward of a class whose backward is not the tape's."""
    if "backward" in vars(cls):
        cls.backward = _accepting(vars(cls)["backward"])  # type: ignore[method-assign]
    if "forward" in vars(cls):
        cls.forward = _as_one_node(vars(cls)["forward"])  # type: ignore[method-assign]
    elif "backward" in vars(cls):  # the forward is inherited, and may be the tape's: start from what was written
        cls.forward = _as_one_node(inspect.unwrap(cls.forward))  # type: ignore[method-assign]


def accumulate_grad(parameter: Any, grad: Tensor) -> None:
    """parameter.grad += grad, for hand-written backwards."""
    parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def _as_one_node(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def call(self: Layer, *inputs: Any) -> Any:
        from gradcore.nn.layer import operand

        operands = [operand(self, x) for x in inputs]
        if not mode.recording:
            return forward(self, *operands)
        parameters = self.parameters()
        return HandWritten(self, forward, len(operands), parameters)(*operands, *parameters)

    return call


def _accepting(backward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(backward)
    def call(self: Layer, grad_output: Any) -> Any:
        if not isinstance(grad_output, Tensor):
            grad_output = Tensor(grad_output, backend=self.backend)
        with no_grad():
            return backward(self, grad_output)

    return call
