"""Fused operations; those with a convolution are skipped without Conv2dOps and Pool2dOps. Cases: ../cases/fused.py.

And a fused network against the plain one, as two backends are compared.
"""

from typing import Any

import numpy as np

from gradcore import manual_seed, nn
from gradcore.backend.protocol import Conv2dOps, Pool2dOps
from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation, requires


@each_case("fused")
def test_fused(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


def network(fuse: bool) -> nn.Sequential:
    manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, bias=False),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(24, 16),
        nn.ReLU(),
        nn.Linear(16, 5),
        fuse=fuse,
    )


@requires(Conv2dOps)
@requires(Pool2dOps)
@operation("conv2d_relu_max_pool2d")
def test_fused_and_plain_network_agree(backend: Any) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.random((7, 1, 12, 12)).astype(np.float32), rng.integers(0, 5, 7)
    results = []
    for fuse in (True, False):
        model, criterion = network(fuse), nn.CrossEntropyLoss()
        loss = criterion(model(images), labels)
        grad_images = model.backward(criterion.backward())
        grads = [np.asarray(p.grad) for p in model.parameters()]
        results.append([loss.numpy(), grad_images.numpy(), *grads])
    for fused, plain in zip(*results, strict=True):
        assert_close(fused, plain, rtol=1e-4, atol=1e-6)
