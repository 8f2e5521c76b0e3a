"""RefBackend: any array a user may hold, the float64 path, the choice of algorithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradcore.backend import Conv2dOps, Pool2dOps
from gradcore.backend.numpy import NumpyBackend
from gradref.backend import RefBackend

from .oracle import Conv, Pool, assert_same, data

CONV = Conv(2, 2, (7, 6), 3, (3, 2), (2, 1), (1, 2), (1, 2), groups=2)
POOL = Pool((2, 3), (7, 9), (4, 5), (2, 2), (2, 2))
POOL_OPTIONS = POOL.kernel, POOL.stride, POOL.padding

FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda a: a,
    "fortran order": np.asfortranarray,
    "double transpose": lambda a: np.ascontiguousarray(a.T).T,
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "reversed twice": lambda a: np.flip(np.ascontiguousarray(np.flip(a))),
}


def every_operation(backend: NumpyBackend, form: Callable[[np.ndarray], np.ndarray], dtype: str) -> list[np.ndarray]:
    """All seven operations on equal values, held in some form."""

    def make(shape: tuple[int, ...], seed: int) -> np.ndarray:
        a = form(data(shape, seed).astype(dtype))
        a.flags.writeable = False
        return a

    x, weight, grad = make(CONV.x_shape, 0), make(CONV.weight_shape, 1), make(CONV.y_shape, 2)
    bias = make((CONV.y_shape[1],), 3)
    image, image_grad = make(POOL.x_shape, 4), make(POOL.y_shape, 5)
    best, indices = backend.max_pool2d(image, *POOL_OPTIONS, (1, 1), POOL.out)
    return [
        backend.conv2d(x, weight, bias, *CONV.options),
        backend.conv2d_backward_input(grad, weight, CONV.x_shape, *CONV.options),
        backend.conv2d_backward_weight(grad, x, CONV.weight_shape, *CONV.options),
        best,
        indices,
        backend.max_pool2d_backward(image_grad, form(indices), POOL.x_shape, *POOL_OPTIONS, (1, 1)),
        backend.avg_pool2d(image, *POOL_OPTIONS, POOL.out, True),
        backend.avg_pool2d_backward(image_grad, POOL.x_shape, *POOL_OPTIONS, True),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("algorithm", ["fast", "reference"])
def test_any_array(algorithm: str, form: Callable[[np.ndarray], np.ndarray], dtype: str) -> None:
    """Read-only and of any strides; float64 stays float64."""
    got = every_operation(RefBackend(algorithm), form, dtype)
    expected = every_operation(NumpyBackend(), FORMS["contiguous"], "float64")
    for q, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.dtype == (np.int32 if q == 4 else dtype)
        assert a.flags.c_contiguous
        assert_same(a, b, 5)


def test_reversed_and_broadcast_images() -> None:
    backend = RefBackend()
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)[:, :, ::-1]
    y, _ = backend.max_pool2d(x, (2, 2), (2, 2), (0, 0), (1, 1), (2, 2))
    assert y.ravel().tolist() == [21, 23, 11, 13]
    x = np.broadcast_to(np.arange(4, dtype=np.float32), (1, 1, 4, 4))
    assert backend.avg_pool2d(x, (2, 2), (2, 2), (0, 0), (2, 2), True).ravel().tolist() == [0.5, 2.5, 0.5, 2.5]


def test_float64_is_never_cut_to_float32() -> None:
    x = np.full((1, 1, 2, 2), 1e300)
    assert RefBackend().avg_pool2d(x, (2, 2), (2, 2), (0, 0), (1, 1), True).item() == 1e300


def test_other_byte_order_is_computed_or_refused_by_numpy() -> None:
    x = np.arange(16, dtype=">f4").reshape(1, 1, 4, 4)
    y = RefBackend().avg_pool2d(x, (2, 2), (2, 2), (0, 0), (2, 2), True)
    assert y.ravel().tolist() == [2.5, 4.5, 10.5, 12.5]


def test_an_empty_batch() -> None:
    s = Conv(0, 3, (8, 8), 4, (3, 3))
    backend = RefBackend()
    weight, grad = data(s.weight_shape, 0), data(s.y_shape, 1)
    x = data(s.x_shape, 2)
    assert backend.conv2d(x, weight, None, *s.options).shape == (0, 4, 6, 6)
    assert backend.conv2d_backward_input(grad, weight, s.x_shape, *s.options).shape == s.x_shape
    dw = backend.conv2d_backward_weight(grad, x, s.weight_shape, *s.options)
    np.testing.assert_array_equal(dw, np.zeros(s.weight_shape))


def test_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADREF_ALGORITHM", raising=False)
    assert RefBackend().algorithm == "fast"
    monkeypatch.setenv("GRADREF_ALGORITHM", "reference")
    assert RefBackend().algorithm == "reference"
    assert "textbook" in RefBackend().device
    assert RefBackend("fast").algorithm == "fast"
    monkeypatch.setenv("GRADREF_ALGORITHM", "quick")
    with pytest.raises(ValueError, match="GRADREF_ALGORITHM must be 'fast' or 'reference', got 'quick'"):
        RefBackend()
    with pytest.raises(ValueError, match=r"^algorithm must be"):
        RefBackend("slow")  # type: ignore[arg-type]


def test_it_says_what_it_is() -> None:
    backend = RefBackend("fast")
    assert backend.name == "ref"
    assert backend.device.startswith("CPU, 1 thread (")
    assert isinstance(backend, Conv2dOps)
    assert isinstance(backend, Pool2dOps)
    assert backend.capabilities == ("Conv2dOps", "Pool2dOps")
