"""The options that the training commands share: their types, checks and meaning.

Everything here runs before any data is read and before numpy is imported: a silly value ends in a usage line and
exit code 2. None means "not given": the example's own default, or what the checkpoint says when a run goes on.
Next: session.py, which turns these settings into a backend, a seed and a header line.
"""

import enum
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

PICTURES = (".png", ".pdf", ".svg")


class Optimizer(enum.StrEnum):
    adam = "adam"
    adamw = "adamw"
    sgd = "sgd"


class Loop(enum.StrEnum):
    tape = "tape"
    layers = "layers"


class Dataset(enum.StrEnum):
    mnist = "mnist"
    fashion = "fashion"
    kmnist = "kmnist"


@dataclass
class Settings:
    """What the user asked for."""

    backend: str = "auto"
    epochs: int = 3
    batch_size: int | None = None
    lr: float | None = None
    optimizer: str | None = None
    seed: int | None = None
    loop: str = "tape"
    checkpoint: Path | None = None
    resume: bool = False
    plot: Path | None = None
    json: Path | None = None
    dataset: str = "mnist"
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise typer.BadParameter("needs --checkpoint FILE, the file to go on from", param_hint="'--resume'")


def learning_rate(value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:  # false for NaN as well
        raise typer.BadParameter(f"{value} is not a number of 0 or more")
    return value


def writable(path: Path | None) -> Path | None:
    """A file that can be written at the end of the run; better asked before an hour of training than after it."""
    if path is not None:
        folder = path.absolute().parent
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a folder")
        if not folder.is_dir():
            raise typer.BadParameter(f"the folder {folder} does not exist")
        if not os.access(folder, os.W_OK):
            raise typer.BadParameter(f"the folder {folder} cannot be written")
    return path


def picture(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{path} must end in {', '.join(PICTURES)}")
    return writable(path)


BackendOption = Annotated[str, typer.Option("--backend", help="auto, numpy, ref, cuda or any installed backend.")]
BatchSizeOption = Annotated[
    int | None, typer.Option("--batch-size", min=1, show_default="64, xor 4", help="Samples a step.")
]
LrOption = Annotated[
    float | None, typer.Option("--lr", callback=learning_rate, show_default="0.001, xor 0.1", help="Learning rate.")
]
OptimizerOption = Annotated[
    Optimizer | None, typer.Option("--optimizer", show_default="adam", help="How the weights are updated.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, max=2**63 - 1, show_default="drawn, and printed", help="Random seed.")
]
LoopOption = Annotated[
    Loop, typer.Option("--loop", help="loss.backward() on the tape, or the hand-driven backward of the layers.")
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads of the matrix library.")]
CheckpointOption = Annotated[
    Path | None, typer.Option("--checkpoint", callback=writable, help="Save the run here after each epoch.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint, exactly.")]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", callback=picture, help="Draw curves, predictions and filters (.png).")
]
JsonOption = Annotated[Path | None, typer.Option("--json", callback=writable, help="Write the run's figures.")]


def limit_threads(count: int | None) -> None:
    """Bound the threads of numpy's matrix library and of torch.

    They read these variables when they are loaded, so this must run before the first import of numpy. Where numpy
    is there already (a notebook, a test), threadpoolctl changes a running library, if it is installed.
    """
    if count is None:
        return
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ[variable] = str(count)
    if "numpy" in sys.modules:
        try:
            from threadpoolctl import threadpool_limits
        except ImportError:
            print("--threads: numpy is loaded already and threadpoolctl is not installed: unchanged", file=sys.stderr)
        else:
            threadpool_limits(count)
