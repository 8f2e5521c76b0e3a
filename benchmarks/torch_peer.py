"""The MNIST network, a training step and Adam in PyTorch: eager, and the whole step in a CUDA graph.

Both gather their batches on the device from the resident data set, as ours do, and read the loss back once a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def build(images: Any, labels: Any, device: str, threads: int, **adam: Any) -> tuple[Any, ...]:
    """(x, y, step): the data on the device, and one step on a batch that returns the loss."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10),
    ).to(device)  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, **adam)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return torch.tensor(images, device=device), torch.tensor(labels, device=device), step


def eager_steps(
    images: Any, labels: Any, batch_size: int, steps: int, device: str, threads: int
) -> Callable[[], float]:
    """PyTorch as most people run it, with its fused Adam."""
    x, y, step = build(images, labels, device, threads)

    def work() -> float:
        order = torch.randperm(len(x), device=device)
        for i in range(steps):
            chosen = order[(i * batch_size) % len(x) :][:batch_size]
            loss = step(x[chosen], y[chosen])
        return float(loss)

    return work


def graph_steps(
    images: Any, labels: Any, batch_size: int, steps: int, device: str, threads: int
) -> Callable[[], float]:
    """Gather and step recorded once in a CUDA graph and replayed."""
    x, y, step = build(images, labels, device, threads, capturable=True)
    chosen = torch.zeros(batch_size, dtype=torch.long, device=device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(x[chosen], y[chosen])
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x[chosen], y[chosen])

    def work() -> float:
        order = torch.randperm(len(x), device=device)
        for i in range(steps):
            chosen.copy_(order[(i * batch_size) % len(x) :][:batch_size])
            graph.replay()
        return float(loss)

    return work


STEPS = {"torch-eager": eager_steps, "torch-graph": graph_steps}
