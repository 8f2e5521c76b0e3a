"""The price of recording: microseconds of Python that one operation adds above its backend call.

    python benchmarks/overhead.py

Small arrays, so that the arithmetic is nothing. Each line is an operation with its backend call beside it, alternating;
the least of many repeats, since other processes can only add time. The budget is 1.0 us.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Annotated, Any

import harness
import typer
from rich.table import Table

CALLS = 5_000


def main(rounds: Annotated[int, typer.Option(min=3, help="repeats; the least counts")] = 40) -> None:
    harness.set_threads(1)
    import numpy as np

    import gradcore

    x, w = (gradcore.tensor(np.ones((4, 4), np.float32), requires_grad=True) for _ in range(2))
    hidden = x * w  # what most operands are: a computed tensor
    a, b, back = x._array, w._array, x.backend
    lines: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "x * w": (lambda: hidden * w, lambda: back.multiply(a, b)),
        "x + w": (lambda: hidden + w, lambda: back.add(a, b)),
        "x * 2.0": (lambda: hidden * 2.0, lambda: back.multiply(a, 2.0)),
        "-x": (lambda: -hidden, lambda: back.negative(a)),
        "x.relu()": (lambda: hidden.relu(), lambda: back.relu(a)),
        "x.exp()": (lambda: hidden.exp(), lambda: back.exp(a)),
    }
    table = Table(title="Python above the backend call, us", title_justify="left")
    for heading in ("operation", "recorded", "backend call", "above"):
        table.add_column(heading, justify="left" if heading == "operation" else "right")
    for name, (operation, call) in lines.items():
        recorded = raw = float("inf")
        for _ in range(rounds):
            recorded = min(recorded, timeit.timeit(operation, number=CALLS) / CALLS)
            raw = min(raw, timeit.timeit(call, number=CALLS) / CALLS)
        table.add_row(name, *(f"{value * 1e6:.2f}" for value in (recorded, raw, recorded - raw)))
    harness.console.print(table)
    harness.console.print(harness.machine())


if __name__ == "__main__":
    typer.run(main)
