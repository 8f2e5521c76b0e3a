"""capture on a backend that records: here one that makes a step, undoes it, and calls it again to replay.

The real thing is tested by each backend's own tests and by the conformance suite; these are the loop's rules.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Batches, Tensor, nn
from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.registry import register_backend, use_backend
from gradcore.errors import ShapeError


class Recorder(NumpyBackend):
    """Keeps what in-place operations overwrite while it records, and puts it back."""

    name = "recorder"
    recordings = replays = 0
    _saved: Any = None

    def _keep(self, *arrays: np.ndarray) -> None:
        if self._saved is not None:
            self._saved += [(array, array.copy()) for array in arrays]

    def copy_(self, destination: np.ndarray, source: np.ndarray) -> None:
        self._keep(destination)
        super().copy_(destination, source)

    def append_(self, buffer: np.ndarray, cursor: np.ndarray, value: np.ndarray) -> None:
        self._keep(buffer, cursor)
        super().append_(buffer, cursor, value)

    def random_uniform(self, shape: Any, key: int, counter: np.ndarray) -> np.ndarray:
        self._keep(counter)
        return super().random_uniform(shape, key, counter)

    def adam_(self, parameters: Any, grads: Any, firsts: Any, seconds: Any, steps: Any, *options: Any) -> None:
        self._keep(*parameters, *firsts, *seconds, *steps)
        super().adam_(parameters, grads, firsts, seconds, steps, *options)

    def capture_graph(self, function: Callable[[], None]) -> Any:
        self._saved = []
        try:
            function()
        finally:
            for array, old in reversed(self._saved):
                array[...] = old
            self._saved = None
        self.recordings += 1
        return Replay(self, function)

    @property
    def recording(self) -> bool:
        return self._saved is not None


class Replay:
    def __init__(self, recorder: Recorder, function: Callable[[], None]) -> None:
        self.recorder, self.function = recorder, function

    def replay(self) -> None:
        self.recorder.replays += 1
        self.function()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    with register_backend("recorder", lambda name: made), use_backend("recorder"):
        yield made


class Run:
    """A network, its optimizer, its data (batches of 8, 8, 6), and one step."""

    def __init__(self) -> None:
        gradcore.manual_seed(3)
        rng = np.random.default_rng(0)
        self.batches = Batches(rng.standard_normal((22, 5)).astype(np.float32), rng.integers(0, 3, 22), 8, seed=1)
        self.net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.3), nn.Linear(7, 3))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = gradcore.optim.Adam(self.net.parameters(), lr=0.01)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = self.criterion(self.net(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def test_the_same_bits_as_an_eager_loop(recorder: Recorder) -> None:
    eager, captured, plain = Run(), Run(), Run()
    losses = []
    for i in range(20):
        if i == 7:
            eager.optimizer.lr = 0.002
        losses.append(eager.step(*eager.batches.next()).item())
    loop, unrecorded = (
        gradcore.capture(captured.step, captured.batches),
        gradcore.capture(plain.step, plain.batches, False),
    )
    assert (loop.recorded, unrecorded.recorded) == (True, False)
    for run, one in ((captured, loop), (plain, unrecorded)):
        first = one.run(7)
        run.optimizer.lr = 0.002
        assert [*first, *one.run(13)] == losses
        np.testing.assert_equal(run.net.state_dict(), eager.net.state_dict())
        np.testing.assert_equal(run.optimizer.state_dict(), eager.optimizer.state_dict())
        assert run.batches.state_dict() == eager.batches.state_dict()
    # two sizes: the first step of each as it is, the others replayed
    assert (recorder.recordings, recorder.replays) == (2, 18)


def test_a_changed_option_is_recorded_anew(recorder: Recorder) -> None:
    run = Run()
    loop = gradcore.capture(run.step, run.batches)
    loop.run(6)
    run.net.eval()
    run.net.train()
    loop.run(3)
    assert recorder.recordings == 2
    run.net.eval()
    loop.run(6)
    assert recorder.recordings == 4
    run.optimizer.eps = 1e-4
    loop.run(6)
    assert recorder.recordings == 6
    run.optimizer.lr = 0.5  # on the device: no new recording
    loop.run(6)
    assert recorder.recordings == 6


def closures(run: Run) -> list[Any]:
    net, optimizer = run.net, run.optimizer

    def by_closure(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        return net(x).sum()

    def nested(x: Tensor, y: Tensor) -> Tensor:
        return by_closure(x, y)

    return [by_closure, nested, lambda x, y: run.net(x).sum(), lambda x, y: run.step(x, y)]


@pytest.mark.parametrize("which", range(4))
def test_options_are_found_through_variables(recorder: Recorder, which: int) -> None:
    run = Run()
    loop = gradcore.capture(closures(run)[which], run.batches)
    loop.run(6)
    run.net.eval()
    loop.run(6)
    assert recorder.recordings == 4


def test_a_step_that_cannot_be_recorded(recorder: Recorder) -> None:
    """The error comes through, and the batch is not lost."""
    run, reads = Run(), [True]

    def step(images: Tensor, labels: Tensor) -> Tensor:
        loss = run.step(images, labels)
        if recorder.recording and reads:
            raise RuntimeError("cannot read while recording")
        return loss

    loop = gradcore.capture(step, run.batches)
    loop.run(1)
    with pytest.raises(RuntimeError, match="cannot read"):
        loop.run(1)
    assert run.batches.state_dict()["cursor"] == 8
    reads.clear()
    expected = Run()
    losses = [expected.step(*expected.batches.next()).item() for _ in range(4)]
    assert loop.run(3).tolist() == losses[1:]


def test_another_kind_of_result_when_recording(recorder: Recorder) -> None:
    run = Run()
    loop = gradcore.capture(lambda x, y: (x.sum(),) if recorder.recording else x.sum(), run.batches)
    with pytest.raises(ShapeError, match="the same kind of result"):
        loop.run(2)


def test_more_steps_than_the_buffer_holds() -> None:
    data = Batches(np.arange(3, dtype=np.float32)[:, None], np.arange(3), 1, shuffle=False)
    values, labels = gradcore.capture(lambda x, y: (x.sum(), y.sum()), data).run(2500)
    np.testing.assert_array_equal(values, np.arange(2500, dtype=np.float32) % 3)
    np.testing.assert_array_equal(labels, np.arange(2500) % 3)
