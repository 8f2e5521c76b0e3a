"""The figures of a run: the times of its steps, its losses, and the record that --json writes.

`train_seconds` counts training steps only. The first steps of each batch size also warm up caches, libraries and
device graphs; they are real steps, so each is counted with the time of an ordinary one and the rest of its time
is `warmup_seconds`. Hence step_microseconds = train_seconds / steps holds exactly.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gradcore.atomic import write_atomically

from .errors import ExampleError


@dataclass
class Timer:
    """Seconds and steps, the warm-up apart."""

    steps: int = 0
    seconds: float = 0.0
    warm_steps: int = 0
    warm_seconds: float = 0.0

    def add(self, steps: int, seconds: float, warm: bool) -> None:
        if warm:
            self.warm_steps += steps
            self.warm_seconds += seconds
        else:
            self.steps += steps
            self.seconds += seconds

    @property
    def total_steps(self) -> int:
        return self.steps + self.warm_steps

    @property
    def train_seconds(self) -> float:
        """All steps at the pace of the ordinary ones; a run too short to have any counts as it is."""
        if not self.steps:
            return self.warm_seconds
        return self.seconds * self.total_steps / self.steps

    @property
    def warmup_seconds(self) -> float:
        return max(0.0, self.seconds + self.warm_seconds - self.train_seconds)


@dataclass
class History:
    """What a run leaves behind for its plot and its record."""

    losses: list[np.ndarray] = field(default_factory=list)  # a float32 array for each stretch of steps
    right: list[np.ndarray] = field(default_factory=list)  # right answers in each step's batch
    seen: list[np.ndarray] = field(default_factory=list)  # samples in each step's batch
    tests: list[tuple[int, float]] = field(default_factory=list)  # (steps made, test accuracy in percent)
    timer: Timer = field(default_factory=Timer)

    @property
    def all_losses(self) -> np.ndarray:
        return np.concatenate([np.empty(0, np.float32), *self.losses])

    @property
    def all_right(self) -> np.ndarray:
        return np.concatenate([np.empty(0, np.float32), *self.right])


def record(
    *, backend: str, device: str, seed: int, epochs: int, history: History, accuracy: float, final_loss: float | None
) -> dict[str, Any]:
    """The keys of --json, in their order. What is not a number (NaN, or a run without steps) becomes null."""
    timer = history.timer
    losses = [float(loss) for loss in history.all_losses]
    return {
        "backend": backend,
        "device": device,
        "seed": seed,
        "epochs": epochs,
        "steps": timer.total_steps,
        "train_seconds": timer.train_seconds,
        "warmup_seconds": timer.warmup_seconds,
        "step_microseconds": timer.train_seconds / timer.total_steps * 1e6 if timer.total_steps else None,
        "test_accuracy": _number(accuracy),
        "final_loss": _number(final_loss),
        "losses": [_number(loss) for loss in losses],
    }


def write_json(path: Path, contents: dict[str, Any]) -> None:
    try:
        write_atomically(path, (json.dumps(contents, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise ExampleError(f"{path}: cannot be written ({error.strerror})") from error


def _number(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
