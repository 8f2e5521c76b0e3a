"""Learning-rate schedules: each is a formula for the rate after a number of schedule steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gradcore.convert import check_number, whole_number
from gradcore.errors import ArgumentError
from gradcore.optim.optimizer import Optimizer


class Schedule:
    """Sets optimizer.lr = rate(count). Call `step()` once an epoch, or once a step: the formula only counts calls.

    >>> import gradcore
    >>> w = gradcore.nn.Parameter([1.0])
    >>> optimizer = gradcore.optim.SGD([w], lr=0.1)
    >>> schedule = ExponentialLR(optimizer, gamma=0.5)
    >>> schedule.step()
    >>> optimizer.lr
    0.05
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base = optimizer.lr
        self.count = 0
        optimizer.lr = self.rate(0)

    def rate(self, count: int) -> float:
        """The learning rate after `count` steps of the schedule."""
        raise NotImplementedError

    def step(self) -> None:
        self.count += 1
        self.optimizer.lr = self.rate(self.count)

    def state_dict(self) -> dict[str, Any]:
        return {"base": self.base, "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where state_dict was taken. Raises ArgumentError before any change."""
        self.optimizer.lr = self.check_state(state)
        self.base, self.count = float(state["base"]), int(state["count"])

    def check_state(self, state: Mapping[str, Any]) -> float:
        """The rate under this state; ArgumentError if load_state_dict cannot take it."""
        name, before = f"{type(self).__name__}.load_state_dict", self.base
        missing = {"base", "count"} - set(state)
        if missing:
            raise ArgumentError(f"{name}: missing {', '.join(sorted(missing))}")
        count = whole_number(name, "count", state["count"], 0)
        try:
            self.base = check_number(name, "base", state["base"])
            return check_number(name, "lr", self.rate(count))
        finally:
            self.base = before


class LambdaLR(Schedule):
    """base * factor(count)."""

    def __init__(self, optimizer: Optimizer, factor: Callable[[int], float]) -> None:
        self.factor = factor
        super().__init__(optimizer)

    def rate(self, count: int) -> float:
        return self.base * self.factor(count)


class StepLR(Schedule):
    """base * gamma ** (count // step_size)."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = (
            whole_number("StepLR", "step_size", step_size, 1),
            check_number("StepLR", "gamma", gamma),
        )
        super().__init__(optimizer)

    def rate(self, count: int) -> float:
        return float(self.base * self.gamma ** (count // self.step_size))


class ExponentialLR(Schedule):
    """base * gamma ** count."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = check_number("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer)

    def rate(self, count: int) -> float:
        return float(self.base * self.gamma**count)


class CosineAnnealingLR(Schedule):
    """From base to `least` along half a cosine over `total` steps, then `least` (Loshchilov and Hutter 2017)."""

    def __init__(self, optimizer: Optimizer, total: int, least: float = 0.0) -> None:
        self.total, self.least = (
            whole_number("CosineAnnealingLR", "total", total, 1),
            check_number("CosineAnnealingLR", "least", least),
        )
        super().__init__(optimizer)

    def rate(self, count: int) -> float:
        part = min(count, self.total) / self.total
        return self.least + (self.base - self.least) * (1.0 + math.cos(math.pi * part)) / 2.0


class LinearWarmupLR(Schedule):
    """base * (count + 1) / total for the first `total` steps, then base."""

    def __init__(self, optimizer: Optimizer, total: int) -> None:
        self.total = whole_number("LinearWarmupLR", "total", total, 1)
        super().__init__(optimizer)

    def rate(self, count: int) -> float:
        return self.base * min(1.0, (count + 1) / self.total)
