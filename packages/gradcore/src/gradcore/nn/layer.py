"""Layer: owns parameters and writes `forward` in tensor operations; its backward replays a part of the tape.

A layer remembers the border nodes of its last call, never tensors or arrays. `layer.backward(grad_output)` walks the
tape between them, adds to each parameter's `.grad` and returns the gradient of the input: the classic interface and
`loss.backward()` are one mechanism. A subclass that overrides `backward` (to learn, or to fuse) becomes one node of
the tape: hand_written.py. Parameters, Buffers and Layers are found by walking the attributes (attributes.py).

Next: linear.py, sequential.py.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradcore import autograd
from gradcore.backend.base import BaseBackend
from gradcore.backend.protocol import Array, Shape
from gradcore.errors import DTypeError, GraphError
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


FUSED: Any = object()  # a layer's last call when it ran as a part of a fused operation: it has no borders


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
    _calls = 0  # how often a layer with a backward of its own was called
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
        if last is FUSED:
            raise GraphError(f"{name}: the layer ran fused with its neighbours: build Sequential(..., fuse=False)")
        if last.root is None:
            raise GraphError(f"{name}: a backward written by hand replaces the tape's: there is no super().backward")
        start = autograd.start_gradient(name, last, grad_output)
        grads = autograd.run(last.root, start, borders=last.borders, retain_graph=retain_graph)
        inputs = [grads.get(node) for node in last.borders]
        autograd.accumulate(grads)
        tensors = [None if grad is None else Tensor._wrap(grad, last.backend) for grad in inputs]
        if not tensors:
            return None  # an integer image has no gradient
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
        """Layers held directly, also in lists and dicts, in definition order."""
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
            tensor._move(target, tensor.dtype)
        for layer in self.layers():
            layer._home, layer._last = target, None
        return self

    def astype(self, dtype: npt.DTypeLike) -> Any:
        """Convert parameters, gradients and float buffers to float32 or float64, in place. Make the optimizer after."""
        target = np.dtype(dtype)
        if target not in (np.float32, np.float64):
            raise DTypeError(f"{type(self).__name__}.astype: parameters are float32 or float64, got {target}")
        for _, tensor in attributes.unique(attributes.tensors(self, Parameter, Buffer)):
            if tensor.dtype.kind == "f":
                tensor._move(tensor.backend, target)
        for layer in self.layers():
            layer._last = None
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

    # copies: the tape of the last call stays behind, and a backend is no part of a layer

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        memo[id(self._home)] = self._home
        for name, value in vars(self).items():
            if name != "_last":
                setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_last"}
        return state if self._home is None else {**state, "_home": self._home.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from gradcore.backend.registry import get_backend

        vars(self).update(state)
        if self._home is not None:
            self._home = get_backend(self._home)

    # for people

    def describe(self) -> str:
        """The constructor's arguments as repr shows them; a subclass overrides it."""
        return ""

    def __repr__(self) -> str:
        return attributes.tree(self)


def _remembering(forward: Callable[..., Any]) -> Callable[..., Any]:
    """forward, which takes NumPy arrays too, and notes its borders on the tape."""

    names = positional(forward)

    @functools.wraps(forward)
    def call(self: Layer, *inputs: Any, **options: Any) -> Any:
        operands = in_order(names, inputs, options) if options else list(inputs)
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
        taped = isinstance(y, Tensor) and y._node is not None
        self._last = Call(borders, y._node, y.shape, y.dtype, y.backend) if taped else None  # not super().forward's
        return y

    return call


def positional(forward: Callable[..., Any]) -> list[str]:
    """The names of a forward's inputs."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def in_order(names: list[str], inputs: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """The inputs, with those given by keyword (taken out of options) in their places, so that they get a gradient."""
    operands = list(inputs)
    for name in names[len(inputs) :]:
        if name not in options:
            break
        operands.append(options.pop(name))
    return operands


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
