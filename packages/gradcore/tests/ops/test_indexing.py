"""x[key] against NumPy: every kind of key, alone and mixed, values and gradient; what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradcore import Tensor, tensor
from gradcore.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

VALUES = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)


def check(key: object, values: np.ndarray = VALUES) -> None:
    """Values and shape are NumPy's; the gradient goes where the entries came from, as often as they were read."""
    expected = values[key]
    x = Tensor(values, requires_grad=True)
    y = x[key]
    assert y.shape == expected.shape, key
    np.testing.assert_array_equal(y.numpy(), expected, err_msg=str(key))
    upstream = np.arange(1, y.size + 1, dtype=np.float32).reshape(y.shape)
    y.backward(upstream)
    grad = np.zeros_like(values)
    np.add.at(grad, key, upstream)
    np.testing.assert_array_equal(x.grad.numpy(), grad, err_msg=str(key))


ONE = [
    0,
    -1,
    2,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(2, 0, -1),
    slice(5, None),
    slice(None, None, 2),
    None,
    ...,
]


@pytest.mark.parametrize("first", ONE, ids=str)
def test_two_and_three_basic_keys(first: object) -> None:
    check(first)
    check((first,))
    for rest in itertools.chain(itertools.product(ONE), itertools.product(ONE, ONE)):
        key = (first, *rest)
        if sum(k is Ellipsis for k in key) < 2:
            check(key)


SLICES = [
    slice(-100, 100), slice(100, -100, -1), slice(-2, None, -1), slice(None, -5, -1), slice(3, 3), slice(2, 1),
    slice(0, 4, 3), slice(-1, None, -3), slice(None, None, 100), slice(None, None, -100), slice(0, None, -1),
    slice(np.int64(1), np.int64(3)),
]  # fmt: skip


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_slices(key: slice) -> None:
    """Negative bounds and steps, past the ends, empty, on each axis."""
    for at in range(3):
        check((slice(None),) * at + (key,))


ARRAYS = [
    [0],
    [2, 0, 2],
    [-1, 0],
    [],
    [[0, 1], [2, -1]],
    np.array([1, 1], np.uint8),
    np.array(1),
    np.array([[2]], np.int32),
]
BESIDE = [0, -2, slice(None), slice(2, 0, -1), slice(3, 3), None, ...]


@pytest.mark.parametrize("index", ARRAYS, ids=str)
def test_index_arrays_beside_other_keys(index: object) -> None:
    """Also where NumPy moves the array's axes to the front: an integer apart from the array."""
    for count in range(4):
        for others in itertools.product(BESIDE, repeat=count):
            real = sum(1 for k in others if k is not None and k is not Ellipsis)
            if sum(k is Ellipsis for k in others) > 1 or real > 2:
                continue
            for at in range(count + 1):
                check((*others[:at], index, *others[at:]))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_keys(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    key: list = []
    for size in shape:
        kinds = [st.slices(size)] + ([st.integers(-size, size - 1)] if size else [])
        key.append(data.draw(st.one_of(kinds)))
    key = key[: data.draw(st.integers(0, len(key)))]
    for extra in data.draw(st.sampled_from([[], [None], [...], [None, ...], [None, None]])):
        key.insert(data.draw(st.integers(0, len(key))), extra)
    try:
        _ = values[tuple(key)]
    except IndexError:  # an Ellipsis moved an integer to an axis that is too short
        with pytest.raises(ArgumentError, match="out of range"):
            _ = Tensor(values)[tuple(key)]
    else:
        check(tuple(key), values)


def test_an_index_tensor() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x[:, tensor(np.array([1, 1]))]
    assert y.tolist() == [[2, 2], [4, 4]]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2], [0, 2]]
    assert x[tensor(np.array(1))].tolist() == [3, 4]


def test_slice_of_a_row() -> None:
    """Case 34."""
    x = tensor(np.zeros((2, 3), np.float32), requires_grad=True)
    x[1, 1:].sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 1, 1]]


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64", "bool", "float64"])
def test_every_type(kind: str) -> None:
    values = (np.arange(12).reshape(3, 4) % 2).astype(kind)
    for key in (1, slice(None, None, -1), (slice(None), [2, 0]), (None, 0, ...)):
        y = Tensor(values)[key]
        assert y.dtype == kind
        np.testing.assert_array_equal(y.numpy(), values[key])


def test_one_number_has_only_empty_keys() -> None:
    x = tensor(3.0)
    assert [x[()].shape, x[...].shape, x[None].shape, x[None, ..., None].shape] == [(), (), (1,), (1, 1)]
    for key in (0, slice(None)):
        with pytest.raises(ArgumentError, match="getitem: 1 indices for a tensor of 0 axes"):
            x[key]


def test_iteration_ends() -> None:
    """Python's loop over [0], [1], ... would run into the error for an index out of range."""
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x
    assert [first.tolist(), second.tolist()] == [[1, 2], [3, 4]]
    sum(row.sum() * i for i, row in enumerate(x, 1)).backward()
    assert x.grad.tolist() == [[1, 1], [2, 2]]
    assert list(tensor(np.zeros((0, 2)))) == []
    with pytest.raises(ShapeError, match=r"shape \(\) has no length"):
        list(tensor(1.0))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (3, "index 3 is out of range for axis 0 of size 3"),
        (-4, "index -4 is out of range"),
        ((0, 4), "index 4 is out of range for axis 1 of size 4"),
        ((slice(None), None, 9), "index 9 is out of range for axis 1"),
        ((0, 0, 0, 0), "4 indices for a tensor of 3 axes"),
        ((..., 0, ...), "only one Ellipsis"),
        (([0], [1]), "two index arrays"),
        (VALUES > 3, "bool masks"),
        (True, "bool masks"),
        (np.bool_(False), "bool masks"),
        (1.0, "1.0 is not an index"),
        ("a", "'a' is not an index"),
    ],
    ids=str,
)
def test_errors(key: object, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"^getitem: .*{text}"):
        Tensor(VALUES)[key]
    assert Tensor(VALUES)[2, 3, 4].item() == 59


def test_errors_of_index_arrays() -> None:
    x = Tensor(VALUES)
    with pytest.raises(ArgumentError, match=r"index 3 is not one of 0..2"):
        x[[0, 3]]
    with pytest.raises(ArgumentError, match=r"index -5 is not one of 0..3"):
        x[:, [-5]]
    with pytest.raises(DTypeError, match="integers"):
        x[[0.5]]
    with pytest.raises(ArgumentError, match="bool masks"):
        x[tensor(np.array([True, False, True]))]
    with pytest.raises(ArgumentError, match="slice"):
        x["a":"b"]
    with pytest.raises(ArgumentError, match="slice"):
        x[::0]
