"""Every available backend against float64 and against every other one, on the MNIST network with real digits.

Adam amplifies rounding: two right float32 programs differ by 6e-3 in the loss after 100 steps. So the runs go free
for 10 steps only; then, at each of 60 steps, the weights of the float64 run are loaded into each backend's network and
one step's loss and gradients are compared. One seed gives equal weights everywhere.
"""

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import gradcore
from gradcore import Tensor
from gradcore.backend import list_backends
from gradcore.nn import CrossEntropyLoss, Parameter, Sequential
from gradcore.optim import Adam
from gradexamples import mnist, mnist_data

BACKENDS = [row.name for row in list_backends() if row.available]
FREE, STEPS, SIZE = 10, 60, 64
LOSS, GRADIENT = 1e-6, 1e-3  # relative; the gradient's in the norm

Weights = dict[str, np.ndarray]


@dataclass
class Trajectory:
    """The float64 run: its loss at each step, and the weights before it and the gradients of it."""

    losses: list[float]
    weights: list[Weights]
    gradients: list[Weights]


@functools.cache
def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    images, labels = digits()
    chosen = slice(step * SIZE, (step + 1) * SIZE)
    return mnist_data.scale(images[chosen]), labels[chosen].astype(np.int64)


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    images, labels = (np.frombuffer(mnist_data.unpack(name), np.uint8) for name in mnist_data.TEST)
    return images[16:].reshape(-1, 28, 28), labels[8:]


def network(backend: str) -> Sequential:
    gradcore.manual_seed(0)
    with gradcore.use_backend(backend):
        return mnist.network()


def loss_and_gradients(model: Sequential, step: int, dtype: type = np.float32) -> tuple[float, Weights]:
    images, labels = batch(step)
    x, y = Tensor(images.astype(dtype), backend=model.backend), Tensor(labels, backend=model.backend)
    model.zero_grad()
    loss = CrossEntropyLoss(backend=model.backend)(model(x), y)
    loss.backward()
    gradients = {name: np.array(parameter.grad.numpy(), np.float64) for name, parameter in model.named_parameters()}
    return float(loss), gradients


@functools.cache
def in_float64() -> Trajectory:
    model = network("numpy")
    for layer in model:
        for name in ("weight", "bias"):
            if hasattr(layer, name):
                setattr(layer, name, Parameter(getattr(layer, name).numpy().astype(np.float64), backend="numpy"))
    optimizer = Adam(model.parameters(), lr=1e-3)
    run = Trajectory([], [], [])
    for step in range(STEPS):
        run.weights.append(model.state_dict())
        loss, gradients = loss_and_gradients(model, step, np.float64)
        run.losses.append(loss)
        run.gradients.append(gradients)
        optimizer.step()
    return run


@functools.cache
def resynchronised(backend: str) -> list[tuple[float, Weights]]:
    """Loss and gradients on a backend at each step, from the float64 run's weights."""
    model, results = network(backend), []
    for step, weights in enumerate(in_float64().weights):
        model.load_state_dict({name: value.astype(np.float32) for name, value in weights.items()})
        results.append(loss_and_gradients(model, step))
    return results


def assert_alike(step: int, a: tuple[float, Weights], b: tuple[float, Weights]) -> None:
    assert a[0] == pytest.approx(b[0], rel=LOSS, abs=LOSS), f"loss at step {step}"
    for name, gradient in a[1].items():
        distance = np.linalg.norm(gradient - b[1][name]) / np.linalg.norm(b[1][name])
        assert distance <= GRADIENT, f"gradient of {name} at step {step}: {distance:.1e} apart"


def test_the_float64_run_learns() -> None:
    run = in_float64()
    assert run.losses[0] == pytest.approx(np.log(10), abs=0.1)
    assert np.mean(run.losses[-10:]) < 0.7
    assert all(value.dtype == np.float64 for value in run.weights[0].values())


def test_first_losses_running_free(backend: str) -> None:
    model, losses = network(backend), []
    optimizer = Adam(model.parameters(), lr=1e-3)
    for step in range(FREE):
        losses.append(loss_and_gradients(model, step)[0])
        optimizer.step()
    np.testing.assert_allclose(losses, in_float64().losses[:FREE], rtol=LOSS, atol=LOSS)


def test_resynchronised_with_float64(backend: str) -> None:
    run = in_float64()
    for step, found in enumerate(resynchronised(backend)):
        assert_alike(step, found, (run.losses[step], run.gradients[step]))


@pytest.mark.parametrize("pair", list(itertools.combinations(BACKENDS, 2)), ids="-".join)
def test_each_pair_of_backends(pair: tuple[str, str]) -> None:
    first, second = map(resynchronised, pair)
    for step, (a, b) in enumerate(zip(first, second, strict=True)):
        assert_alike(step, a, b)


def test_one_seed_gives_equal_weights(backend: str) -> None:
    ours, numpys = network(backend).state_dict(), network("numpy").state_dict()
    assert ours.keys() == numpys.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, numpys[name], err_msg=name)


def test_two_runs_of_one_seed_are_bit_identical(backend: str) -> None:
    runs = []
    for _ in range(2):
        model, found = network(backend), []
        optimizer = Adam(model.parameters(), lr=1e-3)
        for step in range(5):
            loss, gradients = loss_and_gradients(model, step)
            optimizer.step()
            found.append((loss, gradients))
        runs.append(found)
    for (loss, gradients), (again, gradients_again) in zip(*runs, strict=True):
        assert loss == again
        for name, gradient in gradients.items():
            np.testing.assert_array_equal(gradient, gradients_again[name], err_msg=name)
