"""What every training command does around its training: backend, seed, header line, checkpoint, record.

Contract: options that were not given come from the checkpoint when a run goes on (--resume), else from the example.
A checkpoint is written whole or not at all, and Ctrl-C waits for it.
Next: training.py, the loop itself.
"""

import contextlib
import json
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import gradcore
from gradcore import optim
from gradcore.backend import choose_backend, list_backends
from gradcore.backend.registry import VARIABLE
from gradcore.data import Batches
from gradcore.errors import ArgumentError, BackendUnavailable
from gradcore.nn import Layer

from .errors import ExampleError, one_line
from .options import Settings
from .report import History, record, write_json


class Session:
    """One run: the settings with every gap filled, and the chosen backend.

    network: makes the example's model. rates: the learning rate for each optimizer.
    Raises ExampleError for a backend that is not there, CheckpointError for one that is not of this network.
    """

    def __init__(
        self,
        example: str,
        settings: Settings,
        network: Callable[[], Layer],
        batch_size: int,
        rates: dict[str, float],
    ) -> None:
        self.example = example
        self.settings = settings
        self.backend, self.why = find_backend(settings.backend, settings.precision)
        self.saved = self._read_notes(network()) if settings.resume else {}
        self.epoch = int(self.saved.get("epoch", 0))  # epochs made before this run
        self.seed = self._value("seed", settings.seed, secrets.randbelow(2**31))
        self.batch_size = self._value("batch_size", settings.batch_size, batch_size)
        self.optimizer_name = self._value("optimizer", settings.optimizer, "adam")
        self.lr = float(self.saved.get("lr", rates[self.optimizer_name])) if settings.lr is None else settings.lr

    def _read_notes(self, model: Layer) -> dict[str, str]:
        """The notes in the checkpoint, when they are of this example and data set; the model is thrown away."""
        path = self.settings.checkpoint
        refuse_other_example(path, self.example)
        saved = gradcore.load_checkpoint(path, model=model)
        for key, wanted in (("example", self.example), ("dataset", self.settings.dataset)):
            if saved.get(key) != wanted:
                raise ExampleError(f"{path}: made by the {key} {saved.get(key)!r}, this is {wanted!r}")
        return saved

    def _value(self, key: str, given: int | str | None, default: int | str) -> int | str:
        """An option that must stay as it was for a resumed run to go on exactly."""
        if key not in self.saved:
            return default if given is None else given
        saved = type(default)(self.saved[key])
        if given is not None and given != saved:
            option = "--" + key.replace("_", "-")
            raise ExampleError(f"{option} {given}: the checkpoint was made with {saved}; leave the option out", code=2)
        return saved

    def make_optimizer(self, model: Layer) -> optim.Optimizer:
        parameters = list(model.parameters())
        if self.optimizer_name == "sgd":
            return optim.SGD(parameters, lr=self.lr, momentum=0.9)
        kind = {"adam": optim.Adam, "adamw": optim.AdamW}[self.optimizer_name]
        return kind(parameters, lr=self.lr)

    def header(self, model: Layer) -> str:
        count = sum(parameter.size for parameter in model.parameters())
        device = self.backend.device
        convolution = getattr(self.backend, "convolution", None)
        if convolution and convolution not in device:
            device += f", {convolution}"
        return (
            f"Backend: {self.backend.name} ({self.why}), device: {device}, "
            f"precision: {self.backend.precision}, seed: {self.seed}, parameters: {count:,}"
        )

    def title(self) -> str:
        """What a picture of this run says below its heading."""
        count = self.settings.epochs
        return f"backend {self.backend.name}, seed {self.seed}, {count} epoch{'' if count == 1 else 's'}"

    def restore(self, model: Layer, optimizer: optim.Optimizer, batches: Batches) -> None:
        """Go on from the checkpoint, if asked to, and say so."""
        if self.settings.resume:
            gradcore.load_checkpoint(self.settings.checkpoint, model=model, optimizer=optimizer, batches=batches)
            optimizer.lr = self.lr
            total = self.settings.epochs
            rest = f"; nothing is left to train: --epochs {total} is the total" if total <= self.epoch else ""
            print(f"Resumed from {self.settings.checkpoint} after epoch {self.epoch}{rest}", flush=True)

    def save(self, epoch: int, model: Layer, optimizer: optim.Optimizer, batches: Batches) -> None:
        """Write the checkpoint, if asked to: after `epoch` epochs."""
        if self.settings.checkpoint is None:
            return
        notes = {
            "example": self.example,
            "dataset": self.settings.dataset,
            "epoch": str(epoch),
            "seed": str(self.seed),
            "batch_size": str(self.batch_size),
            "optimizer": self.optimizer_name,
            "lr": repr(self.lr),
        }
        with uninterrupted():
            gradcore.save_checkpoint(
                self.settings.checkpoint, model=model, optimizer=optimizer, batches=batches, extra=notes
            )
            self.epoch = epoch

    def interrupted(self, epoch: int) -> str:
        """Where Ctrl-C came, and what is safe: the rest of the one line that is printed."""
        where = f" in epoch {epoch + 1} of {self.settings.epochs}"
        path = self.settings.checkpoint
        if path is None or self.epoch == 0:
            return where + "; nothing was saved"
        return f"{where}; {path} holds epoch {self.epoch}, --resume goes on from there"

    def write_record(self, history: History, accuracy: float, final_loss: float | None) -> None:
        if self.settings.json is not None:
            figures = record(
                backend=self.backend.name,
                device=self.backend.device,
                seed=self.seed,
                epochs=self.settings.epochs,
                history=history,
                accuracy=accuracy,
                final_loss=final_loss,
            )
            write_json(self.settings.json, figures)


def find_backend(name: str | None, precision: str | None = None) -> tuple[gradcore.backend.Backend, str]:
    """The backend and, in a few words, why it was chosen. None: GRADCORE_BACKEND, else auto.

    ExampleError; with exit code 2, a mistake in the command line, for an unknown name and for a precision that the
    backend does not offer.
    """
    variable = os.environ.get(VARIABLE)
    asked = name or variable or "auto"
    try:
        backend, why = choose_backend(None if variable and not name else asked)
        if precision is not None and precision != backend.precision:
            if not hasattr(backend, "with_precision"):
                raise ExampleError(f"backend {backend.name!r} computes {backend.precision} only", code=2)
            backend = backend.with_precision(precision)
    except ArgumentError as error:
        raise ExampleError(one_line(error), code=2) from error
    except BackendUnavailable as error:
        known = {row.name for row in list_backends()}
        raise ExampleError(one_line(error), code=1 if asked.partition(":")[0] in known else 2) from error
    if asked == "auto":
        why = passed_over(backend.name, "auto" if name or not variable else f"{VARIABLE}=auto")
    return backend, why


def passed_over(chosen: str, start: str) -> str:
    """Which backends auto passed over; the reasons are told by the command `backends`."""
    rows = list_backends()
    above = next((row.priority for row in rows if row.name == chosen.partition(":")[0]), 0)
    absent = [row.name for row in rows if not row.available or row.priority > above]
    if not absent:
        return start
    return f"{start}; {' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} not available here"


def refuse_other_example(path: Path, example: str) -> None:
    """ExampleError for the other example's checkpoint. A file that cannot be read is for load_checkpoint to tell."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            maker = json.loads(file.metadata()["extra"])["example"]
    except Exception:  # whatever safetensors, JSON and strange contents bring
        return
    if maker != example:
        raise ExampleError(f"{path}: made by the example {maker!r}, this is {example!r}")


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait, however often it comes, until the block is done. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
