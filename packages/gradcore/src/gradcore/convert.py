"""Data from outside on its way into a Tensor: which types are kept, which are widened, which are refused."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from gradcore.errors import ArgumentError, DTypeError, ShapeError

# the one object of each native type, so that the hot path can compare with `is`
DTYPES = {np.dtype(t): np.dtype(t) for t in (np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)}
_WIDENED: dict[Any, Any] = {
    np.float16: np.float32,
    np.int8: np.int32,
    np.int16: np.int32,
    np.uint16: np.int32,
    np.uint32: np.int64,
}


def host_array(data: Any, dtype: npt.DTypeLike | None = None) -> np.ndarray:
    """Data of any kind as a NumPy array of a type that gradcore has, native byte order.

    Arrays keep their type (float16 and small integers are widened); lists and Python numbers become float32.
    """
    array: np.ndarray
    if isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
    elif hasattr(data, "__dlpack__") or hasattr(data, "__array__"):
        array = np.asarray(data) if hasattr(data, "__array__") else np.from_dlpack(data)
    else:
        try:
            array = np.asarray(data)
        except ValueError as error:
            raise ShapeError(f"tensor: the lists do not form an array: {error}") from None
        if array.dtype.kind in "biuf" and dtype is None:
            dtype = np.float32
    kind: Any = array.dtype.type
    if kind is np.uint64 and (array.size == 0 or array.max() < 2**63):
        kind = np.int64
    native: np.dtype[Any] = np.dtype(_WIDENED.get(kind, kind))
    if native not in DTYPES:
        raise DTypeError(f"tensor: {array.dtype} values are not supported; convert with .astype('float32')")
    if dtype is not None:
        native = np.dtype(dtype)
        check_dtype("tensor", native)
    with np.errstate(all="ignore"):
        return array.astype(DTYPES[native], copy=False).view(DTYPES[native])  # an unpickled array's type is equal only


def whole_number(operation: str, name: str, value: Any, least: int | None = None) -> int:
    """value as an int, if it is an integer (NumPy's too, no bool) of at least `least`; else ArgumentError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or (least is not None and number < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        raise ArgumentError(f"{operation}: {name} must be {wanted}, got {value!r}")
    return number


def check_number(operation: str, name: str, value: float, below: float = math.inf) -> float:
    """value as a float, if 0 <= value < below (so NaN and infinity are refused); else ArgumentError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{operation}: {name} must be a number, got {value!r}") from None
    if not 0.0 <= number < below:
        limit = "finite" if below == math.inf else f"below {below:g}"
        raise ArgumentError(f"{operation}: {name} must be at least 0 and {limit}, got {value}")
    return number


def check_dtype(operation: str, dtype: np.dtype[Any]) -> None:
    """Raise DTypeError for an element type that gradcore does not have."""
    if dtype not in DTYPES:
        raise DTypeError(f"{operation}: dtype {dtype} is not one of {', '.join(str(t) for t in DTYPES)}")
