"""Axis and shape arguments in their one form."""

import numpy as np
import pytest

from gradcore.errors import ArgumentError, ShapeError
from gradcore.ops.axes import full_shape, many_axes, one_axis


def test_one_axis() -> None:
    assert [one_axis("op", a, 3) for a in (0, 2, -1, -3, np.int64(1))] == [0, 2, 2, 0, 1]


@pytest.mark.parametrize("axis", [3, -4, 1.0, "0", None, (0,)], ids=repr)
def test_one_axis_refuses(axis: object) -> None:
    with pytest.raises(ArgumentError, match=r"^op: axis"):
        one_axis("op", axis, 3)


def test_many_axes() -> None:
    assert many_axes("op", None, 3) is None
    assert many_axes("op", -1, 3) == (2,)
    assert many_axes("op", [2, 0], 3) == (0, 2)
    assert many_axes("op", (), 3) == ()


def test_many_axes_refuses() -> None:
    with pytest.raises(ArgumentError, match=r"^op: an axis is named twice in \(0, -3\)"):
        many_axes("op", (0, -3), 3)


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((2, 3), 6, (2, 3)),
        ((-1,), 6, (6,)),
        ((2, -1), 6, (2, 3)),
        ((), 1, ()),
        ((-1,), 0, (0,)),
        ((0, 5), 0, (0, 5)),
        ((2, -1), 0, (2, 0)),
        ([np.int64(2), 3], 6, (2, 3)),
    ],
)
def test_full_shape(shape: tuple, size: int, expected: tuple) -> None:
    assert full_shape("op", shape, size) == expected


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 2), 6), ((4, -1), 6), ((-1, -1), 6), ((-2, 3), 6), ((0, -1), 0), ((), 6), ((0,), 6)]
)
def test_full_shape_refuses(shape: tuple, size: int) -> None:
    with pytest.raises(ShapeError, match=r"^op: shape"):
        full_shape("op", shape, size)


@pytest.mark.parametrize("shape", [2.0, (2.0, 3), "ab", None], ids=repr)
def test_full_shape_wants_integers(shape: object) -> None:
    with pytest.raises(ArgumentError, match=r"^op: a shape is a tuple of integers"):
        full_shape("op", shape, 6)
