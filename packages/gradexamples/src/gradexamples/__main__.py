"""`python -m gradexamples COMMAND`: xor, mnist, predict, backends.

Here are only the commands and their options. Each command imports what it needs when it runs, so that --help and
mistakes in the options are quick and never load torch, and --threads comes before numpy.
Exit codes: 0 done, 1 something outside is wrong (data, checkpoint, backend, outputs that are not finite),
2 the command line is, 130 Ctrl-C. Next: options.py, xor.py, mnist.py.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .errors import ExampleError, one_line
from .options import Dataset, Loop, Settings

INTERRUPTED = 130  # as a shell reports a program that Ctrl-C ended
told = False  # whether the line about it is printed

app = typer.Typer(
    help="Train small networks with gradcore, and see how they learn.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """What goes wrong outside the program is told in one line on stderr; a bug keeps its traceback."""
    global told
    try:
        yield
    except KeyboardInterrupt as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient second one must not end in a traceback
        print(f"Interrupted{stop}", file=sys.stderr, flush=True)
        told = True
        raise typer.Exit(INTERRUPTED) from None
    except ExampleError as error:
        print(f"Error: {one_line(error)}", file=sys.stderr, flush=True)
        raise typer.Exit(error.code) from None
    except Exception as error:
        from gradcore.errors import BackendUnavailable, CheckpointError, NotSupported

        if not isinstance(error, BackendUnavailable | CheckpointError | NotSupported):
            raise
        print(f"Error: {one_line(error)}", file=sys.stderr, flush=True)
        raise typer.Exit(1) from None


@app.command()
def xor(
    backend: options.BackendOption = None,
    epochs: Annotated[int, options.epochs("the four points")] = 1000,
    batch_size: Annotated[int | None, options.batch_size(4)] = None,
    lr: Annotated[float | None, options.lr(0.1, 0.5)] = None,
    optimizer: options.OptimizerOption = None,
    seed: options.SeedOption = None,
    loop: options.LoopOption = Loop.tape,
    graph: options.GraphOption = True,
    precision: options.PrecisionOption = None,
    threads: options.ThreadsOption = None,
    checkpoint: options.CheckpointOption = None,
    resume: options.ResumeOption = False,
    plot: options.PlotOption = None,
    json: options.JsonOption = None,
) -> None:
    """Learn XOR with a two-layer network."""
    settings = Settings(
        backend=backend,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        optimizer=optimizer and optimizer.value,
        seed=seed,
        loop=loop.value,
        graph=graph,
        precision=precision and precision.value,
        checkpoint=checkpoint,
        resume=resume,
        plot=plot,
        json=json,
        dataset="xor",
    )
    with one_line_errors():
        options.limit_threads(threads)
        from .xor import run

        run(settings)


@app.command()
def mnist(
    backend: options.BackendOption = None,
    epochs: Annotated[int, options.epochs("the training images")] = 3,
    batch_size: Annotated[int | None, options.batch_size(64)] = None,
    lr: Annotated[float | None, options.lr(0.001, 0.02)] = None,
    optimizer: options.OptimizerOption = None,
    seed: options.SeedOption = None,
    loop: options.LoopOption = Loop.tape,
    graph: options.GraphOption = True,
    precision: options.PrecisionOption = None,
    threads: options.ThreadsOption = None,
    checkpoint: options.CheckpointOption = None,
    resume: options.ResumeOption = False,
    plot: options.PlotOption = None,
    json: options.JsonOption = None,
    dataset: Annotated[
        Dataset, typer.Option(help="mnist needs no network; the others are downloaded.")
    ] = Dataset.mnist,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder with NAME/raw/..., as torchvision has it; made and filled when it is missing."),
    ] = None,
) -> None:
    """Train a small convolutional network on handwritten digits."""
    settings = Settings(
        backend=backend,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        optimizer=optimizer and optimizer.value,
        seed=seed,
        loop=loop.value,
        graph=graph,
        precision=precision and precision.value,
        checkpoint=checkpoint,
        resume=resume,
        plot=plot,
        json=json,
        dataset=dataset.value,
        data_dir=data_dir,
    )
    with one_line_errors():
        options.limit_threads(threads)
        from .mnist import run

        run(settings)


@app.command()
def predict(
    checkpoint: Annotated[Path | None, typer.Argument(help="A file that mnist --checkpoint wrote.")] = None,
    pictures: Annotated[list[Path] | None, typer.Argument(help="Pictures of one digit each, of any size.")] = None,
    backend: options.BackendOption = None,
    save_sample: Annotated[
        tuple[int, Path] | None,
        typer.Option(
            metavar="N FILE.png",
            callback=options.sample,
            help="Write MNIST's test image number N (not the digit N) as a picture to try.",
        ),
    ] = None,
) -> None:
    """Read the digits in pictures."""
    if save_sample is None and not (checkpoint and pictures):
        raise typer.BadParameter("a checkpoint and at least one picture are needed", param_hint="'CHECKPOINT PICTURES'")
    with one_line_errors():
        from . import predict as example

        if save_sample is not None:
            example.save_sample(*save_sample)
        if checkpoint and pictures:
            example.run(checkpoint, pictures, backend)


@app.command()
def backends() -> None:
    """List the installed backends: which can run here, and why the others cannot."""
    with one_line_errors():
        from gradcore.__main__ import main

        raise typer.Exit(main([]))


def main() -> None:
    """Run the command line and end the process."""
    try:
        app(prog_name="python -m gradexamples")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            if not told:  # it came while typer read the options
                print("Interrupted", file=sys.stderr, flush=True)
            # At once: taking torch down lasts a second, and when Ctrl-C fell into an import, Python itself would
            # still end by the signal instead of the exit code.
            sys.stdout.flush()
            os._exit(INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
