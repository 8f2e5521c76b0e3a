"""random_uniform: Philox4x32-10 written with Python integers, after the paper's figure (Salmon et al., SC 2011).

Exact bits, and the counter, in backend memory, moves on by ceil(size / 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gradcore.testing.cases.case import EXACT, Case, of, values
from gradcore.testing.cases.elementwise import size

Words = tuple[int, int, int, int]
MASK = 2**32 - 1


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """One block: ten rounds of multiply and exchange; the key goes up by two constants after each."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def random_uniform(shape: tuple[int, ...], key: int, counter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(numbers, the counter afterwards)."""
    count, start = math.prod(shape), int(counter)
    words: list[int] = []
    for block in range(start, start + -(-count // 4)):
        block %= 2**64
        words += philox((block & MASK, block >> 32, 0, 0), (key & MASK, key >> 32))
    numbers = np.array([(word >> 8) * 2.0**-24 for word in words[:count]], np.float32).reshape(shape)
    return numbers, np.array(start + -(-count // 4), np.int64)


def random_cases() -> Iterator[Case]:
    for shape in [(), (1,), (3,), (4,), (5,), (2, 3), (7, 1, 3), (0,), (3, 0), (1031,)]:
        yield case(size(shape), shape, 7, 0)
    for key in (0, 1, 2**32 - 1, 2**32, 0x299F31D0A4093822, 2**63 - 1):
        yield case(f"key_{key:x}", (9,), key, 5)
    for counter in (1, 1000, 2**32 - 1, 2**32, 0x85A308D3243F6A88 >> 1, 2**62):
        yield case(f"counter_{counter:x}", (9,), 3, counter)


def case(name: str, shape: tuple[int, ...], key: int, counter: int) -> Case:
    arguments = of(shape, key, values(counter, "int64"))
    return Case("random_uniform", name, arguments, random_uniform, EXACT, dtypes=("float32",), changes=(2,))


CASES = list(random_cases())
