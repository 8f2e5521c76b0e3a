"""A layer with a backward of its own: its forward becomes one node of the tape, whose rule is that method.

    class Scale(Layer):
        def forward(self, x):                   # runs without a tape
            self.x = x
            return x * self.factor

        def backward(self, grad_output):        # adds to .grad, returns the input's gradient
            accumulate_grad(self.factor, (self.x * grad_output).sum((0,)))
            return grad_output * self.factor

Prove it: `gradcore.testing.check_gradient(layer, x)`. It mixes freely with layers that live on the tape, also as their
parent: its backward may call its children's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcore.autograd import enable_grad, mode, no_grad, start_gradient
from gradcore.errors import DTypeError, GraphError, ShapeError
from gradcore.function import Function, as_tensor
from gradcore.nn.layer import Call, Layer, in_order, operand, positional
from gradcore.tensor import Tensor

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array


class HandWritten(Function):
    """Operands: the layer's float inputs, then its parameters, so that the engine knows what leads to a gradient.

    given: all that forward takes; places: where the operands stand among them. Labels, masks and options pass as they
    are and get no gradient.
    """

    __slots__ = ("call_number", "forward_of", "given", "layer", "parameters", "places", "taken")

    def __init__(
        self, layer: Layer, forward_of: Callable[..., Any], given: list[Any], places: list[int], parameters: list[Any]
    ) -> None:
        self.layer, self.forward_of, self.parameters = layer, forward_of, parameters
        self.given, self.places, self.taken = given, places, len(given)

    def forward(self, *arrays: Array) -> Array:
        layer, inputs = self.layer, self.given
        for place, array in zip(self.places, arrays, strict=False):
            inputs[place] = Tensor._wrap(array, self.backend)
        self.given = []
        # a child's tape begins at its own input, so that this layer's backward may call the child's
        with enable_grad() if any(True for _ in layer.named_children()) else no_grad():
            y = self.forward_of(layer, *inputs)
        if not isinstance(y, Tensor):
            raise GraphError(
                f"{self!r}: a layer with a backward of its own must return one Tensor, got {type(y).__name__}"
            )
        layer._calls = self.call_number = layer._calls + 1  # after super().forward, which counts too
        layer._last = Call([], None, y.shape, y.dtype, y.backend)
        self.saved = ()  # the layer keeps what it needs; changed parameters are an error all the same
        return y._array

    def backward(self, grad: Array) -> Any:
        if self.layer._calls != self.call_number:
            raise GraphError(
                f"{self!r}: a hand-written backward remembers only the last call, and the layer was called again "
                "since; use one layer a call, or write forward on the tape"
            )
        wanted = [p for p in self.parameters if p.requires_grad]
        held = [p.grad for p in wanted]
        for p in wanted:
            p.grad = None
        try:
            result = self.layer.backward(Tensor._wrap(grad, self.backend))
            found = [p.grad for p in self.parameters]
        finally:
            for p, before in zip(wanted, held, strict=True):
                p.grad = before
        return (*self._of_inputs(result, grad), *[None if g is None else g._array for g in found])

    def _of_inputs(self, result: Any, grad: Array) -> list[Any]:
        """The operands' gradients out of what the layer's backward returned."""
        grads = list(result) if isinstance(result, tuple) else [result]
        if len(grads) == self.taken:
            grads = [grads[place] for place in self.places]
        if len(grads) != len(self.places):
            raise ShapeError(f"{self!r}.backward: returned {len(grads)} gradients for {len(self.places)} inputs")
        like = Tensor._wrap(grad, self.backend)
        arrays = [None if g is None else as_tensor(g, like)._array for g in grads]
        for array in arrays:
            if array is not None and array.dtype != grad.dtype:
                raise DTypeError(f"{self!r}.backward: returned a gradient of {array.dtype}, expected {grad.dtype}")
        return arrays

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
    """parameter.grad += grad, for hand-written backwards; nothing for a parameter that wants no gradient."""
    if parameter.requires_grad:
        parameter.grad = grad if parameter.grad is None else parameter.grad + grad


def _as_one_node(forward: Callable[..., Any]) -> Callable[..., Any]:
    names = positional(forward)

    @functools.wraps(forward)
    def call(self: Layer, *inputs: Any, **options: Any) -> Any:
        given = in_order(names, inputs, options) if options else list(inputs)
        tracked = range(len(given) if self.tracked_inputs is None else min(self.tracked_inputs, len(given)))
        for i in tracked:
            given[i] = operand(self, given[i])
        places = [i for i in tracked if isinstance(given[i], Tensor) and given[i].dtype.kind == "f"]
        parameters = self.parameters()
        operands = [*[given[i] for i in places], *parameters]
        if not mode.recording or not operands:
            self._calls, self._last = self._calls + 1, None  # what an earlier call left is overwritten
            return forward(self, *given, **options)
        step = functools.partial(forward, **options) if options else forward
        return HandWritten(self, step, given, places, parameters)(*operands)

    return call


def _accepting(backward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(backward)
    def call(self: Layer, grad_output: Any = None) -> Any:
        if grad_output is None:
            name = f"{type(self).__name__}.backward"
            if self._last is None:
                raise GraphError(f"{name}: call the layer first, outside no_grad, or pass the output's gradient")
            grad_output = Tensor._wrap(start_gradient(name, self._last, None), self._last.backend)
        elif not isinstance(grad_output, Tensor):
            grad_output = Tensor(grad_output, backend=self.backend)
        with no_grad():
            return backward(self, grad_output)

    return call
