"""Memory: arrays are made, copied, filled and read, for every element type. Cases: ../cases/memory.py."""

from typing import Any

import numpy as np
import pytest

from gradcore.errors import ArgumentError
from gradcore.testing.cases import Case
from gradcore.testing.cases.case import ALL_DTYPES
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation


@each_case("memory")
def test_memory(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


@operation("asarray")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_asarray_copies(backend: Any, dtype: str) -> None:
    host = np.ones((2, 3), dtype)
    array = backend.asarray(host)
    host[:] = 0
    assert_close(backend.to_numpy(array), np.ones((2, 3), dtype))


@operation("empty")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_empty(backend: Any, shape: tuple[int, ...], dtype: str) -> None:
    array = backend.empty(shape, dtype)
    assert array.shape == shape
    assert array.dtype == np.dtype(dtype)
    assert backend.to_numpy(array).shape == shape
    backend.copy_(array, backend.full(shape, 1, dtype))
    assert_close(backend.to_numpy(array), np.ones(shape, dtype))


@operation("empty")
def test_two_empty_arrays_are_apart(backend: Any) -> None:
    first, second = backend.empty((4,), np.float32), backend.empty((4,), np.float32)
    backend.copy_(first, backend.full((4,), 1.0, np.float32))
    backend.copy_(second, backend.full((4,), 2.0, np.float32))
    assert_close(backend.to_numpy(first), np.ones(4, np.float32))


@operation("copy_")
def test_copy_takes_values_not_memory(backend: Any) -> None:
    destination, source = backend.full((3,), 0.0, np.float32), backend.full((3,), 1.0, np.float32)
    backend.copy_(destination, source)
    backend.copy_(source, backend.full((3,), 2.0, np.float32))
    assert_close(backend.to_numpy(destination), np.ones(3, np.float32))


@operation("full")
def test_a_dtype_in_every_spelling(backend: Any) -> None:
    for dtype in ("float32", np.float32, np.dtype(np.float32)):
        assert backend.full((2,), 1, dtype).dtype == np.float32
        assert backend.empty((2,), dtype).dtype == np.float32
        assert backend.astype(backend.full((2,), 1, np.int64), dtype).dtype == np.float32


def test_synchronize(backend: Any) -> None:
    backend.add(backend.full((1000,), 1.0, np.float32), 1.0)
    assert backend.synchronize() is None


@operation("check_indices")
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("bad", [-1, 3, 1000])
def test_a_bad_index_is_told(backend: Any, bad: int, kind: str) -> None:
    """At once, or at the next synchronising call; afterwards all is as before."""
    x, indices = backend.full((3, 2), 1.0, np.float32), backend.asarray(np.array([0, bad, 2], kind))
    with pytest.raises(ArgumentError, match=str(bad)):
        take_checked(backend, x, indices)
    backend.synchronize()
    good = backend.asarray(np.array([0, 2], kind))
    backend.check_indices(good, 3, "take")
    assert_close(backend.to_numpy(backend.take(x, good, 0)), np.ones((2, 2), np.float32))


def take_checked(backend: Any, x: Any, indices: Any) -> None:
    backend.check_indices(indices, x.shape[0], "take")
    backend.take(x, indices, 0)
    backend.synchronize()


@operation("check_indices")
def test_an_ignored_index_is_allowed(backend: Any) -> None:
    backend.check_indices(backend.asarray(np.array([0, -100, 2])), 3, "cross_entropy", -100)
    backend.check_indices(backend.asarray(np.zeros((0,), np.int64)), 3, "take")
    backend.synchronize()
