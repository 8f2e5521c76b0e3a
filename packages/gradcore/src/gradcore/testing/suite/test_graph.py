"""Recorded steps; skipped without GraphCapture. Replay equals eager bit for bit, and sees what changed in memory."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.protocol import GraphCapture
from gradcore.testing.compare import assert_close, same_bits
from gradcore.testing.marks import requires

pytestmark = requires(GraphCapture)


def host(backend: Any, array: Any) -> np.ndarray:
    return np.array(backend.to_numpy(array))


def test_recording_executes_nothing_and_replay_calls_no_python(backend: Any) -> None:
    total, calls = backend.full((3,), 0.0, np.float32), []

    def step() -> None:
        calls.append(1)
        backend.copy_(total, backend.add(total, 1.0))

    step()  # warm
    graph = backend.capture_graph(step)
    assert_close(host(backend, total), np.ones(3, np.float32))
    for _ in range(3):
        graph.replay()
    assert_close(host(backend, total), np.full(3, 4, np.float32))
    assert len(calls) == 2


def test_replay_sees_new_inputs(backend: Any) -> None:
    x, y = backend.full((2, 3), 1.0, np.float32), backend.full((2, 3), 0.0, np.float32)

    def step() -> None:
        backend.copy_(y, backend.exp(backend.multiply(x, 2.0)))

    step()
    graph = backend.capture_graph(step)
    for value in (0.0, -1.0, 0.5):
        backend.copy_(x, backend.full((2, 3), value, np.float32))
        graph.replay()
        replayed = host(backend, y)
        step()
        assert same_bits(replayed, host(backend, y))


@pytest.mark.parametrize("optimizer", ["sgd_", "adam_"])
def test_steps_are_counted_and_a_changed_rate_takes_effect(backend: Any, optimizer: str) -> None:
    assert same_bits(trained(backend, optimizer, replayed=True), trained(backend, optimizer, replayed=False))


def trained(backend: Any, optimizer: str, *, replayed: bool) -> np.ndarray:
    """A weight matrix after 6 steps of linear regression, the rate halved half-way; [..., -1] is the step count."""
    rng = np.random.default_rng(0)
    x, target, weight = (backend.asarray(rng.uniform(-1, 1, s).astype(np.float32)) for s in [(8, 5), (8, 3), (3, 5)])
    first, second = (backend.full((3, 5), 0.0, np.float32) for _ in range(2))
    count, rate = backend.full((), 0, np.int64), backend.full((), 0.1, np.float64)

    def step() -> None:
        error = backend.subtract(backend.linear(x, weight, None), target)
        grad = backend.linear_backward_weight(error, x)
        if optimizer == "sgd_":
            backend.sgd_([weight], [grad], [first], [count], rate, 0.9, 0.0, 0.01, False)
        else:
            backend.adam_([weight], [grad], [first], [second], [count], rate, 0.9, 0.999, 1e-8, 0.01, False)

    step()
    again = backend.capture_graph(step).replay if replayed else step
    for i in range(5):
        if i == 3:
            backend.copy_(rate, backend.full((), 0.05, np.float64))
        again()
    assert int(host(backend, count)) == 6
    return host(backend, weight)


def test_random_numbers_move_on(backend: Any) -> None:
    counter, drawn = backend.full((), 0, np.int64), backend.full((8,), 0.0, np.float32)

    def step() -> None:
        backend.copy_(drawn, backend.random_uniform((8,), 3, counter))

    step()
    graph, found = backend.capture_graph(step), []
    for _ in range(3):
        graph.replay()
        found.append(host(backend, drawn))
    whole = backend.random_uniform((32,), 3, backend.full((), 0, np.int64))
    assert same_bits(np.concatenate(found), host(backend, whole)[8:])


def test_reading_inside_a_recording_is_a_clear_error(backend: Any) -> None:
    x = backend.full((3,), 1.0, np.float32)
    backend.add(x, 1.0)

    def step() -> None:
        backend.to_numpy(backend.add(x, 1.0))

    with pytest.raises(Exception, match=r"capture|record|graph"):
        backend.capture_graph(step)
    assert_close(host(backend, backend.add(x, 1.0)), np.full(3, 2, np.float32))


def test_an_exception_inside_a_recording_comes_through(backend: Any) -> None:
    x = backend.full((3,), 1.0, np.float32)

    def step() -> None:
        backend.add(x, 1.0)
        raise KeyError("from the step")

    with pytest.raises(KeyError, match="from the step"):
        backend.capture_graph(step)
    assert_close(host(backend, backend.add(x, 1.0)), np.full(3, 2, np.float32))


def test_a_graph_keeps_its_memory(backend: Any) -> None:
    """Intermediate results of a graph may not be handed out to others between replays."""
    x, y = backend.full((64,), 2.0, np.float32), backend.full((64,), 0.0, np.float32)

    def step() -> None:
        backend.copy_(y, backend.multiply(backend.add(x, 1.0), backend.exp(x)))

    step()
    wanted, graph = host(backend, y), backend.capture_graph(step)
    others = [backend.full((64,), float(i), np.float32) for i in range(50)]
    graph.replay()
    assert same_bits(host(backend, y), wanted)
    for i, other in enumerate(others):
        assert_close(host(backend, other), np.full(64, i, np.float32))
