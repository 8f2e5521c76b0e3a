"""Recorded steps on the device (case 59): bit-identical to eager, and clear errors for what cannot be recorded."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Batches, Tensor, nn
from gradcore.errors import GraphError

pytestmark = pytest.mark.gpu

TRAINING = """
import numpy as np, gradcore
from gradcore import Batches, nn

def training(graph, rows=64 * 5 + 32, steps=20):
    gradcore.manual_seed(0)
    rng = np.random.default_rng(1)
    with gradcore.use_backend("cuda"):
        data = Batches(rng.standard_normal((rows, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, rows), 64, seed=2)
        net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
        criterion, optimizer = nn.CrossEntropyLoss(), gradcore.optim.Adam(net.parameters())

        def step(x, y):
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        loop = gradcore.capture(step, data, graph)
        first = loop.run(steps // 2)
        optimizer.lr = 1e-4                       # takes effect
        net.eval()
        with gradcore.no_grad():
            net(np.ones((7, 1, 28, 28), np.float32))   # another batch size in between
        net.train()
        second = loop.run(steps - steps // 2)
        return np.concatenate([first, second]), net.state_dict()
"""


def test_the_same_bits_as_eager(script: Callable[..., Any]) -> None:
    """64 rows five times and 32 once an epoch; a graph each; the first work of the process."""
    done = script(
        TRAINING + "a, b = training(True), training(False)\n"
        "assert a[0].tobytes() == b[0].tobytes(), (a[0], b[0])\n"
        "assert all(a[1][k].tobytes() == b[1][k].tobytes() for k in b[1])\n"
        "assert a[0][-1] < a[0][0]\n"
        "print('equal')\n"
    )
    assert (done.stdout, done.stderr) == ("equal\n", "")


def test_two_runs_have_the_same_bits(script: Callable[..., Any]) -> None:
    text = TRAINING + "print(training(True)[0].tobytes().hex())\n"
    first, second = script(text), script(text)
    assert first.stdout == second.stdout != ""


@pytest.mark.parametrize("read", ["to_numpy", "asarray", "synchronize"])
def test_the_host_stays_out(backend: Any, read: str) -> None:
    x = backend.full((3,), 1.0, np.float32)

    def step() -> None:
        y = backend.add(x, 1.0)
        {
            "to_numpy": lambda: backend.to_numpy(y),
            "asarray": lambda: backend.asarray(np.ones(3)),
            "synchronize": backend.synchronize,
        }[read]()

    with pytest.raises(GraphError, match=f"{read}: a step that is being recorded"):
        backend.capture_graph(step)
    np.testing.assert_array_equal(backend.to_numpy(backend.add(x, 1.0)), np.full(3, 2.0, np.float32))


def test_float_inside_a_step_is_a_clear_error(backend: Any) -> None:
    with gradcore.use_backend("cuda"):
        data = Batches(np.ones((6, 2), np.float32), np.arange(6), 2)

        def step(x: Tensor, y: Tensor) -> Tensor:
            loss = x.sum()
            float(loss)
            return loss

        loop = gradcore.capture(step, data)
        loop.run(1)
        with pytest.raises(GraphError, match="recorded as a CUDA graph"):
            loop.run(1)
        assert data.state_dict()["cursor"] == 2
        assert gradcore.capture(step, data, graph=False).run(2).tolist() == [4.0, 4.0]


def test_another_thread_is_told_to_wait(backend: Any) -> None:
    x, seen = backend.full((3,), 1.0, np.float32), []

    def other() -> None:
        try:
            backend.add(x, 1.0)
        except GraphError as error:
            seen.append(str(error))

    def step() -> None:
        backend.add(x, 1.0)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    graph = backend.capture_graph(step)
    assert graph.nodes == 1
    assert len(seen) == 1
    assert "another thread is recording" in seen[0]


def test_memory_of_a_graph(backend: Any) -> None:
    """It is the graph's own, and goes with it; what the recording freed outside stays readable for the replays."""
    gc.collect()
    holder = [backend.full((100_000,), 3.0, np.float32)]
    out = backend.full((100_000,), 0.0, np.float32)

    def step() -> None:
        backend.copy_(out, backend.multiply(holder[0], 2.0))
        holder.clear()

    before = backend.memory_statistics()["in_use"]
    graph = backend.capture_graph(step)
    assert graph.reserved >= 400_000
    others = [backend.full((100_000,), -1.0, np.float32) for _ in range(20)]
    graph.replay()
    np.testing.assert_array_equal(backend.to_numpy(out), np.full(100_000, 6.0, np.float32))
    del others, graph
    gc.collect()
    assert backend.memory_statistics()["in_use"] < before


def test_a_bad_label_in_a_replay(backend: Any) -> None:
    with gradcore.use_backend("cuda"):
        net = nn.Linear(3, 4)
        data = Batches(np.ones((8, 3), np.float32), np.array([0, 1, 2, 3, 0, 1, 2, 9]), 1, shuffle=False)
        loop = gradcore.capture(lambda x, y: nn.CrossEntropyLoss()(net(x), y), data)
        assert np.isfinite(loop.run(7)).all()
        with pytest.raises(gradcore.GradcoreError, match=r"label 9 is not one of 0\.\.3"):
            loop.run(1)
        assert np.isfinite(loop.run(7)).all()
