"""Layer: owns parameters and writes `forward` in tensor operations; its backward replays a part of the tape.

A layer remembers the border nodes of its last call, never tensors or arrays. `layer.backward(grad_output)` walks the
tape between them, adds to each parameter's `.grad` and returns the gradient of the input: the classic interface and
`loss.backward()` are one mechanism. A subclass that overrides `backward` (to learn, or to fuse) becomes one node of
the tape: hand_written.py. Parameters, Buffers and Layers are found by walking the attributes (attributes.py).

Next: linear.py, sequential.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradcore import autograd
from gradcore.backend.base import BaseBackend
from gradcore.backend.protocol import Array, Shape
from gradcore.errors import GraphError
from gradcore.function import Function
from gradcore.nn import attributes
from gradcore.nn.parameter import Buffer, Parameter
from gradcore.tensor import Tensor


class Call(NamedTuple):
    """What a layer remembers of its last forward: the tape's nodes at its borders, and what the output looked like."""

    borders: list[Any]
    root: Any
    shape: Shape
    dtype: np.dtype[Any]
    backend: BaseBackend


class LayerInput(Function):
    """Marks where a layer begins when its input has no Function of its own; the values pass through."""

    __slots__ = ()

    def backward(self, grad: Array) -> Array:
        return grad


class Layer:
    """Base class of everything with parameters. `backend` (a name; None is the current one) is where they live.

    >>> import gradcore, gradcore.nn as nn
    >>> class Scale(nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter([2.0])
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> layer = Scale()
    >>> layer(gradcore.tensor([3.0]))
    Tensor([6.], from=Multiply)
    >>> layer.backward(gradcore.tensor([1.0])), layer.factor.grad
    (Tensor([2.]), Tensor([3.]))
    """

    training = True
    tracked_inputs: int | None = None  # how many inputs get a gradient from backward; None is all, a loss has 1
    _last: Call | None = None
    _home: BaseBackend | None = None

    def __init__(self, *, backend: str | BaseBackend | None = None) -> None:
        from gradcore.backend.registry import get_backend

        self._home = get_backend(backend)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # The one piece of magic: whoever calls forward, by name or through (), the layer remembers the borders.
        super().__init_subclass__(**kwargs)
        if cls.backward is not Layer.backward:
            from gradcore.nn.hand_written import install

            install(cls)
        elif "forward" in vars(cls):
            cls.forward = _remembering(cls.forward)  # type: ignore[method-assign]

    def forward(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.forward(*inputs, **options)

    def backward(self, grad_output: Any = None, *, retain_graph: bool = False) -> Any:
        """The gradient of the last call's input (a tuple if it had several); adds to each parameter's `.grad`.

        grad_output has the output's shape; None means 1 for a single number. Raises GraphError before any forward.
        """
        name = f"{type(self).__name__}.backward"
        last = self._last
        if last is None:
            raise GraphError(f"{name}: call the layer first, outside no_grad, and with one tensor as its result")
        start = autograd.start_gradient(name, last, grad_output)
        grads = autograd.run(last.root, start, borders=last.borders, retain_graph=retain_graph)
        inputs = [grads.get(node) for node in last.borders]
        autograd.accumulate(grads)
        tensors = [None if grad is None else Tensor._wrap(grad, last.backend) for grad in inputs]
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    # what it owns

    @property
    def backend(self) -> BaseBackend:
        """Where the parameters live; without any, the current backend at construction."""
        for _, tensor in attributes.tensors(self, Parameter, Buffer):
            backend: BaseBackend = tensor.backend
            return backend
        if self._home is None:
            Layer.__init__(self)
        return self._home  # type: ignore[return-value]

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """Layers held directly, also in lists, in definition order."""
        return attributes.members(self, Layer)

    def layers(self) -> Iterator[Layer]:
        """This layer and all below it, parents first; one that is held twice comes once."""
        seen: set[int] = set()
        for _, layer in attributes.walk(self):
            if id(layer) not in seen:
                seen.add(id(layer))
                yield layer

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Names are PyTorch's: "0.weight". A shared parameter comes once."""
        return attributes.unique(attributes.tensors(self, Parameter))

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        return attributes.unique(attributes.tensors(self, Buffer))

    def parameters(self) -> list[Parameter]:
        return [parameter for _, parameter in self.named_parameters()]

    def zero_grad(self) -> None:
        """Clear every parameter's gradient."""
        for parameter in self.parameters():
            parameter.grad = None

    # modes, devices, state

    def train(self, mode: bool = True) -> Any:
        """Training mode for this layer and all below (dropout drops, batch norm uses the batch)."""
        for layer in self.layers():
            layer.training = mode
        return self

    def eval(self) -> Any:
        """Evaluation mode."""
        return self.train(False)

    def to(self, backend: str | BaseBackend) -> Any:
        """Move parameters, gradients and buffers to another backend, in place. Make the optimizer afterwards."""
        from gradcore.backend.registry import get_backend

        target = get_backend(backend)
        for _, tensor in attributes.unique(attributes.tensors(self, Parameter, Buffer)):
            tensor._move(target)
        for layer in self.layers():
            layer._home, layer._last = target, None
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of parameters and persistent buffers on the host, under PyTorch's names."""
        return {name: np.array(tensor.numpy()) for name, tensor in self._state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over values under the names of state_dict. All or nothing: raises ArgumentError before any change."""
        attributes.load(dict(self._state()), state, f"{type(self).__name__}.load_state_dict")

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in attributes.tensors(self, Parameter, Buffer):
            if getattr(tensor, "persistent", True):
                yield name, tensor

    # for people

    def describe(self) -> str:
        """The constructor's arguments as repr shows them; a subclass overrides it."""
        return ""

    def __repr__(self) -> str:
        return attributes.tree(self)


def _remembering(forward: Callable[..., Any]) -> Callable[..., Any]:
    """forward, which takes NumPy arrays too, and notes its borders on the tape."""

    @functools.wraps(forward)
    def call(self: Layer, *inputs: Any, **options: Any) -> Any:
        operands = list(inputs)
        tracked = len(operands) if self.tracked_inputs is None else self.tracked_inputs
        for i in range(min(tracked, len(operands))):
            operands[i] = operand(self, operands[i])
        self._last = None
        if not autograd.mode.recording:
            return forward(self, *operands, **options)
        borders = []
        for i in range(min(tracked, len(operands))):
            x = operands[i]
            if not isinstance(x, Tensor) or x.dtype.kind != "f":
                continue
            if x._node is None or x._node.__class__ is autograd.Leaf:
                operands[i] = x = _marked(x)
            borders.append(x._node)
        y = forward(self, *operands, **options)
        if isinstance(y, Tensor) and y._node is not None:
            self._last = Call(borders, y._node, y.shape, y.dtype, y.backend)
        return y

    return call


def operand(layer: Layer, x: Any) -> Any:
    """An input of a layer: NumPy arrays and lists become tensors on the layer's backend; the rest passes."""
    if isinstance(x, np.ndarray | list | np.generic):
        return Tensor(x, backend=layer.backend)
    return x


def _marked(x: Tensor) -> Tensor:
    """x with a LayerInput as the Function that made it."""
    node = LayerInput()
    node.record(x)
    out = Tensor._wrap(x._array, x.backend)
    out._node, out._version = node, x._version
    return out
