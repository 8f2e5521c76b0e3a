"""Blocks: memory is used again when nobody holds it, and never before."""

from __future__ import annotations

import doctest
import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest

from gradref import memory
from gradref.backend import RefBackend
from gradref.memory import SMALL, Blocks

SHAPE = (100, 1000)


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def test_doctest() -> None:
    assert doctest.testmod(memory).failed == 0


def test_arrays_are_ordinary() -> None:
    a = Blocks().empty((3, 5, 7000), np.float32)
    assert (a.shape, a.dtype, a.flags.c_contiguous, a.flags.writeable) == ((3, 5, 7000), np.float32, True, True)
    assert address(a) % 64 == 0
    assert Blocks().empty((0, 5), np.int32).size == 0
    assert Blocks().empty((), np.float32).shape == ()


@pytest.mark.parametrize(
    "hold",
    [lambda a: a, lambda a: a[5:9, ::3], lambda a: a.reshape(-1)[:1].T, memoryview, np.from_dlpack, iter],
    ids=["itself", "a part", "a view of a view", "memoryview", "DLPack", "an iterator"],
)
def test_what_is_held_is_not_given_away(hold: Callable[[np.ndarray], object]) -> None:
    blocks = Blocks()
    first = blocks.empty(SHAPE, np.float32)
    where, kept = address(first), hold(first)
    del first
    others = [blocks.empty(SHAPE, np.float32) for _ in range(3)]
    assert where not in [address(a) for a in others]
    del kept
    gc.collect()
    assert address(blocks.empty(SHAPE, np.float32)) == where


def test_no_two_arrays_share_memory() -> None:
    blocks, held = Blocks(), []
    rng = np.random.default_rng(0)
    for step in range(300):
        a = blocks.empty([(SMALL // 4,), (100, 200), (200, 100)][rng.integers(3)], np.float32)
        a.fill(step)
        held.append((step, a))
        if len(held) > 8:
            held.pop(rng.integers(len(held)))
        assert all((a == value).all() for value, a in held)
    assert sum(len(q) for q in blocks._queues.values()) <= 3 * 10


def test_idle_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "IDLE", 1_000_000)
    blocks = Blocks()
    held = blocks.empty((100_000,), np.float32)
    for n in range(1, 50):
        blocks.empty((100_000 + n,), np.float32)
        assert blocks.idle() < 2_000_000
    blocks.release()
    assert blocks.idle() == 0
    held.fill(1)
    assert blocks.empty((100_000,), np.float32) is not held


def test_threads() -> None:
    blocks, wrong = Blocks(), []

    def work(value: int) -> None:
        for _ in range(2000):
            a = blocks.empty(SHAPE[:1] * 2, np.float64)
            a[0] = value
            a[-1] = value
            if (a[0] != value).any() or (a[-1] != value).any():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_backend_reuses_its_outputs() -> None:
    backend, x = RefBackend(), np.ones((200, 200), np.float32)
    y = backend.relu(x)
    where = address(y)
    kept = backend.relu(x)
    assert address(kept) != where
    del y
    assert address(backend.relu(x)) == where
