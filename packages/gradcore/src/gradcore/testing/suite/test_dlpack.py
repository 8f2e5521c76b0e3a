"""Exchange with other libraries by DLPack: values of every type, other layouts, and whose memory lives how long."""

import gc
from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.case import ALL_DTYPES
from gradcore.testing.compare import assert_close
from gradcore.testing.marks import operation

CPU = 1  # kDLCPU
SHAPES = [(3,), (2, 3, 4), (0, 3), (1, 1)]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def on_cpu(array: Any) -> bool:
    return int(array.__dlpack_device__()[0]) == CPU


@operation("from_dlpack")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_from_numpy(backend: Any, shape: tuple[int, ...], dtype: str) -> None:
    source = numbers(shape, dtype)
    array = backend.from_dlpack(source)
    assert array.shape == shape
    assert array.dtype is np.dtype(dtype)
    assert_close(backend.to_numpy(array), source)


@operation("from_dlpack")
@pytest.mark.parametrize("layout", ["transposed", "strided", "reversed"])
def test_from_other_layouts(backend: Any, layout: str) -> None:
    base = numbers((6, 8), "float32")
    source = {"transposed": base.T, "strided": base[::2, 1::3], "reversed": base[::-1, ::-1]}[layout]
    array = backend.from_dlpack(source)
    assert_close(backend.to_numpy(backend.add(array, 0.0)), np.array(source))


@operation("from_dlpack")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_from_itself(backend: Any, dtype: str) -> None:
    source = backend.asarray(numbers((2, 3), dtype))
    assert_close(backend.to_numpy(backend.from_dlpack(source)), numbers((2, 3), dtype))


@operation("from_dlpack")
def test_no_copy_on_the_same_device(backend: Any) -> None:
    source = backend.full((3,), 1.0, np.float32)
    array = backend.from_dlpack(source)
    backend.copy_(source, backend.full((3,), 2.0, np.float32))
    assert_close(backend.to_numpy(array), np.full(3, 2, np.float32))


@operation("from_dlpack")
def test_imported_memory_outlives_its_owner(backend: Any) -> None:
    source = backend.asarray(numbers((1000,), "float32"))
    array = backend.from_dlpack(source)
    del source
    gc.collect()
    filler = [backend.full((1000,), -1.0, np.float32) for _ in range(20)]
    assert_close(backend.to_numpy(array), numbers((1000,), "float32"))
    del filler


@operation("asarray")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_exported_memory_outlives_its_owner(backend: Any, dtype: str) -> None:
    array = backend.asarray(numbers((1000,), dtype))
    if not on_cpu(array):
        pytest.skip("NumPy reads CPU memory only")
    view = np.from_dlpack(array)
    del array
    gc.collect()
    filler = [backend.full((1000,), 1, dtype) for _ in range(20)]
    assert_close(view, numbers((1000,), dtype))
    del filler


@operation("asarray")
def test_a_capsule_that_nobody_takes_is_freed(backend: Any) -> None:
    array = backend.full((1000,), 1.0, np.float32)
    for _ in range(100):
        capsule = array.__dlpack__()
        del capsule
    assert_close(backend.to_numpy(array), np.ones(1000, np.float32))
