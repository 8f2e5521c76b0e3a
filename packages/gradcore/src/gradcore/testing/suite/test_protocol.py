"""What a backend is made of: every primitive is there, it says who it is, its arrays say what they are."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.base import BaseBackend
from gradcore.backend.protocol import CAPABILITIES, Array, Backend
from gradcore.testing.cases.case import ALL_DTYPES
from gradcore.testing.check import operation
from gradcore.testing.marks import operation as about

PRIMITIVES = [name for name, value in vars(Backend).items() if callable(value) and not name.startswith("_")]
DERIVED = [name for name, value in vars(BaseBackend).items() if callable(value) and not name.startswith("_")]


@pytest.mark.parametrize("name", [pytest.param(name, marks=about(name)) for name in PRIMITIVES + DERIVED])
def test_has(backend: Any, name: str) -> None:
    operation(backend, name)


def test_words(backend: Any) -> None:
    for word in (backend.name, backend.device, backend.precision):
        assert isinstance(word, str)
        assert word
    assert backend.name in repr(backend)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_capability_is_whole(backend: Any, capability: type) -> None:
    """All methods of a capability or none: one alone would be found missing in the middle of a training run."""
    names = [name for name, value in vars(capability).items() if callable(value) and not name.startswith("_")]
    there = [name for name in names if callable(getattr(backend, name, None))]
    assert there in ([], names)
    assert (capability.__name__ in backend.capabilities) == bool(there)


@about("asarray")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_array(backend: Any, shape: tuple[int, ...], dtype: str) -> None:
    array = backend.asarray(np.zeros(shape, dtype))
    assert isinstance(array, Array)
    assert type(array.shape) is tuple
    assert all(type(n) is int for n in array.shape)
    assert array.shape == shape
    assert array.dtype is np.dtype(dtype)  # the one object: gradcore's hot path compares with `is`
    kind, index = array.__dlpack_device__()
    assert int(kind) > 0
    assert int(index) >= 0


def test_unknown_name_is_an_attribute_error(backend: Any) -> None:
    with pytest.raises(AttributeError, match="no_such_operation"):
        _ = backend.no_such_operation
