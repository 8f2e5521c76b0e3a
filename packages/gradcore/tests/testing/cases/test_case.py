"""Case and the makers of its arguments: reproducible, of the promised shape and layout."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend import get_backend
from gradcore.testing.cases.case import (
    ALL_DTYPES,
    EXACT,
    Case,
    Host,
    Tolerance,
    View,
    filled,
    host,
    integers,
    of,
    permuted,
    shuffled,
    stretched,
    strided,
    uniform,
    values,
)

RNG = np.random.default_rng(0)


def test_equal_arguments_at_every_build() -> None:
    case = Case("add", "one", of(uniform(3), 2.0), lambda x, s: x + s)
    first, second = case.build("float32"), case.build("float32")
    assert case.id == "add-one"
    assert first[0].tobytes() == second[0].tobytes()
    assert first[0].dtype == np.float32
    assert first[1] == 2.0
    assert Case("add", "other", case.arguments, case.reference).build("float32")[0].tolist() != first[0].tolist()


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_uniform_of_every_dtype(dtype: str) -> None:
    made = uniform(20, 30)(RNG, dtype)
    assert made.dtype == np.dtype(dtype)
    assert made.shape == (20, 30)
    assert len(np.unique(made)) > 1


def test_makers() -> None:
    assert integers(50, high=3, dtype="int32")(RNG, "float64").dtype == np.int32
    assert values([1, 2])(RNG, "float32").dtype == np.float32
    assert values(3, "int64")(RNG, "float32").dtype == np.int64
    assert filled((2, 2), 0.5)(RNG, "float64").tolist() == [[0.5, 0.5]] * 2
    assert np.unique(shuffled(4, 5)(RNG, "float32")).size == 20
    assert [one.shape for one in of([uniform(2), uniform(3)])(RNG, "float32")[0]] == [(2,), (3,)]


@pytest.mark.parametrize(
    ("maker", "shape"),
    [
        (permuted(uniform(2, 3, 4), (2, 0, 1)), (2, 3, 4)),
        (permuted(uniform(3, 5), (1, 0)), (3, 5)),
        (stretched(uniform(3, 1), 2, 3, 4), (2, 3, 4)),
        (strided(uniform(3, 4)), (3, 4)),
        (strided(uniform(3, 4), (1, 3)), (3, 4)),
        (strided(uniform(0, 4)), (0, 4)),
    ],
)
def test_views_have_the_values_they_promise(maker: Any, shape: tuple[int, ...]) -> None:
    view = maker(RNG, "float32")
    assert isinstance(view, View)
    assert view.value.shape == shape
    backend = get_backend("numpy")
    made = getattr(backend, view.method)(backend.asarray(view.base), *view.options)
    assert np.array_equal(made, view.value)
    assert made.size == 0 or not made.flags.c_contiguous


def test_the_reference_sees_plain_float64() -> None:
    array = np.ones(2, np.float32)
    assert host(array).dtype == np.float64
    assert host([Host(array), View(array, array, "reshape", ())])[1].dtype == np.float64
    assert host(np.ones(2, np.int32)).dtype == np.int32
    assert host((1, 2)) == (1, 2)


def test_tolerance() -> None:
    assert Tolerance().bounds("float32") == pytest.approx((1e-5, 1.1e-6))
    assert Tolerance(100_000).bounds("float32")[0] == 1e-4
    assert Tolerance().bounds("float64")[0] == 1e-12
    assert EXACT.bounds("float32") == (0.0, 0.0)
