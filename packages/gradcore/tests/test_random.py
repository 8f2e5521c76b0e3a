"""The host's random numbers: seeds, threads, keys."""

import threading

import numpy as np
import pytest

from gradcore import manual_seed, nn
from gradcore.errors import ArgumentError
from gradcore.random import host_generator, next_key


def draw() -> list:
    return host_generator().random(5).tolist()


def test_equal_seeds_equal_numbers() -> None:
    """Case 74."""
    runs = []
    for seed in (0, 0, 1, 2**63, np.int64(1)):
        manual_seed(seed)
        runs.append((draw(), next_key(), nn.Linear(3, 2).weight.tolist()))
    assert runs[0] == runs[1]
    assert runs[2] == runs[4]
    assert len({str(run) for run in runs}) == 3


def test_without_a_seed_two_threads_differ() -> None:
    """And a seed in one thread does nothing to another."""
    manual_seed(0)
    expected = draw()
    others: list = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: others.append(draw()))
        manual_seed(0)
        thread.start()
        thread.join()
        assert draw() == expected
    assert others[0] != others[1]


def test_threads_with_one_seed_agree() -> None:
    found: list = []

    def work() -> None:
        manual_seed(5)
        found.append([next_key() for _ in range(100)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(keys) for keys in found}) == 1


def test_keys() -> None:
    manual_seed(0)
    keys = [next_key() for _ in range(1000)]
    assert all(type(key) is int and 0 <= key < 2**63 for key in keys)
    assert len(set(keys)) == 1000


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None], ids=repr)
def test_no_seed(seed: object) -> None:
    """None would mean a random seed to NumPy."""
    manual_seed(3)
    with pytest.raises(ArgumentError, match=f"manual_seed: seed must be an integer of at least 0, got {seed!r}"):
        manual_seed(seed)
    after = draw()
    manual_seed(3)
    assert draw() == after  # the refused call changed nothing
