"""Philox4x32-10, a counter-based random generator (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers, SC 2011).

Block i of the stream is a pure function of (key, counter + i): no state to pass along, so every backend can compute
its part of the stream in any order and arrive at the same bits.
"""

import numpy as np

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox4x32(key: int, counter: int, blocks: int) -> np.ndarray:
    """(blocks, 4) uint32: the blocks at counter, counter + 1, ...; key and counter are taken modulo 2**64."""
    position = np.arange(blocks, dtype=np.uint64) + np.uint64(counter % 2**64)
    c0, c1 = position & _LOW, position >> _HALF
    c2 = c3 = np.zeros_like(c0)
    k0, k1 = key % 2**32, key % 2**64 >> 32
    for _ in range(10):
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]  # 32 x 32 -> 64 bits
        c0, c1, c2, c3 = (
            (right >> _HALF) ^ c1 ^ np.uint64(k0),
            right & _LOW,
            (left >> _HALF) ^ c3 ^ np.uint64(k1),
            left & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) % 2**32, (k1 + _WEYL[1]) % 2**32
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def uniform(key: int, counter: int, size: int) -> np.ndarray:
    """float32 (size,) in [0, 1): the top 24 bits of each word."""
    words = philox4x32(key, counter, -(-size // 4)).reshape(-1)[:size]
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
