"""Several threads: networks of their own end bit for bit, a shared leaf loses no gradient."""

import sys
import threading
import time

import numpy as np
import pytest

import gradcore
from gradcore import Function, nn, ops, optim, tensor

pytestmark = pytest.mark.usefixtures("backend")


def train(seed: int) -> list:
    gradcore.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3))
    step = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    rng = np.random.default_rng(seed)
    images, labels = rng.normal(size=(8, 1, 8, 8)).astype(np.float32), rng.integers(0, 3, 8)
    for _ in range(50):
        step.zero_grad()
        ops.cross_entropy(model(images), labels).backward()
        step.step()
    return [p.numpy().tobytes() for p in model.parameters()]


def test_four_threads(backend_name: str) -> None:
    """Case 38: four networks at once end bit for bit as one after the other."""
    expected = [train(seed) for seed in range(4)]
    found: dict[int, list] = {}

    def work(seed: int) -> None:
        with gradcore.use_backend(backend_name):
            found[seed] = train(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == expected


def test_concurrent_backwards_lose_no_gradient() -> None:
    """Case 38: four threads add to one leaf. The rule sleeps, so that they meet."""

    class Slow(Function):
        def forward(self, x):
            return self.backend.multiply(x, 1.0)

        def backward(self, grad):
            time.sleep(0.0001)
            return grad

    w = tensor(np.zeros(50_000, np.float32), requires_grad=True)

    def work() -> None:
        for _ in range(50):
            Slow()(w).sum().backward()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert set(w.grad.tolist()) == {200.0}
