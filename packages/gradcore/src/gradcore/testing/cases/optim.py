"""sgd_ and adam_: one step of each optimizer with Python numbers, entry by entry, after the papers.

Parameters, moments and step counts are changed in place; gradients and the rate are not. A rate is float64 of shape (),
a step count int64 of shape ().
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcore.testing.cases.case import Case, Maker, Tolerance, of, permuted, stretched, uniform, values
from gradcore.testing.cases.elementwise import by_entry

Arrays = Sequence[np.ndarray]
SHAPES: list[tuple[int, ...]] = [(3, 4), (), (0, 2), (1031,), (2, 3, 1, 2)]


def sgd_(
    parameters: Arrays,
    grads: Arrays,
    velocities: Arrays,
    steps: Arrays,
    rate: np.ndarray,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[list[np.ndarray], ...]:
    """(parameters, velocities, steps) afterwards."""
    new_parameters, new_velocities, new_steps = [], [], []
    for i, (p, g) in enumerate(zip(parameters, grads, strict=True)):
        damping = 1.0 - dampening if int(steps[i]) > 0 else 1.0
        held = velocities[i] if momentum else np.zeros_like(p)

        def velocity(p: float, g: float, v: float, damping: float = damping) -> float:
            return momentum * v + damping * (g + weight_decay * p)

        def update(p: float, g: float, v: float) -> float:
            g += weight_decay * p
            direction = (g + momentum * v if nesterov else v) if momentum else g
            return p - float(rate) * direction

        v = by_entry(velocity, p, g, held)
        new_parameters.append(by_entry(update, p, g, v))
        new_velocities += [v] if momentum else []
        new_steps.append(np.array(int(steps[i]) + 1, np.int64))
    return new_parameters, new_velocities, new_steps


def adam_(
    parameters: Arrays,
    grads: Arrays,
    firsts: Arrays,
    seconds: Arrays,
    steps: Arrays,
    rate: np.ndarray,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
) -> tuple[list[np.ndarray], ...]:
    """(parameters, firsts, seconds, steps) afterwards."""
    new: tuple[list[np.ndarray], ...] = [], [], [], []
    lr = float(rate)
    for p, g, m, v, step in zip(parameters, grads, firsts, seconds, steps, strict=True):
        count = int(step) + 1
        if weight_decay and not decoupled:
            g = g + weight_decay * p
        m = by_entry(lambda m, g: beta1 * m + (1.0 - beta1) * g, m, g)
        v = by_entry(lambda v, g: beta2 * v + (1.0 - beta2) * g * g, v, g)

        def update(p: float, m: float, v: float, count: int = count) -> float:
            kept = p * (1.0 - lr * weight_decay) if decoupled else p
            m_hat, v_hat = m / (1.0 - beta1**count), v / (1.0 - beta2**count)
            return kept - lr * m_hat / (math.sqrt(v_hat) + eps)

        for changed, value in zip(new, (by_entry(update, p, m, v), m, v, np.array(count, np.int64)), strict=True):
            changed.append(value)
    return new


def counts(*numbers: int) -> list[Maker]:
    return [values(number, "int64") for number in numbers]


def each(maker: Callable[..., Maker], **options: float) -> list[Maker]:
    return [maker(*shape, **options) for shape in SHAPES]


def sgd_cases() -> Iterator[Case]:
    changes = (0, 2, 3)
    for name, momentum, dampening, decay, nesterov in [
        ("plain", 0.0, 0.0, 0.0, False),
        ("decay", 0.0, 0.0, 0.1, False),
        ("momentum", 0.9, 0.0, 0.0, False),
        ("momentum_decay", 0.9, 0.0, 0.1, False),
        ("dampening", 0.9, 0.5, 0.0, False),
        ("dampening_decay", 0.5, 0.25, 0.01, False),
        ("nesterov", 0.9, 0.0, 0.0, True),
        ("nesterov_decay", 0.9, 0.0, 0.1, True),
    ]:
        for start in ("first", "later"):
            steps = counts(*([0] * 5 if start == "first" else [1, 2, 7, 0, 1000]))
            zero = start == "first"
            velocities = each(uniform, low=0.0, high=0.0) if zero else each(uniform)
            arguments = of(
                each(uniform), each(uniform), velocities if momentum else [], steps, values(0.1, "float64"), momentum,
                dampening, decay, nesterov,
            )  # fmt: skip
            yield Case("sgd_", f"{name}_{start}", arguments, sgd_, changes=changes)
    one = [uniform(3, 4)], [stretched(uniform(4), 3, 4)]
    yield Case(
        "sgd_",
        "stretched_grad",
        of(*one, [uniform(3, 4)], counts(1), values(0.1, "float64"), 0.9, 0.0, 0.1, False),
        sgd_,
        changes=changes,
    )
    still = of(each(uniform), each(uniform), [], counts(*[0] * 5), values(0.0, "float64"), 0.0, 0.0, 0.1, False)
    yield Case("sgd_", "rate_0", still, sgd_, Tolerance(factor=0.0), changes=changes)


def adam_cases() -> Iterator[Case]:
    changes = (0, 2, 3, 4)
    for name, decay, decoupled in [
        ("plain", 0.0, False),
        ("decay", 0.1, False),
        ("decoupled", 0.1, True),
        ("decoupled_no_decay", 0.0, True),
    ]:
        for start, numbers in [("first", [0] * 5), ("later", [1, 2, 7, 0, 1000])]:
            zero = start == "first"
            firsts = each(uniform, low=0.0, high=0.0) if zero else each(uniform)
            seconds = each(uniform, low=0.0, high=0.0) if zero else each(uniform, low=0.1, high=1.0)
            arguments = of(
                each(uniform), each(uniform), firsts, seconds, counts(*numbers), values(0.01, "float64"), 0.9, 0.999,
                1e-8, decay, decoupled,
            )  # fmt: skip
            yield Case("adam_", f"{name}_{start}", arguments, adam_, changes=changes)
    zeros = values(np.zeros((3, 4)))
    edges: list[tuple[str, list[Any], list[Any]]] = [
        ("zero_grad", [uniform(3, 4)], [zeros]),
        ("large_grad", [uniform(3, 4)], [uniform(3, 4, low=-250, high=-249)]),
        ("stretched_grad", [uniform(3, 4)], [stretched(uniform(4), 3, 4)]),
        ("permuted_grad", [uniform(3, 4)], [permuted(uniform(3, 4), (1, 0))]),
    ]
    for name, parameters, grads in edges:
        arguments = of(
            parameters, grads, [zeros], [zeros], counts(0), values(0.001, "float64"), 0.9, 0.999, 1e-8, 0.0, False
        )
        yield Case("adam_", name, arguments, adam_, changes=changes)
    other = of([uniform(5)], [uniform(5)], [uniform(5)], [uniform(5, low=0.1)], counts(3), values(0.1, "float64"),
               0.5, 0.9, 0.1, 0.01, False)  # fmt: skip
    yield Case("adam_", "other_betas", other, adam_, changes=changes)


CASES = [*sgd_cases(), *adam_cases()]
