"""sgd_ and adam_: one step against the reference, then whole runs worked out in float64. Cases: ../cases/optim.py."""

from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation

# name: start, lr, momentum, weight_decay, nesterov, gradients, values after each step
SGD: dict[str, tuple[Any, ...]] = {
    "momentum": (0.0, 0.1, 0.9, 0.0, False, [1, 1, 1], [-0.1, -0.29, -0.561]),
    "nesterov": (0.0, 0.1, 0.9, 0.0, True, [1, 1, 1], [-0.19, -0.461, -0.8049]),
    "decay": (1.0, 0.1, 0.0, 0.1, False, [0, 0], [0.99, 0.9801]),
    "momentum_decay": (1.0, 0.1, 0.9, 0.1, False, [1, 1], [0.89, 0.6821]),
}
# name: start, lr, weight_decay, decoupled, gradients, values after each step
ADAM: dict[str, tuple[Any, ...]] = {
    "first": (1.0, 0.001, 0.0, False, [0.1], [0.999]),
    "first_large": (1.0, 0.001, 0.0, False, [-250], [1.001]),
    "four": (1.0, 0.01, 0.0, False, [0.1, -0.2, 0.3, 0], [0.9900000010, 0.9936610360, 0.9902286254, 0.9874170035]),
    "decoupled": (1.0, 0.01, 0.1, True, [0], [0.999]),
    "coupled": (1.0, 0.01, 0.1, False, [0], [0.99]),
    "decoupled_two": (1.0, 0.01, 0.1, True, [0.5, 0.5], [0.9890000002, 0.9780110004]),
}


@each_case("optim")
def test_optim(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


class State:
    """One parameter (2,) and what an optimizer keeps for it, all in backend memory."""

    def __init__(self, backend: Any, start: float, rate: float) -> None:
        self.parameter, self.first, self.second = (backend.full((2,), v, np.float32) for v in (start, 0.0, 0.0))
        self.step = backend.full((), 0, np.int64)
        self.rate = backend.full((), rate, np.float64)


@operation("sgd_")
@pytest.mark.parametrize("name", SGD)
def test_sgd_run(backend: Any, name: str) -> None:
    start, rate, momentum, decay, nesterov, grads, wanted = SGD[name]
    state, found = State(backend, start, rate), []
    velocities = [state.first] if momentum else []
    for grad in grads:
        array = backend.full((2,), grad, np.float32)
        backend.sgd_([state.parameter], [array], velocities, [state.step], state.rate, momentum, 0.0, decay, nesterov)
        found.append(backend.to_numpy(state.parameter).tolist())
    assert_close(found, [[w, w] for w in wanted])
    assert int(backend.to_numpy(state.step)) == len(grads)


@operation("adam_")
@pytest.mark.parametrize("name", ADAM)
def test_adam_run(backend: Any, name: str) -> None:
    start, rate, decay, decoupled, grads, wanted = ADAM[name]
    state, found = State(backend, start, rate), []
    for grad in grads:
        adam_step(backend, state, backend.full((2,), grad, np.float32), decay, decoupled)
        found.append(backend.to_numpy(state.parameter).tolist())
    assert_close(found, [[w, w] for w in wanted], rtol=1e-6, atol=1e-7)
    assert int(backend.to_numpy(state.step)) == len(grads)


def adam_step(backend: Any, state: State, grad: Any, decay: float = 0.0, decoupled: bool = False) -> None:
    kept = [state.parameter], [grad], [state.first], [state.second], [state.step]
    backend.adam_(*kept, state.rate, 0.9, 0.999, 1e-8, decay, decoupled)


@operation("adam_")
def test_adam_reads_the_rate_from_backend_memory(backend: Any) -> None:
    state, grad = State(backend, 1.0, 0.5), backend.full((2,), 1.0, np.float32)
    adam_step(backend, state, grad)
    assert_close(backend.to_numpy(state.parameter), np.full(2, 0.5, np.float32))
    backend.copy_(state.rate, backend.full((), 0.0, np.float64))
    adam_step(backend, state, grad)
    assert_close(backend.to_numpy(state.parameter), np.full(2, 0.5, np.float32))


@operation("sgd_")
def test_sgd_reads_the_rate_from_backend_memory(backend: Any) -> None:
    state, grad = State(backend, 1.0, 0.5), backend.full((2,), 1.0, np.float32)
    for rate in (0.5, 0.25, 0.0):
        backend.copy_(state.rate, backend.full((), rate, np.float64))
        backend.sgd_([state.parameter], [grad], (), [state.step], state.rate, 0.0, 0.0, 0.0, False)
    assert_close(backend.to_numpy(state.parameter), np.full(2, 0.25, np.float32))


@pytest.mark.parametrize("optimizer", [pytest.param(name, marks=operation(name)) for name in ("sgd_", "adam_")])
def test_no_parameters(backend: Any, optimizer: str) -> None:
    rate = backend.full((), 0.1, np.float64)
    if optimizer == "sgd_":
        backend.sgd_([], [], [], [], rate, 0.9, 0.0, 0.0, False)
    else:
        backend.adam_([], [], [], [], [], rate, 0.9, 0.999, 1e-8, 0.0, False)
    backend.synchronize()
