"""capture: a training loop as one object, whose steps a backend may record once and replay.

    def step(images, labels):
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    loop = gradcore.capture(step, batches)
    losses = loop.run(len(batches))         # one epoch; float32 (n,), read back once

Losses stay in backend memory until run returns. A backend without GraphCapture just calls the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcore.backend.protocol import Array
from gradcore.convert import whole_number
from gradcore.data import Batches
from gradcore.errors import BackendMismatch, ShapeError
from gradcore.tensor import Tensor

Step = Callable[[Tensor, Tensor], Any]


class Loop:
    """Calls the step on one batch after the other. The step returns one number, or a tuple of them, as tensors."""

    def __init__(self, step: Step, batches: Batches) -> None:
        self.step = step
        self.batches = batches

    def run(self, steps: int) -> Any:
        """Make `steps` steps; returns their results as an array (steps,), or a tuple of arrays if each is a tuple."""
        rows = [self._one() for _ in range(whole_number("capture", "the number of steps", steps, 0))]
        if not rows:
            return np.zeros(0, np.float32)
        first = rows[0][0]
        if any(kind != first for kind, _ in rows):
            raise ShapeError("capture: the step must return the same kind of result each time")
        columns = tuple(self._read(column) for column in zip(*[arrays for _, arrays in rows], strict=True))
        return columns[0] if first is None else columns

    def _one(self) -> tuple[int | None, list[Array]]:
        """(length of the result if it is a tuple, its numbers as arrays (1,) of their own)."""
        images, labels = self.batches.gather(self.batches.advance())
        result = self.step(images, labels)
        back = self.batches.backend
        values = result if isinstance(result, tuple) and result else (result,)
        for value in values:
            if not isinstance(value, Tensor) or value.size != 1:
                what = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
                raise ShapeError(
                    f"capture: the step must return one number as a tensor (or a tuple of them), got {what}"
                )
            if value.backend is not back:
                raise BackendMismatch(
                    f"capture: the batches live on {back.name!r}, the step returned a tensor on {value.backend.name!r}"
                )
        # copies: a step may return a buffer that the next step changes
        arrays = [back.concat([back.reshape(value._array, (1,))], 0) for value in values]
        return len(values) if isinstance(result, tuple) else None, arrays

    def _read(self, column: tuple[Array, ...]) -> np.ndarray:
        back = self.batches.backend
        return np.array(back.to_numpy(back.concat(column, 0)))


def capture(step: Step, batches: Batches) -> Loop:
    """A loop over `step(images, labels)`; see the module's text."""
    return Loop(step, batches)
