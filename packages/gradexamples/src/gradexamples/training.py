"""The training loop of both examples: one step, written for the tape or for the layers, run many times.

`gradcore.capture` turns the step into a loop: a plain call on a CPU, a recorded graph where the backend has one.
So the step returns its figures as tensors and never looks at them; they are read back a stretch at a time.
Next: mnist.py, which says what is printed and when.
"""

import time
from collections.abc import Callable

import numpy as np

import gradcore
from gradcore import Tensor
from gradcore.data import Batches
from gradcore.nn import Layer
from gradcore.optim import Optimizer

from .report import History
from .terminal import Reporter

WARM_STEPS = 2  # of each batch size: the first one is really slow, the second one may record a graph
REFRESH = 0.2  # seconds between two moves of the progress bar

Step = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def tape_step(model: Layer, criterion: Layer, optimizer: Optimizer, count_right: Step) -> Step:
    """The modern loop: the loss knows how it was made."""

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        return loss, count_right(output, y)

    return step


def layers_step(model: Layer, criterion: Layer, optimizer: Optimizer, count_right: Step) -> Step:
    """The classic loop: the gradient is handed from the loss to the network by hand. Same weights, bit for bit."""

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        output = model(x)
        loss = criterion(output, y)
        model.backward(criterion.backward())
        optimizer.step()
        return loss, count_right(output, y)

    return step


STEPS = {"tape": tape_step, "layers": layers_step}


class Trainer:
    """Runs steps and keeps their figures. Starts at the beginning of an epoch."""

    def __init__(self, step: Step, batches: Batches, samples: int, batch_size: int, graph: bool = True) -> None:
        self.history = History()
        self.samples = samples
        self.batch_size = batch_size
        self.steps_per_epoch = len(batches)
        self._ragged = samples % batch_size != 0  # is the last batch of an epoch a smaller one?
        self._loop = gradcore.capture(step, batches, graph=graph)
        self._position = 0  # step within the epoch
        self._warmed = {False: 0, True: 0}  # steps made with a full batch, with the last batch
        self._stretch = 1  # steps between two looks at the clock, on a terminal

    def advance(self, steps: int, show: Reporter) -> None:
        """Make that many steps. On a terminal in short stretches, so that the bar moves."""
        while steps:
            stretch = self._next_stretch(min(steps, self._stretch) if show.live else steps)
            last = self._ragged and self._position == self.steps_per_epoch - 1
            warm = self._warmed[last] < WARM_STEPS
            started = time.perf_counter()
            losses, right = self._loop.run(stretch)
            seconds = time.perf_counter() - started
            self.history.timer.add(stretch, seconds, warm)
            self.history.losses.append(losses)
            self.history.right.append(right)
            self.history.seen.append(self._batch_sizes(stretch))
            self._warmed[last] += stretch
            self._position = (self._position + stretch) % self.steps_per_epoch
            self._stretch = max(1, int(REFRESH * stretch / max(seconds, 1e-9)))
            show.advance(stretch)
            steps -= stretch

    def _next_stretch(self, steps: int) -> int:
        """Steps until the next one that must be timed alone, at most `steps`."""
        if self._ragged and self._warmed[True] < WARM_STEPS:
            until_last = self.steps_per_epoch - 1 - self._position
            if until_last == 0:
                return 1
            steps = min(steps, until_last)
        return 1 if self._warmed[False] < WARM_STEPS else steps

    def _batch_sizes(self, steps: int) -> np.ndarray:
        """Samples in each of the next `steps` batches."""
        sizes = np.full(steps, self.batch_size)
        if self._ragged:
            last = (np.arange(steps) + self._position) % self.steps_per_epoch == self.steps_per_epoch - 1
            sizes[last] = self.samples % self.batch_size
        return sizes

    def summary(self, since: int) -> tuple[float, float]:
        """Mean loss and accuracy (percent) of the steps from stretch number `since` on."""
        history = self.history
        losses = np.concatenate(history.losses[since:]).astype(np.float64)
        right = np.concatenate(history.right[since:]).astype(np.float64)
        return float(losses.mean()), 100 * float(right.sum() / np.concatenate(history.seen[since:]).sum())


def outputs_of(model: Layer, images: np.ndarray, size: int = 1000) -> np.ndarray:
    """The network's outputs in evaluation mode, without a graph, a thousand samples at a time."""
    model.eval()
    with gradcore.no_grad():
        parts = [np.array(model(Tensor(images[i : i + size])).numpy()) for i in range(0, len(images), size)]
    model.train()
    return np.concatenate(parts)
