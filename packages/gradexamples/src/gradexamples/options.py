"""The options that the training commands share: their types, checks and meaning.

Everything here runs before any data is read and before numpy is imported: a silly value ends in a usage line and
exit code 2. None means "not given": the example's own default, or what the checkpoint says when a run goes on.
Next: session.py, which turns these settings into a backend, a seed and a header line.
"""

import enum
import itertools
import math
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

PICTURES = (".png", ".pdf", ".svg")
ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH  # looked at as well, for root may write everywhere


class Optimizer(enum.StrEnum):
    adam = "adam"
    adamw = "adamw"
    sgd = "sgd"


class Loop(enum.StrEnum):
    tape = "tape"
    layers = "layers"


class Precision(enum.StrEnum):
    float32 = "float32"
    tf32 = "tf32"


class Dataset(enum.StrEnum):
    mnist = "mnist"
    fashion = "fashion"
    kmnist = "kmnist"


@dataclass
class Settings:
    """What the user asked for."""

    backend: str | None = None  # None: GRADCORE_BACKEND, else auto
    epochs: int = 3
    batch_size: int | None = None
    lr: float | None = None
    optimizer: str | None = None
    seed: int | None = None
    loop: str = "tape"
    graph: bool = True
    precision: str | None = None  # None: the backend's own, float32
    checkpoint: Path | None = None
    resume: bool = False
    plot: Path | None = None
    json: Path | None = None
    dataset: str = "mnist"
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise typer.BadParameter("needs --checkpoint FILE, the file to go on from", param_hint="'--resume'")
        targets = {"--checkpoint": self.checkpoint, "--plot": self.plot, "--json": self.json}
        given = [(option, path) for option, path in targets.items() if path is not None]
        for (one, path), (other, second) in itertools.combinations(given, 2):
            if os.path.realpath(path) == os.path.realpath(second):
                raise typer.BadParameter(f"{second} is the file of {one} too", param_hint=f"'{other}'")


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
        if path.exists() and not (os.access(path, os.W_OK) and path.stat().st_mode & ANY_WRITE):
            raise typer.BadParameter(f"{path} is write-protected")
    return path


def picture(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{path} must end in {', '.join(PICTURES)}")
    return writable(path)


def sample(value: tuple[int, Path] | None) -> tuple[int, Path] | None:
    """The number and the file of --save-sample."""
    if value is not None:
        if value[1].suffix.lower() != ".png":
            raise typer.BadParameter(f"{value[1]} must end in .png")
        writable(value[1])
    return value


def batch_size(default: int) -> Any:
    """The option of one command; so is each of the next two. The default is the example's, told in the help."""
    return typer.Option("--batch-size", min=1, help=f"Samples a step; {default} unless given.")


def lr(default: float, sgd: float) -> Any:
    help = f"Learning rate; {default} unless given, with sgd {sgd}."
    return typer.Option("--lr", callback=learning_rate, help=help)


def epochs(over: str) -> Any:
    return typer.Option("--epochs", min=0, help=f"Passes over {over}, in total (with --resume too); 0 only evaluates.")


BackendOption = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help="auto, numpy, ref, cuda or any installed backend; unless given, what GRADCORE_BACKEND says, else auto.",
    ),
]
OptimizerOption = Annotated[
    Optimizer | None,
    typer.Option("--optimizer", help="How the weights are updated; adam unless given. sgd has momentum 0.9."),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Random seed; drawn, and printed, unless given."),
]
LoopOption = Annotated[
    Loop, typer.Option("--loop", help="loss.backward() on the tape, or the hand-driven backward of the layers.")
]
GraphOption = Annotated[
    bool, typer.Option("--graph/--no-graph", help="Record the step as a device graph, where the backend has them.")
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option("--precision", help="Of matrix products: float32 unless given, or tf32 on a backend that offers it."),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads of the matrix library.")]
CheckpointOption = Annotated[
    Path | None, typer.Option("--checkpoint", callback=writable, help="Save the run here after each epoch.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on from --checkpoint, exactly; --epochs counts the epochs made before.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", callback=picture, help="Draw how the run went (.png, .pdf or .svg).")
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
