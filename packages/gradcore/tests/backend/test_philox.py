"""Philox4x32-10 against the published vectors, through a plain-Python version written apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.philox import philox4x32, uniform


def plain(counter: list[int], key: list[int]) -> list[int]:
    """Salmon et al. 2011, section 3.3, word by word."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left, right = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right % 2**32, (left >> 32) ^ c3 ^ k1, left % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [c0, c1, c2, c3]


def test_published_vectors() -> None:
    """From the authors' Random123 library (kat_vectors)."""
    assert plain([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert plain([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    digits = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    assert plain(digits, [0xA4093822, 0x299F31D0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    assert philox4x32(0, 0, 1).tolist() == [plain([0] * 4, [0] * 2)]


@settings(max_examples=50, deadline=None)
@given(key=st.integers(0, 2**64 - 1), counter=st.integers(0, 2**64 - 1), blocks=st.integers(0, 5))
def test_beside_plain_python(key: int, counter: int, blocks: int) -> None:
    """Also where the low counter word, or the whole counter, overflows."""
    positions = [(counter + i) % 2**64 for i in range(blocks)]
    expected = [plain([p % 2**32, p >> 32, 0, 0], [key % 2**32, key >> 32]) for p in positions]
    found = philox4x32(key, counter, blocks)
    assert (found.dtype, found.shape, found.tolist()) == (np.uint32, (blocks, 4), expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("counter", [2**32 - 1, 2**64 - 1, 2**63 - 1], ids=hex)
def test_overflowing_counters(counter: int) -> None:
    second = (counter + 1) % 2**64
    assert philox4x32(7, counter, 2)[1].tolist() == philox4x32(7, second, 1)[0].tolist()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 1000])
def test_uniform(size: int) -> None:
    """The top 24 bits of each word, in [0, 1)."""
    values = uniform(11, 3, size)
    words = philox4x32(11, 3, -(-size // 4)).ravel()[:size]
    assert values.dtype == np.float32
    assert values.tolist() == [(int(word) >> 8) / 2**24 for word in words]


def test_uniform_is_uniform() -> None:
    values = uniform(1, 0, 100_000)
    assert 0.0 <= values.min() < 1e-4
    assert 0.9999 < values.max() < 1.0
    assert np.histogram(values, 10, (0, 1))[0] == pytest.approx(10_000, rel=0.05)


def test_the_largest_word_stays_below_one() -> None:
    assert np.float32(0xFFFFFFFF >> 8) * np.float32(2.0**-24) < 1.0


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (5, 7), (0, 3)], ids=str)
def test_the_counter_moves_on_in_place(shape: tuple) -> None:
    """By a block for each four elements begun; pieces in a row make one stream of whole blocks."""
    backend, counter = NumpyBackend(), np.array(10, np.int64)
    size = int(np.prod(shape))
    values = backend.random_uniform(shape, 5, counter)
    assert (values.shape, values.dtype, int(counter)) == (shape, np.float32, 10 + -(-size // 4))
    assert values.ravel().tolist() == uniform(5, 10, size).tolist()
