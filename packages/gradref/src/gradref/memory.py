"""Outputs whose memory is used again once nobody holds it.

malloc gives large blocks back to the system when they are freed; taking them anew costs a page fault every 4 KB, about
0.5 ms a megabyte: a third of a training step. So RefBackend keeps the blocks of its outputs. A block is free when no
array refers to it any more: NumPy makes every view, and every export to another library, hold a reference to it.
Next: backend.py.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from typing import Any

import numpy as np

SMALL = 64 * 1024  # bytes; below, malloc keeps what it has
IDLE = 256 * 1024 * 1024  # bytes that may lie idle when a new block is needed
_LINE = 64  # bytes of a cache line


class Blocks:
    """Blocks of memory by size. Threads may share one: a block that is looked at is in nobody's queue.

    >>> blocks = Blocks()
    >>> first = blocks.empty((100, 1000), np.float32)
    >>> address = first.ctypes.data
    >>> view = first[1:]
    >>> del first
    >>> blocks.empty((100, 1000), np.float32).ctypes.data == address
    False
    >>> del view
    >>> blocks.empty((1000, 100), np.float32).ctypes.data == address
    True
    """

    def __init__(self) -> None:
        self._queues: dict[int, deque[np.ndarray]] = {}
        queue = deque([np.empty(1, np.uint8)])
        block = queue.popleft()
        self._unused = sys.getrefcount(block)  # what it says of a block that only the caller's variable holds

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Like np.empty."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < SMALL:
            return np.empty(shape, dtype)
        queue = self._queues.get(size)
        if queue is None:
            queue = self._queues.setdefault(size, deque())
        for _ in range(len(queue)):
            try:
                block = queue.popleft()
            except IndexError:  # another thread looks at the last one
                break
            if sys.getrefcount(block) == self._unused:
                return self._array(block, queue, shape, dtype)
            queue.append(block)
        if self.idle() > IDLE:
            self.release()
        return self._array(np.empty(size + _LINE, np.uint8), queue, shape, dtype)

    def _array(self, block: np.ndarray, queue: deque[np.ndarray], shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array: np.ndarray = np.ndarray(shape, dtype, block, -block.ctypes.data % _LINE)
        queue.append(block)
        return array

    def idle(self) -> int:
        """Bytes that nobody holds."""
        return sum(block.size for queue in list(self._queues.values()) for block in self._take(queue, keep=True))

    def release(self) -> None:
        """Give back what nobody holds."""
        for queue in list(self._queues.values()):
            self._take(queue, keep=False)

    def _take(self, queue: deque[np.ndarray], keep: bool) -> list[np.ndarray]:
        """The free blocks of a queue, which loses them unless `keep`."""
        free = []
        for _ in range(len(queue)):
            try:
                block = queue.popleft()
            except IndexError:
                break
            unused = sys.getrefcount(block) == self._unused
            if unused:
                free.append(block)
            if keep or not unused:
                queue.append(block)
        return free
