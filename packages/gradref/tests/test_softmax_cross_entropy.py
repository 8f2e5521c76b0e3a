"""The loss and its gradient in C against NumpyBackend's, in float64; labels; the rule for large batches."""

from __future__ import annotations

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ArgumentError
from gradref.backend import RefBackend

from .oracle import assert_same, data
from .shapes import INF, NAN

reductions = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


def check(logits: np.ndarray, labels: np.ndarray, ignore: int, reduction: str) -> None:
    mine, exact = RefBackend(), NumpyBackend()
    loss, log_probs = mine.softmax_cross_entropy(logits, labels, ignore, reduction)
    with np.errstate(all="ignore"):
        wanted = exact.softmax_cross_entropy(logits.astype(float), labels, ignore, reduction)
    assert loss.dtype == log_probs.dtype == np.float32
    assert_same(log_probs, wanted[1], 10)
    assert_same(np.asarray(loss), np.asarray(wanted[0]), 10)
    grad = data(labels.shape if reduction == "none" else (), 5)
    dx = mine.softmax_cross_entropy_backward(grad, log_probs, labels, ignore, reduction)
    with np.errstate(all="ignore"):
        expected = exact.softmax_cross_entropy_backward(grad.astype(float), wanted[1], labels, ignore, reduction)
    assert_same(dx, expected, 2)


@reductions
@pytest.mark.parametrize("shape", [(64, 10), (1, 1), (5, 1), (1, 300), (7, 33), (64, 64), (65, 64), (300, 40), (0, 5)])
def test_any_size(shape: tuple[int, int], reduction: str) -> None:
    """The last but one is too many for C."""
    labels = np.random.default_rng(0).integers(0, shape[1], shape[0])
    check(3 * data(shape, 0), labels, -100, reduction)
    check(3 * data(shape, 0), labels.astype(np.int32), -100, reduction)


@reductions
def test_ignored_rows(reduction: str) -> None:
    logits, labels = data((6, 4), 0), np.array([0, -100, 3, -100, 1, 2])
    check(logits, labels, -100, reduction)
    check(logits, np.array([0, 2, 3, 2, 1, 2]), 2, reduction)
    check(logits, np.full(6, -100), -100, reduction)  # a mean over nothing is NaN, its gradient 0
    logits[1] = NAN
    _, log_probs = RefBackend().softmax_cross_entropy(logits, labels, -100, reduction)
    grad = np.ones(6 if reduction == "none" else (), np.float32)
    dx = RefBackend().softmax_cross_entropy_backward(grad, log_probs, labels, -100, reduction)
    np.testing.assert_array_equal(dx[[1, 3]], 0)
    assert np.isfinite(dx).all()


@reductions
def test_large_and_infinite_logits(reduction: str) -> None:
    logits = np.array([[1e30, 0, -1e30], [INF, 0, 1], [-INF, 0, 1], [NAN, 0, 1], [0, NAN, 2], [-INF] * 3], np.float32)
    for labels in ([0, 1, 1, 1, 2, 0], [1, 0, 0, 2, 1, 1]):
        check(logits, np.array(labels), -100, reduction)
    check(logits[:1] + 88, np.array([0]), -100, reduction)


@pytest.mark.parametrize("wrong", [-1, 4, 2**40])
def test_a_label_that_is_no_class(wrong: int) -> None:
    labels = np.array([0, wrong, 3])
    with pytest.raises(ArgumentError, match=f"cross_entropy: label {wrong} is not one of 0..3"):
        RefBackend().softmax_cross_entropy(data((3, 4), 0), labels, -100, "mean")


def test_strided_arrays() -> None:
    logits, labels = data((8, 20), 0)[:, ::2], np.repeat(np.arange(8), 2)[::2]
    check(logits, labels, -100, "mean")
    check(np.asfortranarray(logits), labels, -100, "none")
