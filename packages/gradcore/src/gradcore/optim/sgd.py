"""Stochastic gradient descent with momentum, Nesterov's form, dampening and weight decay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradcore.convert import check_number
from gradcore.errors import ArgumentError
from gradcore.optim.optimizer import Arrays, Optimizer
from gradcore.tensor import Tensor


class SGD(Optimizer):
    """g += weight_decay * p; v = momentum * v + (1 - dampening) * g; p -= lr * v (PyTorch's form).

    The first step takes v = g. nesterov steps by g + momentum * v (Sutskever et al. 2013).
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(parameters, lr)
        self.momentum = check_number("SGD", "momentum", momentum)
        self.dampening = check_number("SGD", "dampening", dampening)
        self.weight_decay = check_number("SGD", "weight_decay", weight_decay)
        self.nesterov = nesterov
        if nesterov and (self.momentum == 0.0 or self.dampening != 0.0):
            raise ArgumentError("SGD: nesterov needs a momentum above 0 and no dampening")
        if self.momentum:
            self._state["momentum_buffer"] = self._zeros()

    def _update(self, parameters: Arrays, grads: Arrays, state: Mapping[str, Arrays]) -> None:
        self.backend.sgd_(
            parameters,
            grads,
            state.get("momentum_buffer", ()),
            state["step"],
            self._rate._array,
            self.momentum,
            self.dampening,
            self.weight_decay,
            self.nesterov,
        )
