"""random_uniform: Philox4x32-10, the same bits on every backend. Cases: ../cases/random.py."""

from typing import Any

import numpy as np

from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation

# the published known answer for counter 0 and key 0 (Random123, kat_vectors)
KNOWN = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


@each_case("random")
def test_random(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


@operation("random_uniform")
def test_known_answer(backend: Any) -> None:
    numbers = backend.random_uniform((4,), 0, backend.full((), 0, np.int64))
    wanted = np.array([(word >> 8) * 2.0**-24 for word in KNOWN], np.float32)
    assert_close(backend.to_numpy(numbers), wanted, rtol=0, atol=0)


@operation("random_uniform")
def test_counter_moves_on_in_place(backend: Any) -> None:
    counter = backend.full((), 10, np.int64)
    first = np.array(backend.to_numpy(backend.random_uniform((2, 4), 5, counter)))
    assert int(backend.to_numpy(counter)) == 12
    second = np.array(backend.to_numpy(backend.random_uniform((5,), 5, counter)))
    assert int(backend.to_numpy(counter)) == 14
    whole = backend.to_numpy(backend.random_uniform((16,), 5, backend.full((), 10, np.int64)))
    assert_close(np.concatenate([first.ravel(), second]), whole[:13], rtol=0, atol=0)


@operation("random_uniform")
def test_looks_uniform(backend: Any) -> None:
    numbers = backend.to_numpy(backend.random_uniform((100_000,), 123, backend.full((), 0, np.int64)))
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    counts, _ = np.histogram(numbers, 20, (0.0, 1.0))
    assert np.abs(counts - 5000).max() < 5 * 69  # five standard deviations
