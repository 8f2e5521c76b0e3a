"""The page to read is right: its gradients by finite differences, its losses against the tape's."""

import subprocess
import sys

import numpy as np
import pytest

import gradcore
from gradcore import Tensor
from gradcore.nn import MSELoss
from gradcore.optim import Adam
from gradexamples import xor, xor_by_hand
from gradexamples.xor_by_hand import POINTS, TARGETS


def test_gradients_by_finite_differences() -> None:
    w = xor_by_hand.initial_weights(5)

    def loss() -> float:
        return float(((xor_by_hand.forward(w, POINTS)[1] - TARGETS) ** 2).mean())

    gradient = xor_by_hand.backward(w, POINTS, *xor_by_hand.forward(w, POINTS), TARGETS)
    for name, value in w.items():
        for index in np.ndindex(value.shape):
            kept, differences = value[index], []
            for step in (1e-6, -1e-6):
                value[index] = kept + step
                differences.append(loss())
            value[index] = kept
            assert (differences[0] - differences[1]) / 2e-6 == pytest.approx(gradient[name][index], abs=1e-8)


def test_same_losses_as_the_tape() -> None:
    gradcore.manual_seed(0)
    model = xor.network()
    first, second = model[0], model[2]
    w = {
        "w1": first.weight.numpy().T.astype(float),
        "b1": first.bias.numpy().astype(float),
        "w2": second.weight.numpy().T.astype(float),
        "b2": second.bias.numpy().astype(float),
    }
    optimizer, criterion, losses = Adam(model.parameters(), lr=0.1), MSELoss(), []
    for _ in range(30):
        loss = criterion(model(Tensor(xor.POINTS)), Tensor(xor.TARGETS))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    np.testing.assert_allclose(losses, xor_by_hand.train(w, epochs=30), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(losses[:10], xor_by_hand_losses(10), atol=1e-6)


def xor_by_hand_losses(epochs: int) -> list[float]:
    """From the weights of seed 0 again."""
    gradcore.manual_seed(0)
    model = xor.network()
    w = {
        name: np.asarray(value, dtype=float).T.copy()
        for name, value in zip(("w1", "b1", "w2", "b2"), model.state_dict().values(), strict=True)
    }
    return xor_by_hand.train(w, epochs)


@pytest.mark.parametrize("seed", range(20))
def test_it_learns(seed: int) -> None:
    w = xor_by_hand.initial_weights(seed)
    xor_by_hand.train(w)
    _, y = xor_by_hand.forward(w, POINTS)
    assert ((y - TARGETS) ** 2).mean() <= 1e-4
    assert np.abs(y - TARGETS).max() <= 0.02


def test_it_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "gradexamples.xor_by_hand", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("Epoch [") == 10
    assert "Final Loss: 0.0000" in done.stdout


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("x", 2), ("-1", 2), ("1.5", 2)])
def test_its_command_line(argument: str, code: int) -> None:
    command = [sys.executable, "-m", "gradexamples.xor_by_hand", argument]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert "SEED" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
