"""Data from outside: kept, widened, refused; byte order, read-only memory, other libraries' arrays."""

import pickle

import numpy as np
import pytest

from gradcore import Tensor, tensor
from gradcore.convert import DTYPES, check_number, host_array, whole_number
from gradcore.errors import ArgumentError, DTypeError, ShapeError


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_kept(kind: str) -> None:
    array = host_array(np.ones((2, 3), kind))
    assert array.dtype is DTYPES[np.dtype(kind)]


@pytest.mark.parametrize(
    ("kind", "wider"),
    [
        ("float16", "float32"),
        ("int8", "int32"),
        ("int16", "int32"),
        ("uint16", "int32"),
        ("uint32", "int64"),
        ("uint64", "int64"),
    ],
)
def test_widened(kind: str, wider: str) -> None:
    """Case 41: nothing is lost, at the ends of the type either."""
    ends = np.array(
        [np.finfo(kind).max, np.finfo(kind).min]
        if kind == "float16"
        else [np.iinfo(kind).min, min(np.iinfo(kind).max, 2**63 - 1)],
        kind,
    )
    array = host_array(ends)
    assert array.dtype == wider
    assert array.tolist() == ends.tolist()


@pytest.mark.parametrize(
    "data", [1, 1.5, True, [1, 2], [[1.5], [2]], (1, 2), [], [[], []], [np.float64(1.0)], [True, False]], ids=repr
)
def test_lists_and_numbers_become_float32(data: object) -> None:
    array = host_array(data)
    assert (array.dtype, array.tolist()) == (np.float32, np.asarray(data, np.float64).tolist())


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i4", ">i8", ">f2"])
def test_byte_order(kind: str) -> None:
    """Case 41."""
    array = host_array(np.arange(4).astype(kind))
    assert array.dtype.isnative
    assert array.tolist() == [0, 1, 2, 3]


def test_the_type_is_the_one_object_of_its_kind() -> None:
    """The hot path compares types by identity; an unpickled array's type is only equal."""
    for kind in DTYPES:
        for array in (pickle.loads(pickle.dumps(np.ones(2, kind))), np.ones(2, np.dtype(kind, metadata={"a": 1}))):
            assert host_array(array).dtype is kind
            assert Tensor(array)._array.dtype is kind


@pytest.mark.parametrize(
    "data",
    [
        1j, [1j], "text", ["a", "b"], None, [None], {}, pytest.param(object(), id="object"),
        np.array(["a"]), np.array([1j]), [10**30], np.array(0, "datetime64[s]"),
        np.array([1.0], np.longdouble), np.array([2**63], np.uint64),
        np.array([1.0, None]),
    ],
    ids=repr,
)  # fmt: skip
def test_refused(data: object) -> None:
    if getattr(data, "dtype", None) == np.float64:
        pytest.skip("long double is double on this machine")
    with pytest.raises(DTypeError, match=r"^tensor: .* not supported"):
        host_array(data)


@pytest.mark.parametrize("data", [[[1, 2], [3]], [1, [2]], [[1], [[2]]]], ids=repr)
def test_ragged_lists(data: list) -> None:
    with pytest.raises(ShapeError, match="tensor: the lists do not form an array"):
        host_array(data)


def test_an_explicit_type() -> None:
    assert host_array([1.5, 2.5], "int64").tolist() == [1, 2]
    assert host_array(np.array([1.5]), np.float32).dtype == np.float32
    assert host_array([0, 2], bool).tolist() == [False, True]
    for dtype in ("float16", "complex64", "U1"):
        with pytest.raises(DTypeError, match="tensor: dtype"):
            host_array([1.0], dtype)


def test_every_way_to_lie_in_memory() -> None:
    """Case 41: strides, read-only, broadcast; the tensor owns a copy and the array stays as it was."""
    base = np.arange(25, dtype=np.float32).reshape(5, 5)
    for array in (
        base,
        np.asfortranarray(base),
        base.T,
        base[::-1, ::-2],
        base[1:, :3],
        np.broadcast_to(base[0], (4, 5)),
        base[:, 0],
    ):
        array = array.view()
        array.flags.writeable = False
        x = Tensor(array)
        assert x.tolist() == array.tolist()
        x.copy_(np.full(x.shape, -1.0, np.float32))
    assert base.ravel().tolist() == list(range(25))


def test_later_changes_of_the_array_do_not_reach_the_tensor() -> None:
    array = np.ones(3, np.float32)
    x = Tensor(array)
    array[:] = 7
    assert x.tolist() == [1, 1, 1]


def test_tensors_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    for kind in (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool):
        theirs = torch.ones((2, 3), dtype=kind)
        x = tensor(theirs)
        assert (f"torch.{x.dtype}", x.tolist()) == (str(kind), theirs.tolist())
    assert tensor(torch.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_whatever_speaks_dlpack() -> None:
    class Foreign:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    assert tensor(Foreign(np.arange(3.0))).tolist() == [0, 1, 2]


def test_one_number_of_numpy() -> None:
    """As data it keeps its type, unlike a Python number; as an operand it is weak."""
    assert Tensor(np.float64(1e300)).item() == 1e300
    assert Tensor(np.int16(-3)).dtype == np.int32


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]], ids=repr)
def test_whole_number_refuses(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"^op: size must be an integer, got"):
        whole_number("op", "size", value)


def test_whole_number() -> None:
    assert whole_number("op", "size", np.int64(3), 3) == 3
    with pytest.raises(ArgumentError, match=r"^op: size must be an integer of at least 3, got 2$"):
        whole_number("op", "size", 2, 3)


@pytest.mark.parametrize("value", [-1e-9, float("nan"), float("inf"), "x", None, 1.0], ids=repr)
def test_check_number_refuses(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"^op: beta must be"):
        check_number("op", "beta", value, below=1.0)


def test_check_number() -> None:
    assert check_number("op", "lr", np.float32(0.5)) == 0.5
    assert check_number("op", "lr", 0) == 0.0
