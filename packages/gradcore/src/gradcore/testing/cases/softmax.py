"""softmax, log_softmax and cross-entropy with integer labels, row by row with Python numbers; each with its backward.

Minus infinity is a legal logit: its probability is 0. A row of nothing else is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcore.testing.cases.case import Case, Maker, Tolerance, of, permuted, stretched, strided, uniform, values
from gradcore.testing.cases.elementwise import size

NAN, INF = math.nan, math.inf
IGNORED = -100


def along(function: Callable[..., list[float]], axis: int, *arrays: np.ndarray) -> np.ndarray:
    """function applied to the rows that run along an axis."""
    moved = [np.moveaxis(a, axis, -1) for a in arrays]
    out = np.empty_like(moved[0])
    for at in np.ndindex(*out.shape[:-1]):
        out[at] = function(*(a[at].tolist() for a in moved))
    return np.moveaxis(out, -1, axis)


def log_softmax_row(row: list[float]) -> list[float]:
    largest = NAN if any(v != v for v in row) else max(row, default=0.0)
    if not math.isfinite(largest):
        return [NAN] * len(row)
    total = math.fsum(math.exp(v - largest) for v in row)
    return [v - largest - math.log(total) for v in row]


def softmax_row(row: list[float]) -> list[float]:
    return [math.exp(v) for v in log_softmax_row(row)]


def softmax_backward_row(grad: list[float], y: list[float]) -> list[float]:
    inner = math.fsum(g * v for g, v in zip(grad, y, strict=True))
    return [v * (g - inner) for g, v in zip(grad, y, strict=True)]


def log_softmax_backward_row(grad: list[float], y: list[float]) -> list[float]:
    total = math.fsum(grad)
    return [g - math.exp(v) * total for g, v in zip(grad, y, strict=True)]


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    return along(softmax_row, axis, x)


def softmax_backward(grad: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return along(softmax_backward_row, axis, grad, y)


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    return along(log_softmax_row, axis, x)


def log_softmax_backward(grad: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return along(log_softmax_backward_row, axis, grad, y)


def softmax_cross_entropy(
    logits: np.ndarray, labels: np.ndarray, ignore_index: int, reduction: str
) -> tuple[np.ndarray, np.ndarray]:
    log_probs = log_softmax(logits, 1)
    losses = [0.0 if k == ignore_index else -float(row[k]) for row, k in zip(log_probs, labels.tolist(), strict=True)]
    kept = sum(k != ignore_index for k in labels.tolist())
    if reduction == "none":
        return np.array(losses, np.float64), log_probs
    total = math.fsum(losses)
    return np.array((total / kept if kept else NAN) if reduction == "mean" else total), log_probs


def softmax_cross_entropy_backward(
    grad: np.ndarray, log_probs: np.ndarray, labels: np.ndarray, ignore_index: int, reduction: str
) -> np.ndarray:
    out = np.zeros_like(log_probs)
    kept = sum(k != ignore_index for k in labels.tolist())
    for n, label in enumerate(labels.tolist()):
        if label == ignore_index:
            continue
        scale = float(grad[n]) if reduction == "none" else float(grad) / (kept if reduction == "mean" else 1)
        for k in range(log_probs.shape[1]):
            out[n, k] = scale * (math.exp(log_probs[n, k]) - (k == label))
    return out


FORWARDS: dict[str, Callable[..., np.ndarray]] = {"softmax": softmax, "log_softmax": log_softmax}
BACKWARDS: dict[str, Callable[..., np.ndarray]] = {"softmax": softmax_backward, "log_softmax": log_softmax_backward}


def softmax_cases() -> Iterator[Case]:
    rows = [[1e4, 0.0, -1e4], [-INF, 0.0, 0.0], [-INF, 2.0, -INF], [-INF] * 3, [NAN, 0.0, 1.0], [INF, 0.0, 1.0]]
    for operation, forward in FORWARDS.items():
        back, backward = f"{operation}_backward", BACKWARDS[operation]
        for shape, axis in [
            ((1,), 0),
            ((5,), 0),
            ((3, 4), 0),
            ((3, 4), 1),
            ((64, 10), 1),
            ((2, 3, 5), 1),
            ((3, 1), 1),
            ((5, 1031), 1),
            ((0, 4), 1),
        ]:
            terms = Tolerance(shape[axis])
            name = f"{size(shape)}_axis{axis}"
            yield Case(operation, name, of(uniform(*shape, low=-4, high=4), axis), forward, terms)
            yield Case(back, name, of(uniform(*shape), saved(forward, shape, axis), axis), backward, terms)
        yield Case(operation, "permuted", of(permuted(uniform(3, 4), (1, 0)), 1), forward)
        yield Case(operation, "strided", of(strided(uniform(3, 4)), 0), forward)
        yield Case(operation, "special", of(values(rows), 1), forward)
        views = of(stretched(uniform(1, 4), 3, 4), saved(forward, (3, 4), 1), 1)
        yield Case(back, "stretched", views, backward)


def saved(forward: Callable[..., np.ndarray], shape: tuple[int, ...], axis: int) -> Maker:
    make = uniform(*shape, low=-4, high=4)
    return lambda rng, dtype: forward(make(rng, "float64"), axis).astype(dtype)


def labelled(
    n: int, classes: int, reduction: str, *, ignored: tuple[int, ...] = (), kind: str = "int64", ignore: int = IGNORED
) -> tuple[Callable[..., list[Any]], Callable[..., list[Any]]]:
    """Arguments of the forward and of the backward; the rows `ignored` carry the label `ignore`."""

    def forward(rng: np.random.Generator, dtype: str) -> list[Any]:
        labels = np.asarray(rng.integers(0, classes, n), kind)
        labels[list(ignored)] = ignore
        return [np.asarray(rng.uniform(-4, 4, (n, classes)), dtype), labels, ignore, reduction]

    def backward(rng: np.random.Generator, dtype: str) -> list[Any]:
        logits, labels, *options = forward(rng, dtype)
        grad = np.asarray(rng.uniform(0.5, 2, n if reduction == "none" else ()), dtype)
        return [grad, log_softmax(logits.astype(np.float64), 1).astype(dtype), labels, *options]

    return forward, backward


def entropy_cases() -> Iterator[Case]:
    operation, reference = "softmax_cross_entropy", softmax_cross_entropy
    back, backward_reference = "softmax_cross_entropy_backward", softmax_cross_entropy_backward
    for reduction in ("mean", "sum", "none"):
        for n, classes, ignored in [
            (1, 1, ()),
            (1, 5, ()),
            (64, 10, ()),
            (7, 1031, ()),
            (5, 3, (0, 3)),
            (2, 3, (0, 1)),
            (0, 4, ()),
        ]:
            terms = Tolerance(max(n, classes), size=4.0)
            forward, backward = labelled(n, classes, reduction, ignored=ignored)
            name = f"{n}x{classes}{f'_{len(ignored)}ignored' if ignored else ''}_{reduction}"
            yield Case(operation, name, forward, reference, terms)
            yield Case(back, name, backward, backward_reference, terms)
        for options in ({"kind": "int32"}, {"ignored": (1,), "ignore": -1}, {"ignored": (1,), "ignore": 2}):
            forward, backward = labelled(5, 3, reduction, **options)
            name = "_".join(f"{k}{v}" for k, v in options.items() if k != "ignored") + f"_{reduction}"
            yield Case(operation, name, forward, reference, Tolerance(5))
            yield Case(back, name, backward, backward_reference, Tolerance(5))
    logits = values([[1e4, 0, -1e4]] * 3 + [[-INF, 0, 0], [-INF, 2, -INF], [0, -INF, 0], [-INF] * 3, [NAN, 0, 0]])
    labels = values([0, 1, 2, 1, 1, 1, 0, 1], "int64")
    yield Case(operation, "special", of(logits, labels, IGNORED, "none"), reference)
    grad = values([1.0] * 6)
    log_probs = values([[0, -1e4, -2e4]] * 3 + [[-INF, -math.log(2), -math.log(2)], [-INF, 0, -INF]] + [[NAN] * 3])
    few = values([0, 1, 2, 1, 1, IGNORED], "int64")
    yield Case(back, "special", of(grad, log_probs, few, IGNORED, "none"), backward_reference)
    views = of(permuted(uniform(4, 3), (1, 0)), strided(values([1, 0, 2, 1], "int64")), IGNORED, "mean")
    yield Case(operation, "views", views, reference)
    wide = of(stretched(values(0.5), 3), uniform(3, 4, low=-3, high=-0.1), values([1, 3, 0], "int64"), IGNORED, "none")
    yield Case(back, "stretched", wide, backward_reference)
    yield Case(operation, "70000x3", labelled(70_000, 3, "mean")[0], reference, Tolerance(70_000))


CASES = [*softmax_cases(), *entropy_cases()]
