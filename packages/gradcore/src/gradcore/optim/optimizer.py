"""Optimizer: parameters, their state on the backend, and a step that updates all of them in place in one call.

The learning rate and the step counts live on the backend, so that a captured loop sees a changed rate. A parameter
whose gradient is None is skipped wholly: no decay, no momentum, no step count.

Next: sgd.py, adam.py, in order of complexity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcore.autograd import Leaf
from gradcore.backend.protocol import Array
from gradcore.convert import check_number
from gradcore.errors import ArgumentError, BackendMismatch
from gradcore.nn import attributes
from gradcore.nn.parameter import Parameter
from gradcore.tensor import Tensor

Arrays = Sequence[Array]


class Optimizer:
    """Base: a subclass adds its tensors to `_state` and writes `_update`."""

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        name = type(self).__name__
        if isinstance(parameters, Tensor):
            raise ArgumentError(f"{name}: parameters must be a list of tensors, got one tensor: write [tensor]")
        if not isinstance(parameters, Iterable):
            raise ArgumentError(f"{name}: parameters must be a list, got {parameters!r}: pass model.parameters()")
        self.parameters = list(parameters)
        if not self.parameters:
            raise ArgumentError(f"{name}: the list of parameters is empty")
        for i, p in enumerate(self.parameters):
            frozen = isinstance(p, Parameter) and p._node is None  # skipped, as a gradient of None is
            if not isinstance(p, Tensor) or not (frozen or p._node.__class__ is Leaf):
                what = "a tensor that was computed or wants no gradient" if isinstance(p, Tensor) else repr(p)
                raise ArgumentError(f"{name}: item {i} of the parameters must have requires_grad=True, got {what}")
        if all(p._node is None for p in self.parameters):
            raise ArgumentError(f"{name}: every parameter is frozen (requires_grad=False)")
        if len({id(p) for p in self.parameters}) != len(self.parameters):
            raise ArgumentError(f"{name}: a parameter is in the list twice")
        self.backend = self.parameters[0].backend
        self._state: dict[str, list[Tensor]] = {"step": [self._host(np.array(0, np.int64)) for _ in self.parameters]}
        self._lr = check_number(name, "lr", lr)
        self._rate = self._host(np.array(self._lr, np.float64))

    @property
    def lr(self) -> float:
        """The learning rate. Assign to change it; it takes effect at the next step, also of a captured loop."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = check_number(type(self).__name__, "lr", value)
        self._rate.copy_(Tensor(np.array(self._lr, np.float64), backend=self.backend))

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        chosen: list[int] = []
        grads: list[Array] = []
        for i, p in enumerate(self.parameters):
            if p.backend is not self.backend:
                raise BackendMismatch(
                    f"{type(self).__name__}: the parameters moved from {self.backend.name!r} to {p.backend.name!r}: "
                    "make the optimizer after model.to()"
                )
            grad = p.grad
            if grad is not None:
                chosen.append(i)
                grads.append(grad._array)
        if chosen:
            arrays = [self.parameters[i]._array for i in chosen]
            state = {name: [tensors[i]._array for i in chosen] for name, tensors in self._state.items()}
            self._update(arrays, grads, state)
            for i in chosen:
                self.parameters[i]._bump()

    def _update(
        self, parameters: Sequence[Array], grads: Sequence[Array], state: Mapping[str, Sequence[Array]]
    ) -> None:
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Clear every parameter's gradient."""
        for p in self.parameters:
            p.grad = None

    def state_dict(self) -> dict[str, np.ndarray]:
        """Learning rate, step counts and moments as host arrays: "exp_avg.0" belongs to the first parameter."""
        return {name: np.array(tensor.numpy()) for name, tensor in self._named_state().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what state_dict gave. All or nothing: raises ArgumentError before any change."""
        self._take(self.check_state(state))

    def check_state(self, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """state as host arrays; ArgumentError if load_state_dict cannot take it."""
        name = f"{type(self).__name__}.load_state_dict"
        values = attributes.check(self._named_state(), state, name)
        check_number(name, "lr", float(values["lr"]))
        return values

    def _take(self, values: Mapping[str, np.ndarray]) -> None:
        for name, tensor in self._named_state().items():
            tensor.copy_(values[name])
        self._lr = float(values["lr"])

    def _named_state(self) -> dict[str, Tensor]:
        named = {f"{name}.{i}": t for name, tensors in self._state.items() for i, t in enumerate(tensors)}
        return {"lr": self._rate, **named}

    def _zeros(self) -> list[Tensor]:
        """A zero tensor like each parameter."""
        return [self._host(np.zeros(p.shape, p.dtype)) for p in self.parameters]

    def _host(self, array: np.ndarray) -> Tensor:
        return Tensor(array, backend=self.backend)

    def __repr__(self) -> str:
        count = sum(p.size for p in self.parameters)
        return f"{type(self).__name__}(lr={self.lr:g})  # {len(self.parameters)} tensors, {count:,} parameters"
