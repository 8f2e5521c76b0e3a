"""Shape primitives: they move entries of any type without changing them. The references follow index arithmetic.

The backwards add up: strided_slice_backward writes into zeros, take_backward sums what an index received.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcore.testing.cases.case import (
    ALL_DTYPES,
    EXACT,
    Case,
    Maker,
    Tolerance,
    filled,
    integers,
    of,
    permuted,
    stretched,
    strided,
    uniform,
    values,
)
from gradcore.testing.cases.elementwise import size

Shape = tuple[int, ...]


def positions(shape: Sequence[int]) -> Iterator[Shape]:
    """Every index of an array of that shape, in row-major order."""
    return itertools.product(*(range(n) for n in shape))


def reshape(x: np.ndarray, shape: Shape) -> np.ndarray:
    count = math.prod(n for n in shape if n != -1)
    target = tuple(x.size // count if n == -1 else n for n in shape)
    out = np.empty(target, x.dtype)
    for to, at in zip(positions(target), positions(x.shape), strict=True):
        out[to] = x[at]
    return out


def permute_dims(x: np.ndarray, axes: Shape) -> np.ndarray:
    out = np.empty([x.shape[a] for a in axes], x.dtype)
    for at in positions(x.shape):
        out[tuple(at[a] for a in axes)] = x[at]
    return out


def broadcast_to(x: np.ndarray, shape: Shape) -> np.ndarray:
    out = np.empty(shape, x.dtype)
    lead = len(shape) - x.ndim
    for to in positions(shape):
        out[to] = x[tuple(0 if n == 1 else i for i, n in zip(to[lead:], x.shape, strict=True))]
    return out


def concat(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    shape = list(arrays[0].shape)
    shape[axis] = sum(a.shape[axis] for a in arrays)
    out, start = np.empty(shape, arrays[0].dtype), 0
    for a in arrays:
        for at in positions(a.shape):
            out[(*at[:axis], at[axis] + start, *at[axis + 1 :])] = a[at]
        start += a.shape[axis]
    return out


def chosen(start: int, stop: int, step: int) -> range:
    """The indices of one axis of strided_slice."""
    return range(start, stop, step)  # -1 is what a Python range wants to get down to 0


def strided_slice(x: np.ndarray, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    ranges = [chosen(*one) for one in zip(starts, stops, steps, strict=True)]
    out = np.empty([len(r) for r in ranges], x.dtype)
    for to in positions(out.shape):
        out[to] = x[tuple(r[i] for r, i in zip(ranges, to, strict=True))]
    return out


def strided_slice_backward(grad: np.ndarray, shape: Shape, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    ranges = [chosen(*one) for one in zip(starts, stops, steps, strict=True)]
    out = np.zeros(shape, grad.dtype)
    for at in positions(grad.shape):
        out[tuple(r[i] for r, i in zip(ranges, at, strict=True))] = grad[at]
    return out


def take(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    out = np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    for to in positions(out.shape):
        index = int(indices[to[axis : axis + indices.ndim]])
        out[to] = x[(*to[:axis], index, *to[axis + indices.ndim :])]
    return out


def take_backward(grad: np.ndarray, indices: np.ndarray, axis: int, length: int) -> np.ndarray:
    out = np.zeros((*grad.shape[:axis], length, *grad.shape[axis + indices.ndim :]))
    for at in positions(grad.shape):
        index = int(indices[at[axis : axis + indices.ndim]])
        out[(*at[:axis], index, *at[axis + indices.ndim :])] += grad[at]
    return out


def moving_cases() -> Iterator[Case]:
    every: dict[str, Any] = {"dtypes": ALL_DTYPES, "tolerance": EXACT}
    for before, after in [
        ((), (1,)),
        ((1,), ()),
        ((12,), (3, 4)),
        ((3, 4), (12,)),
        ((2, 3, 4), (6, 4)),
        ((2, 3, 4), (4, 3, 2)),
        ((3, 4), (1, 3, 1, 4)),
        ((0, 3), (3, 0)),
        ((2, 0), (0,)),
        ((6,), (-1, 1)),
        ((5,), (5,)),
    ]:
        yield Case("reshape", f"{size(before)}_{size(after)}", of(uniform(*before), after), reshape, **every)
    yield Case("reshape", "permuted", of(permuted(uniform(3, 4), (1, 0)), (2, 6)), reshape, **every)
    yield Case("reshape", "strided", of(strided(uniform(3, 4)), (12,)), reshape, **every)
    yield Case("reshape", "stretched", of(stretched(uniform(1, 4), 3, 4), (12,)), reshape, **every)
    for shape, axes in [
        ((), ()),
        ((4,), (0,)),
        ((3, 4), (1, 0)),
        ((3, 4), (0, 1)),
        ((2, 3, 4), (2, 0, 1)),
        ((2, 3, 4), (1, 2, 0)),
        ((2, 1, 3, 5), (0, 3, 1, 2)),
        ((1, 2, 3, 2, 3), (4, 2, 0, 3, 1)),
        ((0, 3), (1, 0)),
        ((33, 65), (1, 0)),
    ]:
        name = f"{size(shape)}_to_{''.join(map(str, axes)) or 'scalar'}"
        yield Case("permute_dims", name, of(uniform(*shape), axes), permute_dims, **every)
    yield Case("permute_dims", "permuted", of(permuted(uniform(2, 3, 4), (2, 0, 1)), (1, 0, 2)), permute_dims, **every)
    yield Case("permute_dims", "strided", of(strided(uniform(3, 4)), (1, 0)), permute_dims, **every)
    for before, after in [
        ((), ()),
        ((), (2, 3)),
        ((1,), (5,)),
        ((4,), (3, 4)),
        ((3, 1), (3, 4)),
        ((1, 1), (3, 4)),
        ((2, 1, 3), (4, 2, 5, 3)),
        ((1, 3), (0, 3)),
        ((0, 1), (0, 5)),
        ((3, 4), (3, 4)),
    ]:
        yield Case("broadcast_to", f"{size(before)}_{size(after)}", of(uniform(*before), after), broadcast_to, **every)
    turned = permuted(uniform(3, 1, 2), (2, 1, 0))
    yield Case("broadcast_to", "permuted", of(turned, (2, 3, 4, 2)), broadcast_to, **every)


def concat_cases() -> Iterator[Case]:
    for shapes, axis in [
        (((3,),), 0),
        (((3,), (4,)), 0),
        (((2, 3), (1, 3), (4, 3)), 0),
        (((2, 3), (2, 1), (2, 0)), 1),
        (((2, 3, 4), (2, 5, 4)), 1),
        (((0, 3), (0, 2)), 1),
        (((1,),) * 20, 0),
    ]:
        name = f"{len(shapes)}_{'_'.join(size(shape) for shape in shapes[:3])}_axis{axis}"
        yield Case("concat", name, of([uniform(*s) for s in shapes], axis), concat, EXACT, dtypes=ALL_DTYPES)
    mixed = [permuted(uniform(3, 2), (1, 0)), uniform(3, 2), stretched(uniform(2), 3, 2)]
    yield Case("concat", "views", of(mixed, 1), concat, EXACT, dtypes=ALL_DTYPES)
    yield Case("concat", "views_axis0", of(mixed, 0), concat, EXACT, dtypes=ALL_DTYPES)


SLICES: list[tuple[Shape, Shape, Shape, Shape]] = [  # shape, starts, stops, steps
    ((7,), (2,), (5,), (1,)),
    ((7,), (0,), (7,), (1,)),
    ((7,), (1,), (7,), (3,)),
    ((7,), (6,), (-1,), (-1,)),
    ((7,), (6,), (-1,), (-3,)),
    ((7,), (5,), (1,), (-2,)),
    ((7,), (3,), (3,), (1,)),
    ((3, 4), (1, 1), (2, 4), (1, 1)),
    ((3, 4), (0, 3), (3, -1), (2, -1)),
    ((2, 3, 5), (1, 0, 4), (2, 3, 0), (1, 2, -2)),
    ((0, 3), (0, 0), (0, 3), (1, 1)),
    ((3, 4), (0, 0), (0, 4), (1, 1)),
    ((), (), (), ()),
]


def slice_cases() -> Iterator[Case]:
    for shape, starts, stops, steps in SLICES:
        name = f"{size(shape)}_{'_'.join(f'{a}:{b}:{c}' for a, b, c in zip(starts, stops, steps, strict=True))}"
        where = starts, stops, steps
        yield Case("strided_slice", name, of(uniform(*shape), *where), strided_slice, EXACT, dtypes=ALL_DTYPES)
        grad = uniform(*(len(chosen(*one)) for one in zip(*where, strict=True)))
        yield Case("strided_slice_backward", name, of(grad, shape, *where), strided_slice_backward, EXACT)
    turned = permuted(uniform(3, 4), (1, 0))
    yield Case(
        "strided_slice", "permuted", of(turned, (2, 0), (-1, 4), (-1, 3)), strided_slice, EXACT, dtypes=ALL_DTYPES
    )
    wide = stretched(uniform(1, 4), 3, 4)
    back = of(wide, (7, 9), (0, 1), (6, 9), (2, 2))
    yield Case("strided_slice_backward", "stretched", back, strided_slice_backward, EXACT)
    back = of(turned, (3, 5), (2, 0), (-1, 4), (-1, 1))
    yield Case("strided_slice_backward", "permuted", back, strided_slice_backward, EXACT)


def take_cases() -> Iterator[Case]:
    indices: Maker
    for shape, axis, index_shape in [
        ((5,), 0, (3,)),
        ((5,), 0, ()),
        ((5, 4), 0, (7,)),
        ((5, 4), 1, (2, 3)),
        ((2, 3, 4), 1, (5,)),
        ((2, 3, 4), 2, (2, 2)),
        ((1, 3), 0, (4,)),
        ((5, 4), 0, (0,)),
        ((0, 4), 1, (3,)),
        ((100, 3), 0, (64,)),
    ]:
        name = f"{size(shape)}_axis{axis}_{size(index_shape)}"
        grad_shape = (*shape[:axis], *index_shape, *shape[axis + 1 :])
        terms = Tolerance(math.prod(index_shape))
        for kind in ("int32", "int64"):
            indices = integers(*index_shape, high=shape[axis], dtype=kind)
            yield Case("take", f"{name}_{kind}", of(uniform(*shape), indices, axis), take, EXACT, dtypes=ALL_DTYPES)
            back = of(uniform(*grad_shape), indices, axis, shape[axis])
            yield Case("take_backward", f"{name}_{kind}", back, take_backward, terms)
    indices = permuted(integers(3, 2, high=5), (1, 0))
    yield Case("take", "permuted", of(permuted(uniform(4, 5), (1, 0)), indices, 1), take, EXACT, dtypes=ALL_DTYPES)
    grad = stretched(uniform(3, 1), 2, 3, 2)
    yield Case("take_backward", "views", of(grad, indices, 1, 5), take_backward, Tolerance(6))
    again = of(uniform(500, 2), values(np.arange(500) % 3, "int64"), 0, 4)
    yield Case("take_backward", "repeated", again, take_backward, Tolerance(170))
    often = of(filled((200_000,), 0.1), values(np.zeros(200_000), "int64"), 0, 2)
    pairwise = Tolerance(200_000, size=1e-5)
    yield Case("take_backward", "million", often, take_backward, pairwise, dtypes=("float32",))


CASES = [*moving_cases(), *concat_cases(), *slice_cases(), *take_cases()]
