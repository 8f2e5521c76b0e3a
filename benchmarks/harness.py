"""What every benchmark shares: its options, contenders that alternate in one run, medians, ratios, JSON, a chart.

A contender is a name and a function that does one unit of work. All run in turn, round after round, so that a busy
machine disturbs them alike; a figure is the median over the rounds, and a ratio is taken within one run.

Next: mnist.py, a whole training step.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

DeviceOption = Annotated[str, typer.Option(help="cpu or cuda")]
ThreadsOption = Annotated[int, typer.Option(min=1, help="threads of the peers and of BLAS; our C kernels use one")]
PeersOption = Annotated[str, typer.Option(help="comma-separated: torch-eager, torch-graph (cuda)")]
RoundsOption = Annotated[int, typer.Option(min=3, help="rounds; a figure is their median")]
JsonOption = Annotated[Path | None, typer.Option("--json", help="write the figures to this file")]
PlotOption = Annotated[Path | None, typer.Option(help="write a bar chart to this PNG file")]

console = Console()


@dataclass
class Result:
    """Median seconds of each contender in one subject; the first peer is what ratios are taken against."""

    subject: str
    seconds: dict[str, float]
    peers: list[str] = field(default_factory=list)

    def ratio(self, name: str) -> float | None:
        """Time of `name` over the time of the first peer."""
        return self.seconds[name] / self.seconds[self.peers[0]] if self.peers else None


def set_threads(threads: int) -> None:
    """Bound the BLAS and OpenMP threads. Call it before NumPy or a peer is imported."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)


def alternate(subject: str, contenders: dict[str, Callable[[], Any]], rounds: int, peers: list[str]) -> Result:
    """Run every contender once a round, in turn, after a warm-up of three; keep the medians."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for i in range(rounds + 3):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            if i >= 3:
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return Result(subject, medians, [p for p in peers if p in contenders])


def report(title: str, results: list[Result], json_file: Path | None, plot: Path | None) -> None:
    """Print one line a subject; write the JSON file and the chart if asked for."""
    names = list(dict.fromkeys(name for result in results for name in result.seconds))
    table = Table(title=title, title_justify="left")
    table.add_column("subject")
    for name in names:
        table.add_column(name, justify="right")
    for result in results:
        cells = []
        for name in names:
            if name not in result.seconds:
                cells.append("-")
                continue
            ratio = result.ratio(name)
            shown = f"{result.seconds[name] * 1e3:.3f} ms"
            cells.append(shown if ratio is None or name in result.peers[:1] else f"{shown} ({ratio:.2f})")
        table.add_row(result.subject, *cells)
    console.print(table)
    console.print(machine())
    if json_file is not None:
        rows = [{"subject": r.subject, "seconds": r.seconds, "peers": r.peers} for r in results]
        json_file.write_text(json.dumps({"title": title, "machine": machine(), "results": rows}, indent=1) + "\n")
    if plot is not None:
        draw(title, results, names, plot)


def draw(title: str, results: list[Result], names: list[str], path: Path) -> None:
    """A bar chart: one group a subject, one bar a contender."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.6 + 0.4 * len(results) * len(names)), layout="constrained")
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        places = [row + i * height for row in range(len(results))]
        values = [result.seconds.get(name, 0.0) * 1e3 for result in results]
        axes.bar_label(axes.barh(places, values, height * 0.9, label=name), fmt="%.2f", padding=3)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(results))], [result.subject for result in results])
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds, lower is better")
    axes.set_title(title, loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def machine() -> str:
    """Processor, versions and date, for whoever reads the figures later."""
    found = []
    for package in ("gradcore", "gradref", "numpy", "torch", "jax"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"{processor()}, Python {platform.python_version()}, {', '.join(found)}, {date.today().isoformat()}"


def processor() -> str:
    """The CPU's own name and the cores that this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else name
    return f"{name}, {os.cpu_count()} cores"


def chosen_peers(text: str, known: dict[str, str]) -> list[str]:
    """The peers that are asked for, known and installed; a line says why one is left out. known: name -> package."""
    chosen = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in known:
            raise typer.BadParameter(f"unknown peer {name!r}; known: {', '.join(known)}")
        try:
            version(known[name])
            chosen.append(name)
        except PackageNotFoundError:
            console.print(f"{name} is left out: {known[name]} is not installed")
    return chosen
