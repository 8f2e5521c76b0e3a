"""check_gradient: is a backward the derivative of its forward? Central differences in float64.

A random vector v makes one number of the output, v . f(x); a random direction d through all operands at once makes one
number of the gradient. So a check costs three evaluations whatever the sizes (as in HIPS/autograd), and a wrong entry
hides only by an accident of measure zero. When it fails, each operand is tried alone, so that the text names one.

Next: compare.py; cases/, which holds backends to references instead.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcore.autograd import Leaf, no_grad
from gradcore.backend.base import BaseBackend
from gradcore.errors import ArgumentError, DTypeError
from gradcore.nn.layer import Layer
from gradcore.tensor import Tensor


class _Variable(NamedTuple):
    """Something that the gradient is checked for."""

    name: str
    tensor: Tensor
    start: np.ndarray


def check_gradient(
    function: Callable[..., Any],
    *inputs: Any,
    parameters: Sequence[Tensor] = (),
    full: bool = False,
    seed: int = 0,
    step: float = 1e-6,
    rtol: float = 1e-6,
    atol: float = 1e-6,
    backend: str | BaseBackend | None = None,
) -> None:
    """Raise AssertionError if a gradient of `function` differs from central differences; the text names the operand.

    function: takes tensors, returns one tensor; or a Layer, whose parameters are checked too (on a float64 copy: the
    layer itself stays as it is), hand-written backward or not. inputs: float arrays and tensors are checked, as float64
    copies; all else is passed on. parameters: float64 tensors that a plain function uses besides. full: every entry by
    itself, two evaluations each. Stay away from kinks by more than `step`. backend: the input tensors' or the layer's,
    else the current one; it computes in float64.

    >>> import numpy as np
    >>> check_gradient(lambda a, b: (a * b).tanh(), np.ones((3, 1)), np.arange(4.0))
    """
    where = backend or _backend_of(function, inputs)
    name = _name(function)
    variables: list[_Variable] = []
    if isinstance(function, Layer):
        function = _widened(function)
        variables = [_variable(f"parameter {n!r}", p) for n, p in function.named_parameters() if p.requires_grad]
    for i, p in enumerate(parameters):
        if p.dtype != np.float64 or not p.requires_grad:
            raise DTypeError(f"check_gradient: parameter {i} must be float64 with requires_grad=True, got {p.dtype}")
        variables.append(_variable(f"parameter {i}", p))
    arguments = [_argument(one, where) for one in inputs]
    for i, one in enumerate(arguments):
        if isinstance(one, Tensor) and one.requires_grad:
            variables.append(_variable(f"input {i}", one))
    if not variables:
        raise ArgumentError(f"check_gradient: {name} got no float array, tensor or parameter to check")
    _Check(name, function, arguments, variables, seed, step, rtol, atol).run(full)


class _Check:
    """One function at one point."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: list[Any],
        variables: list[_Variable],
        seed: int,
        step: float,
        rtol: float,
        atol: float,
    ) -> None:
        self.name, self.function, self.arguments, self.variables = name, function, arguments, variables
        self.step, self.rtol, self.atol = step, rtol, atol
        self.rng = np.random.default_rng(seed)
        layers = [function] if isinstance(function, Layer) else []
        self.buffers = [(b, np.array(b.numpy())) for layer in layers for _, b in layer.named_buffers()]

    def run(self, full: bool) -> None:
        self.grads = self._backward()
        if full:
            for i in range(len(self.variables)):
                self._check_entries(i)
            return
        directions = [self.rng.standard_normal(one.start.shape) for one in self.variables]
        if self._agree(*self._along(directions)):
            return
        for i, one in enumerate(self.variables):
            alone = [d if i == j else np.zeros_like(d) for j, d in enumerate(directions)]
            found, wanted = self._along(alone)
            if not self._agree(found, wanted):
                self._fail(f"{one.name} of shape {one.start.shape}", found, wanted, "along a random direction")
        names = ", ".join(one.name for one in self.variables)
        self._fail(names, *self._along(directions), "along a random direction through all of them")

    def _backward(self) -> list[np.ndarray]:
        """The gradients that backward gives; draws v."""
        y = self._call()
        if not isinstance(y, Tensor):
            raise ArgumentError(f"check_gradient: {self.name} returned {type(y).__name__}, expected one Tensor")
        if y.dtype != np.float64:
            raise DTypeError(f"check_gradient: {self.name} returned {y.dtype}; differences need float64 throughout")
        self.upstream = self.rng.standard_normal(y.shape)
        for one in self.variables:
            one.tensor.grad = None
        y.backward(Tensor(self.upstream, backend=y.backend))
        grads = [one.tensor.grad for one in self.variables]
        for one in self.variables:
            one.tensor.grad = None
        return [
            np.zeros(one.start.shape) if grad is None else np.array(grad.numpy())
            for one, grad in zip(self.variables, grads, strict=True)
        ]

    def _call(self) -> Any:
        for buffer, start in self.buffers:  # running statistics, the counter of a dropout
            buffer.copy_(Tensor(start, backend=buffer.backend))
        return self.function(*self.arguments)

    def _value(self, directions: list[np.ndarray], length: float) -> float:
        """v . f(x + length * d)."""
        try:
            for one, d in zip(self.variables, directions, strict=True):
                one.tensor.copy_(Tensor(one.start + length * d, backend=one.tensor.backend))
            with no_grad():
                return math.fsum((self.upstream * self._call().numpy()).ravel())
        finally:
            for one in self.variables:
                one.tensor.copy_(Tensor(one.start, backend=one.tensor.backend))

    def _along(self, directions: list[np.ndarray]) -> tuple[float, float]:
        """(what backward says, what central differences say) about the slope along the directions."""
        products = [(g * d).ravel() for g, d in zip(self.grads, directions, strict=True)]
        found = math.fsum(np.concatenate(products))
        ahead, behind = self._value(directions, self.step), self._value(directions, -self.step)
        return found, (ahead - behind) / (2.0 * self.step)

    def _check_entries(self, i: int) -> None:
        one = self.variables[i]
        for at in np.ndindex(*one.start.shape):
            directions = [np.zeros(other.start.shape) for other in self.variables]
            directions[i][at] = 1.0
            found, wanted = self._along(directions)
            if not self._agree(found, wanted):
                self._fail(f"{one.name}, entry {at}", found, wanted, f"of shape {one.start.shape}")

    def _agree(self, found: float, wanted: float) -> bool:
        return abs(found - wanted) <= self.atol + self.rtol * max(abs(found), abs(wanted))  # False for a NaN

    def _fail(self, what: str, found: float, wanted: float, how: str) -> None:
        hint = "" if "entry" in what else "; full=True names the entry"
        raise AssertionError(
            f"check_gradient: {self.name}: {what}: backward says {found:.9g}, central differences say {wanted:.9g} "
            f"(off by {abs(found - wanted):.2g}; {how}{hint})"
        )


def _variable(name: str, tensor: Tensor) -> _Variable:
    return _Variable(name, tensor, np.array(tensor.numpy()))


def _argument(value: Any, backend: str | BaseBackend | None) -> Any:
    """Float arrays and tensors as float64 leaves, integer arrays as tensors, all else as it is."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.kind == "f":
            return Tensor(array.astype(np.float64), backend=backend, requires_grad=True)
        return Tensor(array, backend=backend)
    return value


def _widened(layer: Layer) -> Layer:
    """A copy of the layer with float64 parameters and buffers."""
    layer = copy.deepcopy(layer)
    for one in layer.layers():
        for tensors in (one.named_parameters(), one.named_buffers()):
            for _, tensor in tensors:
                if tensor.dtype == np.float32:
                    wanted = tensor.requires_grad
                    tensor._array = tensor.backend.astype(tensor._array, np.dtype(np.float64))
                    tensor._node = Leaf(tensor._array, tensor.backend) if wanted else None
    return layer


def _backend_of(function: Any, inputs: tuple[Any, ...]) -> BaseBackend | None:
    if isinstance(function, Layer):
        return function.backend
    return next((one.backend for one in inputs if isinstance(one, Tensor)), None)


def _name(function: Any) -> str:
    return type(function).__name__ if isinstance(function, Layer) else getattr(function, "__name__", repr(function))
