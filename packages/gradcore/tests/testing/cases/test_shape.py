"""The references of the shape primitives, against NumPy."""

from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.case import host
from gradcore.testing.cases.shape import CASES


def slices(starts: Any, stops: Any, steps: Any) -> tuple[slice, ...]:
    return tuple(
        slice(start, None if stop == -1 and step < 0 else stop, step)
        for start, stop, step in zip(starts, stops, steps, strict=True)
    )


def slice_backward(grad: np.ndarray, shape: tuple[int, ...], *where: Any) -> np.ndarray:
    out = np.zeros(shape)
    out[slices(*where)] = grad
    return out


def take_backward(grad: np.ndarray, indices: np.ndarray, axis: int, length: int) -> np.ndarray:
    """As a product with one-hot rows."""
    one_hot = np.eye(length)[indices.ravel()]
    flat = grad.reshape(*grad.shape[:axis], indices.size, *grad.shape[axis + indices.ndim :])
    return np.moveaxis(np.tensordot(flat, one_hot, (axis, 0)), -1, axis)


NUMPY: dict[str, Any] = {
    "reshape": np.reshape,
    "permute_dims": np.transpose,
    "broadcast_to": np.broadcast_to,
    "concat": np.concatenate,
    "strided_slice": lambda x, *where: x[slices(*where)],
    "strided_slice_backward": slice_backward,
    "take": np.take,
    "take_backward": take_backward,
}


@pytest.mark.parametrize("operation", NUMPY)
def test_against_numpy(operation: str) -> None:
    cases = [case for case in CASES if case.operation == operation]
    assert cases
    for case in cases:
        arguments = [host(one) for one in case.build(case.dtypes[0])]
        np.testing.assert_allclose(
            case.reference(*arguments), NUMPY[operation](*arguments), rtol=1e-12, atol=1e-12, err_msg=case.id
        )
