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

from gradcore.data import Batches
from gradcore.errors import ArgumentError, ShapeError
from gradcore.tensor import Tensor

Step = Callable[[Tensor, Tensor], Any]


class Loop:
    """Calls the step on one batch after the other. The step returns one number, or a tuple of them, as tensors."""

    def __init__(self, step: Step, batches: Batches) -> None:
        self.step = step
        self.batches = batches

    def run(self, steps: int) -> Any:
        """Make `steps` steps; returns their results as an array (steps,), or a tuple of arrays if each is a tuple."""
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise ArgumentError(f"capture: run takes a number of steps of at least 0, got {steps!r}")
        rows = [self._one() for _ in range(steps)]
        if not rows:
            return np.zeros(0, np.float32)
        columns = tuple(self._read(column) for column in zip(*rows, strict=True))
        return columns if self._is_tuple else columns[0]

    def _one(self) -> tuple[Tensor, ...]:
        images, labels = self.batches.gather(self.batches.advance())
        result = self.step(images, labels)
        self._is_tuple = isinstance(result, tuple)
        values = result if self._is_tuple else (result,)
        for value in values:
            if not isinstance(value, Tensor) or value.size != 1:
                what = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
                raise ShapeError(
                    f"capture: the step must return one number as a tensor (or a tuple of them), got {what}"
                )
        return tuple(value.detach() for value in values)

    def _read(self, column: tuple[Tensor, ...]) -> np.ndarray:
        back = self.batches.backend
        joined = back.concat([back.reshape(value._array, (1,)) for value in column], 0)
        return np.array(back.to_numpy(joined))


def capture(step: Step, batches: Batches) -> Loop:
    """A loop over `step(images, labels)`; see the module's text."""
    return Loop(step, batches)
