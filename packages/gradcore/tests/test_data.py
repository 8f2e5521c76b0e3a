"""Batches: each row once an epoch, an order of (seed, epoch) alone, resuming in mid-epoch, and what comes in."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Batches, Tensor
from gradcore.errors import ArgumentError, DTypeError, ShapeError


@pytest.fixture(autouse=True)
def current(backend: Any) -> None:
    """Every test on each backend."""


def rows(count: int, *shape: int) -> np.ndarray:
    """Row i holds i everywhere, so that a batch tells where it is from."""
    return np.broadcast_to(np.arange(count, dtype=np.float32).reshape(-1, *[1] * len(shape)), (count, *shape)).copy()


def epoch(batches: Batches) -> list[list[int]]:
    """The rows of the batches left; images and labels must belong together."""
    found = []
    for images, labels in batches:
        assert images.shape[0] == labels.shape[0]
        assert images.numpy().reshape(len(labels), -1)[:, 0].tolist() == labels.tolist()
        found.append(labels.tolist())
    return found


@pytest.mark.parametrize(("count", "size"), [(10, 4), (12, 4), (1, 1), (7, 7), (7, 100), (1000, 33), (5, 1)])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_epoch_covers_the_data_exactly(count: int, size: int, drop_last: bool, shuffle: bool) -> None:
    """No row twice, none left out but those of a dropped last batch; three epochs."""
    drop_last = drop_last and size <= count  # the other is refused, see below
    batches = Batches(rows(count, 2), np.arange(count), size, shuffle=shuffle, drop_last=drop_last)
    kept = count // size * size if drop_last else count
    for number in range(3):
        found = epoch(batches)
        assert batches.epoch == number
        assert len(found) == len(batches) == (count // size if drop_last else -(-count // size))
        sizes = [len(batch) for batch in found]
        assert sizes == [size] * (kept // size) + ([kept % size] if kept % size else [])
        together = [row for batch in found for row in batch]
        assert len(set(together)) == len(together) == kept
        if not shuffle:
            assert together == list(range(kept))


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    """Case 74: not on the size, on what ran before, nor on the global seed."""
    orders: dict[tuple[int, int], Any] = {}
    for size in (3, 10, 64):
        for seed in (0, 1, -1, 2**63):
            gradcore.manual_seed(size)
            batches = Batches(rows(64), np.arange(64), size, seed)
            for number in range(3):
                order = [row for batch in epoch(batches) for row in batch]
                assert orders.setdefault((seed, number), order) == order
    assert len({tuple(order) for order in orders.values()}) == len(orders) == 12


def test_the_order_is_spread() -> None:
    """Each row comes first about equally often: 600 epochs of 6 rows, five standard deviations."""
    batches = Batches(rows(6), np.arange(6), 6)
    first = [epoch(batches)[0][0] for _ in range(600)]
    assert max(abs(first.count(row) - 100) for row in range(6)) < 5 * (600 * 5 / 36) ** 0.5


@pytest.mark.parametrize("taken", [0, 1, 2, 3, 4, 7, 9])
@pytest.mark.parametrize("drop_last", [False, True])
def test_resuming(taken: int, drop_last: bool) -> None:
    """Case 49: from any batch on, also across an epoch's end, another object goes on with the same rows."""
    make = lambda seed: Batches(rows(10, 3), np.arange(10), 3, seed, drop_last=drop_last)  # noqa: E731
    first, second = make(4), make(0)
    for _ in range(taken):
        first.next()
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()
    for _ in range(9):
        ours, theirs = first.next(), second.next()
        assert ours[1].tolist() == theirs[1].tolist()
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert second.state_dict() == first.state_dict()


def test_a_broken_off_loop_goes_on() -> None:
    batches = Batches(rows(10), np.arange(10), 4, shuffle=False)
    for _, labels in batches:
        assert labels.tolist() == [0, 1, 2, 3]
        break
    assert epoch(batches) == [[4, 5, 6, 7], [8, 9]]
    assert epoch(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches.epoch == 1


def test_batches_do_not_change_later() -> None:
    """A batch is a copy: the next one does not overwrite it, and the data given may change."""
    data = rows(4, 2)
    batches = Batches(data, np.arange(4), 2, shuffle=False)
    data[:] = -1.0
    first = batches.next()
    batches.next()
    assert first[0].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert first[1].tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64", "bool"])
def test_integer_images_become_float32(kind: str) -> None:
    """Case 43: 5 - 7 is -2 then."""
    batches = Batches(np.array([[5], [200]]).astype(kind), [0, 1], 2, shuffle=False)
    images, _ = batches.next()
    assert images.dtype == np.float32
    expected = np.array([[5], [200]]).astype(kind).astype(np.float32) - 7
    assert (images - 7.0).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_float_images_keep_their_type(kind: str) -> None:
    batches = Batches(np.ones((2, 2), kind), [0, 1], 2)
    assert batches.next()[0].dtype == ("float32" if kind == "float16" else kind)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 0, 2], np.int64),
        (np.array([1, 0, 2], np.uint8), np.uint8),
        (np.array([1, 0, 2], np.int32), np.int32),
        (np.array([1, 0, 2], np.int16), np.int32),
        ([[1.0], [0.0], [0.5]], np.float32),
        (np.array([0.0, 0.5, 1.0], np.float32), np.float32),
        (np.array([0.0, 0.5, 1.0]), np.float64),
        ([True, False, True], np.bool_),
    ],
)
def test_labels_keep_their_type(labels: Any, expected: Any) -> None:
    """Integers stay integers; a list of floats is float32, as everywhere, so that it fits a float32 network."""
    batches = Batches(rows(3), labels, 3, shuffle=False)
    got = batches.next()[1]
    assert got.dtype == expected
    assert got.tolist() == np.asarray(labels).tolist()


def test_labels_that_are_tensors_and_torch_tensors() -> None:
    assert Batches(Tensor(rows(2)), Tensor(np.array([3, 4])), 2, shuffle=False).next()[1].tolist() == [3, 4]
    torch = pytest.importorskip("torch")
    batches = Batches(torch.ones(2, 3), torch.tensor([3, 4]), 2, shuffle=False)
    images, labels = batches.next()
    assert (images.shape, labels.tolist(), labels.dtype) == ((2, 3), [3, 4], np.int64)


def test_any_layout() -> None:
    """Case 41: strides, byte order, read-only."""
    data = np.arange(24, dtype=">f4").reshape(3, 4, 2)[:, ::-1].transpose(1, 0, 2)
    data.flags.writeable = False
    images, _ = Batches(data, np.arange(4), 4, shuffle=False).next()
    assert images.tolist() == data.tolist()


@pytest.mark.parametrize("size", [0, -5, 2.5, True, "8", None])
def test_the_size_is_checked(size: Any) -> None:
    """Case 72."""
    with pytest.raises(ArgumentError, match="Batches: size must be an integer of at least 1"):
        Batches(rows(4), np.arange(4), size)


@pytest.mark.parametrize("seed", [0.5, None, "a"])
def test_the_seed_is_checked(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="Batches: seed must be an integer"):
        Batches(rows(4), np.arange(4), 2, seed)


def test_numpy_integers_as_numbers() -> None:
    assert len(Batches(rows(4), np.arange(4), np.int64(3), np.uint8(1))) == 2


def test_more_than_there_is() -> None:
    """Case 72: a batch larger than the data is the data; nothing to train on is an error, not a division by zero."""
    assert [len(batch) for batch in epoch(Batches(rows(5), np.arange(5), 100_000))] == [5]
    with pytest.raises(ArgumentError, match="Batches: 5 rows give no batch of 6"):
        Batches(rows(5), np.arange(5), 6, drop_last=True)
    with pytest.raises(ArgumentError, match="Batches: 0 rows"):
        Batches(rows(0, 3), np.arange(0), 2)


@pytest.mark.parametrize(("images", "labels"), [(rows(3), [0, 1]), (np.float32(1.0), [0]), (rows(2), 1)])
def test_lengths_must_agree(images: Any, labels: Any) -> None:
    with pytest.raises(ShapeError, match=r"Batches: images \(.*\) and labels \(.*\) differ in length"):
        Batches(images, labels, 1)


@pytest.mark.parametrize("wrong", [np.array(["a", "b"]), np.array([1j, 2j]), np.array([None, 1])])
def test_what_is_no_number(wrong: Any) -> None:
    with pytest.raises(DTypeError):
        Batches(wrong, [0, 1], 1)
    with pytest.raises(DTypeError):
        Batches(rows(2), wrong, 1)


def test_ragged_lists() -> None:
    with pytest.raises(ShapeError):
        Batches([[1.0], [1.0, 2.0]], [0, 1], 1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"count": 9}, "of 9 rows of data, these are 10"),
        ({"cursor": 11}, "cursor 11 lies behind the 10 rows"),
        ({"cursor": -1}, "cursor"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": 2**64}, "epoch"),
        ({"epoch": "x"}, "epoch"),
        ({"seed": "x"}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"cursor": None}, "cursor"),
    ],
)
def test_a_state_that_does_not_fit(change: Any, text: str) -> None:
    """All or nothing."""
    batches = Batches(rows(10), np.arange(10), 3)
    batches.next()
    before = batches.state_dict()
    with pytest.raises(ArgumentError, match=f"Batches.load_state_dict: .*{text}"):
        batches.load_state_dict({**before, **change})
    with pytest.raises(ArgumentError, match=r"Batches.load_state_dict: missing count, cursor"):
        batches.load_state_dict({"seed": 0, "epoch": 0})
    assert batches.state_dict() == before
    twin = Batches(rows(10), np.arange(10), 3)
    twin.next()
    assert batches.next()[1].tolist() == twin.next()[1].tolist()


def test_repr() -> None:
    batches = Batches(rows(10), np.arange(10), 3, 7)
    batches.next()
    assert repr(batches) == "Batches(10 rows by 3, epoch 0, row 3, seed=7)"
