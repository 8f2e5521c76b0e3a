"""The references of the optimizers, against several steps of PyTorch's."""

from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.optim import adam_, sgd_

GRADS = np.random.default_rng(0).uniform(-1, 1, (6, 4))
START = np.linspace(-1.0, 1.0, 4)


def run_torch(optimizer: Any, parameter: Any) -> np.ndarray:
    torch = pytest.importorskip("torch")
    for grad in GRADS:
        parameter.grad = torch.from_numpy(grad.copy())
        optimizer.step()
    found: np.ndarray = parameter.detach().numpy()
    return found


@pytest.mark.parametrize(
    ("momentum", "dampening", "decay", "nesterov"),
    [
        (0.0, 0.0, 0.0, False),
        (0.0, 0.0, 0.1, False),
        (0.9, 0.0, 0.1, False),
        (0.9, 0.5, 0.1, False),
        (0.9, 0.0, 0.1, True),
    ],
)
def test_sgd(momentum: float, dampening: float, decay: float, nesterov: bool) -> None:
    torch = pytest.importorskip("torch")
    parameter = torch.tensor(START, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], 0.1, momentum, dampening, decay, nesterov)
    p, v, step = [START], [np.zeros(4)], [np.array(0)]
    for grad in GRADS:
        p, new, step = sgd_(p, [grad], v, step, np.array(0.1), momentum, dampening, decay, nesterov)
        v = new or v
    np.testing.assert_allclose(p[0], run_torch(optimizer, parameter), rtol=1e-12)


@pytest.mark.parametrize(("decay", "decoupled"), [(0.0, False), (0.1, False), (0.1, True)])
def test_adam(decay: float, decoupled: bool) -> None:
    torch = pytest.importorskip("torch")
    parameter = torch.tensor(START, requires_grad=True)
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimizer = kind([parameter], 0.01, (0.8, 0.95), 1e-6, decay)
    p, m, v, step = [START], [np.zeros(4)], [np.zeros(4)], [np.array(0)]
    for grad in GRADS:
        p, m, v, step = adam_(p, [grad], m, v, step, np.array(0.01), 0.8, 0.95, 1e-6, decay, decoupled)
    np.testing.assert_allclose(p[0], run_torch(optimizer, parameter), rtol=1e-11)
    assert int(step[0]) == len(GRADS)
