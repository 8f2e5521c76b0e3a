"""The reference of Philox4x32-10 against the published known answers (Random123, kat_vectors)."""

import numpy as np
import pytest

from gradcore.backend.philox import philox4x32
from gradcore.testing.cases.random import philox, random_uniform

FULL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((FULL,) * 4, (FULL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], words: tuple[int, int, int, int]
) -> None:
    assert philox(counter, key) == words


def test_agrees_with_the_numpy_backend() -> None:
    key, start = 0x299F31D0A4093822, 2**32 - 2
    ours = [philox((c & FULL, c >> 32, 0, 0), (key & FULL, key >> 32)) for c in range(start, start + 4)]
    assert philox4x32(key, start, 4).tolist() == [list(words) for words in ours]


def test_counter_and_range() -> None:
    numbers, counter = random_uniform((3, 3), 1, np.array(5, np.int64))
    assert int(counter) == 8
    assert numbers.dtype == np.float32
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
