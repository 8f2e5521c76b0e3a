"""assert_close and same_bits: what they let pass, and what their text says."""

import math
import re
from typing import Any

import numpy as np
import pytest

from gradcore import Tensor
from gradcore.testing import assert_close
from gradcore.testing.compare import same_bits

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1.0, 1.0 + 1e-6),
        ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF]),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.array(2, np.int32), np.array(2, np.int32)),
        (Tensor([1.0, 2.0]), np.array([1, 2], np.float32)),
        ([True, False], [True, False]),
        (0.0, -0.0),
    ],
)
def test_passes(a: Any, b: Any) -> None:
    assert_close(a, b)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ([1.0, 2.0], [[1.0, 2.0]], "got shape (2,), expected (1, 2)"),
        (np.zeros((1,)), np.zeros(()), "got shape (1,), expected ()"),
        (np.zeros(2, np.float32), np.zeros(2), "got dtype float32, expected float64"),
        ([1.0, 2.0, 9.0], [1.0, 2.5, 3.0], "2 of 3 entries differ; at (2,): got 9.0, expected 3.0 (off by 6"),
        ([1.0, NAN], [1.0, 2.0], "NaN pattern; at (1,): got nan, expected 2.0"),
        ([1.0, 2.0], [NAN, 2.0], "NaN pattern; at (0,): got 1.0, expected nan"),
        ([1.0, INF], [1.0, -INF], "infinity pattern; at (1,): got inf, expected -inf"),
        ([1.0, 3e38], [1.0, INF], "infinity pattern"),
        ([1, 2], [1, 3], "1 of 2 entries differ; at (1,): got 2, expected 3"),
        ([[True]], [[False]], "at (0, 0): got True, expected False"),
    ],
)
def test_fails(a: Any, b: Any, text: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(text)):
        assert_close(a, b, what="y")


def test_tolerance_and_dtype_can_be_chosen() -> None:
    assert_close([1.0], [1.1], rtol=0.1)
    assert_close([0.0], [0.1], atol=0.1)
    assert_close(np.float32([1.0]), np.float64([1.0]), dtype=False)
    with pytest.raises(AssertionError, match=r"^y: "):
        assert_close([1.0], [1.0 + 1e-9], rtol=0, atol=0, what="y")


def test_large_integers_are_exact() -> None:
    with pytest.raises(AssertionError):
        assert_close(np.array([2**53 + 1]), np.array([2**53]))


def test_same_bits() -> None:
    a = np.array([0.0, NAN])
    assert same_bits(a, a.copy())
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert not same_bits(np.zeros(2, np.float32), np.zeros(2))
    assert not same_bits(np.zeros(2), np.zeros((2, 1)))
