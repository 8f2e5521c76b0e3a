"""Batches: a data set that lives on the backend, with its order and cursor, and hands out shuffled batches.

Gathering a batch is backend work that reads the cursor from backend memory, so a captured loop can repeat it; the
host only counts along and reshuffles between epochs. Works the same on a CPU and a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcore.backend.base import BaseBackend
from gradcore.convert import host_array, whole_number
from gradcore.errors import ArgumentError, ShapeError
from gradcore.tensor import Tensor


class Batches:
    """Shuffled batches of (images, labels), again each epoch; the order depends on (seed, epoch) alone.

    images: (N, ...); integer images become float32. labels: (N, ...), integers stay integers. size: rows a batch; the
    last batch of an epoch may be smaller, or is dropped with drop_last. Raises ArgumentError or ShapeError.

    >>> import numpy as np
    >>> batches = Batches(np.zeros((10, 3)), np.arange(10), size=4, shuffle=False)
    >>> [labels.tolist() for _, labels in batches]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        size: int,
        seed: int = 0,
        *,
        shuffle: bool = True,
        drop_last: bool = False,
        backend: str | BaseBackend | None = None,
    ) -> None:
        from gradcore.backend.registry import get_backend

        host_images, host_labels = host_array(images), _label_array(labels)
        if host_images.ndim == 0 or host_labels.ndim == 0 or len(host_images) != len(host_labels):
            raise ShapeError(f"Batches: images {host_images.shape} and labels {host_labels.shape} differ in length")
        size, seed = whole_number("Batches", "size", size, 1), whole_number("Batches", "seed", seed)
        self.count = len(host_images)
        if self.count == 0 or (drop_last and self.count < size):
            raise ArgumentError(f"Batches: {self.count} rows give no batch of {size}")
        self.size, self.seed, self.shuffle, self.drop_last = min(size, self.count), seed, shuffle, drop_last
        self.backend = get_backend(backend)
        floats = host_images if host_images.dtype.kind == "f" else host_images.astype(np.float32)
        self._images = self.backend.asarray(floats)
        self._labels = self.backend.asarray(host_labels)
        self._cursor = self.backend.full((), 0, np.int64)
        self._order = self.backend.asarray(self._permutation(0))
        self.epoch = 0
        self.cursor = 0  # rows of this epoch already handed out

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self.count // self.size if self.drop_last else -(-self.count // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches left of this epoch; a whole epoch when none has been taken yet or all have."""
        if self._left() == 0:
            self._restart(self.epoch + 1)
        while self._left():
            yield self.next()

    def next(self) -> tuple[Tensor, Tensor]:
        """The next batch (images, labels); after the last one a new epoch begins."""
        return self.gather(self.advance())

    def advance(self) -> int:
        """The host's part of a batch: begin an epoch if one is over; returns the rows of the coming batch."""
        if self._left() == 0:
            self._restart(self.epoch + 1)
        rows = self._left()
        self.cursor += rows
        return rows

    def gather(self, rows: int) -> tuple[Tensor, Tensor]:
        """The backend's part: read rows at the cursor in backend memory, and move it on."""
        back = self.backend
        images = back.take_batch(self._images, self._order, self._cursor, rows)
        labels = back.take_batch(self._labels, self._order, self._cursor, rows)
        back.copy_(self._cursor, back.add(self._cursor, rows))
        return Tensor._wrap(images, back), Tensor._wrap(labels, back)

    def state_dict(self) -> dict[str, int]:
        """Where the run stands: seed, epoch, cursor, and the number of rows as a check."""
        return {"seed": self.seed, "epoch": self.epoch, "cursor": self.cursor, "count": self.count}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where state_dict was taken. Raises ArgumentError if the data set has another length."""
        self.check_state(state)
        self.seed = int(state["seed"])
        self._restart(int(state["epoch"]))
        self.cursor = int(state["cursor"])
        self.backend.copy_(self._cursor, self.backend.full((), self.cursor, np.int64))

    def check_state(self, state: dict[str, int]) -> None:
        """Raise ArgumentError unless load_state_dict can take this state."""
        name = "Batches.load_state_dict"
        missing = {"seed", "epoch", "cursor", "count"} - set(state)
        if missing:
            raise ArgumentError(f"{name}: missing {', '.join(sorted(missing))}")
        whole_number(name, "seed", state["seed"])
        if whole_number(name, "epoch", state["epoch"], 0) >= 2**64:
            raise ArgumentError(f"{name}: epoch {state['epoch']} is too large")
        if whole_number(name, "count", state["count"], 1) != self.count:
            raise ArgumentError(f"{name}: the state is of {state['count']} rows of data, these are {self.count}")
        if whole_number(name, "cursor", state["cursor"], 0) > self.count:
            raise ArgumentError(f"{name}: cursor {state['cursor']} lies behind the {self.count} rows")

    def __repr__(self) -> str:
        return f"Batches({self.count} rows by {self.size}, epoch {self.epoch}, row {self.cursor}, seed={self.seed})"

    def _left(self) -> int:
        """Rows of the next batch of this epoch; 0 when it is over."""
        left = min(self.size, self.count - self.cursor)
        return 0 if self.drop_last and left < self.size else left

    def _restart(self, epoch: int) -> None:
        self.epoch, self.cursor = epoch, 0
        self.backend.copy_(self._order, self.backend.asarray(self._permutation(epoch)))
        self.backend.copy_(self._cursor, self.backend.full((), 0, np.int64))

    def _permutation(self, epoch: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(self.count, dtype=np.int64)
        bits = np.random.Philox(key=np.array([self.seed % 2**64, epoch], np.uint64))
        return np.random.Generator(bits).permutation(self.count).astype(np.int64)


def _label_array(labels: Any) -> np.ndarray:
    """As host_array, but integers in a list stay integers."""
    if isinstance(labels, np.ndarray | np.generic) or hasattr(labels, "__array__"):
        return host_array(labels)
    array = host_array(labels)  # float32, or an error for what is no array of numbers
    exact = np.asarray(labels)
    return host_array(exact) if exact.dtype.kind in "iub" else array
