"""assert_close: two arrays agree in shape, type, NaN and infinity pattern, and value; the text says where they do not.

Next: cases/case.py, where a case's tolerance comes from.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_close(
    actual: Any, expected: Any, *, rtol: float = 1e-5, atol: float = 1e-6, dtype: bool = True, what: str = "values"
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Arrays, tensors, numbers, lists. Shapes are equal, never broadcast; NaN and each infinity stand in the same
    places. Integers and bools are compared exactly. dtype: element types are equal too. what: a name for the text.

    >>> assert_close([1.0, float("nan")], [1.0000001, float("nan")])
    >>> assert_close([[1.0, 2.0]], [[1.0, 2.5]], what="y")
    Traceback (most recent call last):
    AssertionError: y: 1 of 2 entries differ; at (0, 1): got 2.0, expected 2.5 (off by 0.5, allowed 2.6e-05)
    """
    a, b = np.asarray(actual), np.asarray(expected)
    if a.shape != b.shape:
        raise AssertionError(f"{what}: got shape {a.shape}, expected {b.shape}")
    if dtype and a.dtype != b.dtype:
        raise AssertionError(f"{what}: got dtype {a.dtype}, expected {b.dtype}")
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        _report(what, a != b, a, b, "")
        return
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    _report(what, np.isnan(wide_a) != np.isnan(wide_b), a, b, "NaN pattern")
    infinite = np.isinf(wide_a) | np.isinf(wide_b)
    _report(what, infinite & (wide_a != wide_b) & ~np.isnan(wide_a), a, b, "infinity pattern")
    finite = np.isfinite(wide_b)
    off = np.abs(np.where(finite, wide_a, 0.0) - np.where(finite, wide_b, 0.0))
    allowed = atol + rtol * np.abs(np.where(finite, wide_b, 0.0))
    _report(what, off > allowed, a, b, "", off, allowed)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays hold the same bytes: NaN equals itself, -0.0 is not 0.0."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _report(
    what: str,
    wrong: Any,
    a: np.ndarray,
    b: np.ndarray,
    pattern: str,
    off: Any = None,
    allowed: Any = None,
) -> None:
    """Raise for the worst wrong entry (the first, where there is no worst)."""
    wrong = np.asarray(wrong)
    if not wrong.any():
        return
    flat = int(np.argmax(np.where(wrong, off, -1.0))) if off is not None else int(np.argmax(wrong))
    at = tuple(int(i) for i in np.unravel_index(flat, wrong.shape))
    text = f"{what}: {int(wrong.sum())} of {wrong.size} entries differ"
    text += f" in their {pattern}" if pattern else ""
    text += f"; at {at}: got {a[at]}, expected {b[at]}"
    if off is not None:
        text += f" (off by {np.asarray(off)[at]:.2g}, allowed {np.asarray(allowed)[at]:.2g})"
    raise AssertionError(text)
