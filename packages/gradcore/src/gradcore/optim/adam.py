"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradcore.convert import check_number
from gradcore.optim.optimizer import Arrays, Optimizer
from gradcore.tensor import Tensor


class Adam(Optimizer):
    """m and v are running means of g and g**2; p -= lr * m_hat / (sqrt(v_hat) + eps), hats correct the bias.

    weight_decay adds weight_decay * p to the gradient.
    """

    decoupled = False

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr)
        name = type(self).__name__
        self.betas = check_number(name, "beta1", betas[0], 1.0), check_number(name, "beta2", betas[1], 1.0)
        self.eps = check_number(name, "eps", eps)
        self.weight_decay = check_number(name, "weight_decay", weight_decay)
        self._state["exp_avg"] = self._zeros()
        self._state["exp_avg_sq"] = self._zeros()

    def _update(self, parameters: Arrays, grads: Arrays, state: Mapping[str, Arrays]) -> None:
        self.backend.adam_(
            parameters,
            grads,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["step"],
            self._rate._array,
            *self.betas,
            self.eps,
            self.weight_decay,
            self.decoupled,
        )


class AdamW(Adam):
    """Adam whose decay is p *= 1 - lr * weight_decay, apart from the gradient."""

    decoupled = True

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay)
