"""A training step of the MNIST network, ours beside a peer's, alternating in one run.

    python benchmarks/mnist.py --device cpu --threads 1 --peers torch-eager
    python benchmarks/mnist.py --device cuda --peers torch-graph,torch-eager

The network, batch 64 and Adam are those of `python -m gradexamples mnist`; images and labels are random. A step is
what training does: gather a batch, forward, backward, update, and read the loss back once in ten steps.
Floor: 7.3 MFLOP an image forward and backward, 467 MFLOP a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import harness
import typer

PEERS = {"torch-eager": "torch", "torch-graph": "torch"}
STEPS = 10  # a timed unit
ROWS = 640


def main(
    device: harness.DeviceOption = "cpu",
    threads: harness.ThreadsOption = 1,
    peers: harness.PeersOption = "torch-eager",
    rounds: harness.RoundsOption = 20,
    backends: Annotated[str, typer.Option(help="ours, comma-separated; default: every available one")] = "",
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    json_file: harness.JsonOption = None,
    plot: harness.PlotOption = None,
) -> None:
    harness.set_threads(threads)
    import numpy as np

    import gradcore

    if device not in ("cpu", "cuda"):
        raise typer.BadParameter("device must be cpu or cuda")
    rng = np.random.default_rng(0)
    images = rng.random((ROWS, 1, 28, 28), np.float32)
    labels = rng.integers(0, 10, ROWS)
    ours = [b for b in backends.split(",") if b]
    ours = ours or [row.name for row in gradcore.list_backends() if row.available]
    contenders: dict[str, Callable[[], object]] = {
        name: our_steps(name, images, labels, batch_size)
        for name in ours
        if gradcore.get_backend(name).device.lower().startswith("cpu") == (device == "cpu")
    }
    asked = harness.chosen_peers(peers, PEERS)
    if "torch-graph" in asked and device == "cpu":
        harness.console.print("torch-graph is left out: CUDA graphs need --device cuda")
        asked.remove("torch-graph")
    if asked:
        import torch_peer

        for name in asked:
            contenders[name] = torch_peer.STEPS[name](images, labels, batch_size, STEPS, device, threads)
    result = harness.alternate(f"step, batch {batch_size}", contenders, rounds, asked)
    result.seconds = {name: seconds / STEPS for name, seconds in result.seconds.items()}
    harness.report(f"MNIST training step on {device}, {threads} thread(s)", [result], json_file, plot)


def our_steps(backend: str, images: object, labels: object, batch_size: int) -> Callable[[], object]:
    """Ten captured steps of gradexamples' network."""
    import gradcore
    from gradcore import nn, optim
    from gradexamples.mnist import network

    with gradcore.use_backend(backend):
        model, criterion = network(), nn.CrossEntropyLoss()
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        batches = gradcore.Batches(images, labels, batch_size)

    def step(x: gradcore.Tensor, y: gradcore.Tensor) -> gradcore.Tensor:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    loop = gradcore.capture(step, batches)
    return lambda: loop.run(STEPS)


if __name__ == "__main__":
    typer.run(main)
