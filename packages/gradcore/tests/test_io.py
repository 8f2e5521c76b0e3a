"""Checkpoints: a resumed run is the run itself; failed and killed saves (cases 49, 50)."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Batches, load_checkpoint, nn, optim, save_checkpoint
from gradcore.errors import ArgumentError, CheckpointError

OPTIMIZERS = {
    "adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.01),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
}


class Run:
    """A network with dropout and batch norm, its optimizer, data and schedule: all that a checkpoint holds."""

    def __init__(self, seed: int, kind: str = "adam") -> None:
        gradcore.manual_seed(seed)
        rng = np.random.default_rng(0)  # the data are the same in each run
        images, labels = rng.standard_normal((22, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, 22)
        self.model = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(32, 3)
        )
        self.optimizer = OPTIMIZERS[kind](self.model.parameters())
        self.batches = Batches(images, labels, 8, seed)
        self.schedule = optim.ExponentialLR(self.optimizer, 0.9)

    def parts(self) -> dict[str, Any]:
        return vars(self)

    def steps(self, count: int) -> None:
        criterion = nn.CrossEntropyLoss()
        for _ in range(count):
            images, labels = self.batches.next()
            self.optimizer.zero_grad()
            criterion(self.model(images), labels).backward()
            self.optimizer.step()
            self.schedule.step()

    def state(self) -> dict[str, Any]:
        """Everything, also what only a checkpoint keeps."""
        dropout: Any = self.model[3]
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "lr": self.optimizer.lr,
            "batches": self.batches.state_dict(),
            "schedule": self.schedule.state_dict(),
            "dropout": (dropout.key, dropout.counter.item()),
        }


RESUME = """
import sys
import gradcore, numpy
from test_io import Run
path, kind, backend, out = sys.argv[1:]
gradcore.use_backend(backend)
run = Run(99, kind)
gradcore.load_checkpoint(path, **run.parts())
run.steps(5)
numpy.savez(out, **run.model.state_dict())
"""


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_stop_and_go_on_as_if_never_stopped(kind: str, backend: Any, tmp_path: Path) -> None:
    """Case 49: 10 steps are 5, a checkpoint in mid-epoch, a new process with another seed, and 5: the same bits."""
    whole, first = Run(7, kind), Run(7, kind)
    whole.steps(10)
    first.steps(5)
    assert 0 < first.batches.cursor < 22
    path, out = tmp_path / "run.ckpt", tmp_path / "after.npz"
    save_checkpoint(path, **first.parts())
    subprocess.run(
        [sys.executable, "-c", RESUME, path, kind, backend.name, out],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
    )
    with np.load(out) as after:
        np.testing.assert_equal(dict(after), whole.model.state_dict())
    # and the test really tests: with the weights alone, or with one part missing, the run is another one
    for left_out in (["optimizer", "batches", "schedule"], ["optimizer"], ["batches"], ["schedule"]):
        other = Run(99, kind)
        load_checkpoint(path, **{name: part for name, part in other.parts().items() if name not in left_out})
        other.steps(5)
        expected = whole.model.state_dict()
        assert any(not np.array_equal(value, expected[name]) for name, value in other.model.state_dict().items())


@pytest.fixture
def saved(backend: Any, tmp_path: Path) -> Path:
    run = Run(7)
    run.steps(4)
    save_checkpoint(tmp_path / "run.ckpt", **run.parts(), extra={"epoch": "4", "note": "ü"})
    return tmp_path / "run.ckpt"


def test_everything_comes_back(saved: Path) -> None:
    expected, other = Run(7), Run(8)
    expected.steps(4)
    other.steps(2)
    assert load_checkpoint(saved, **other.parts()) == {"epoch": "4", "note": "ü"}
    np.testing.assert_equal(other.state(), expected.state())


def test_the_rate_is_the_one_loaded(saved: Path) -> None:
    """Also the getter's, also without the schedule, and for load_state_dict."""
    run = Run(8)
    load_checkpoint(saved, model=run.model, optimizer=run.optimizer)
    assert run.optimizer.lr == run.optimizer.state_dict()["lr"] == pytest.approx(0.01 * 0.9**4, rel=1e-12)
    fresh = Run(9).optimizer
    fresh.load_state_dict(run.optimizer.state_dict())
    assert fresh.lr == run.optimizer.lr


def test_weights_alone(saved: Path) -> None:
    """To use a network, not to train on: no optimizer needed."""
    expected, other = Run(7), Run(8)
    expected.steps(4)
    load_checkpoint(saved, model=other.model)
    np.testing.assert_equal(other.model.state_dict(), expected.model.state_dict())
    assert other.optimizer.lr == 0.01


def test_other_tools_read_it(saved: Path) -> None:
    """A plain safetensors file, PyTorch's names under "model."."""
    from safetensors.numpy import load_file

    tensors = load_file(saved)
    assert tensors["model.0.weight"].shape == (2, 1, 3, 3)
    assert tensors["model.1.num_batches_tracked"] == 4
    assert tensors["optimizer.lr"].dtype == np.float64


@pytest.mark.parametrize("where", ["none/a.ckpt", "folder", "saved/a.ckpt"])
def test_what_cannot_be_written(backend: Any, tmp_path: Path, where: str) -> None:
    """Case 50: a missing folder, a folder or a file in the way; the file's name, and no left-over."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "saved").write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"{where}: cannot be written: ") as error:
        save_checkpoint(tmp_path / where, **Run(8).parts())
    assert "\n" not in str(error.value)
    assert sorted(os.listdir(tmp_path)) == ["folder", "saved"]
    assert os.listdir(tmp_path / "folder") == []


def test_a_full_disk_leaves_the_earlier_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 50, noticed at fsync only, as disks do it."""

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run, other = Run(9), Run(8)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match=r"run.ckpt: cannot be written: No space left on device"):
            save_checkpoint(saved, **run.parts())
    assert os.listdir(saved.parent) == ["run.ckpt"]
    load_checkpoint(saved, **other.parts())
    assert other.model.state_dict()["1.num_batches_tracked"] == 4


SAVER = """
import sys
import gradcore
from gradcore import nn
path, backend = sys.argv[1:]
gradcore.use_backend(backend)
model = nn.Linear(500, 500)
number = 0
while True:
    number += 1
    for parameter in model.parameters():
        nn.init.constant_(parameter, number)
    gradcore.save_checkpoint(path, model=model, extra={"number": str(number)})
    if number == 1:
        print("ready", flush=True)
"""


def test_killed_half_way(backend: Any, tmp_path: Path) -> None:
    """Case 50: SIGKILL a saver again and again; what is there is always one whole checkpoint."""
    path, model = tmp_path / "run.ckpt", nn.Linear(500, 500)
    for kill in range(4):
        saver = subprocess.Popen(
            [sys.executable, "-c", SAVER, path, backend.name],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert saver.stdout is not None
        saver.stdout.readline()
        time.sleep(0.02 + 0.011 * kill)
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()
        for entry in tmp_path.iterdir():  # killed between naming and renaming, a complete file may be left
            number = float(load_checkpoint(entry, model=model)["number"])
            assert all((p.numpy() == number).all() for p in model.parameters())
            assert entry == path or entry.name.endswith(".new")


def test_paths(backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings, Path objects, relative ones, and a name without a folder."""
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(2, 1)
    (tmp_path / "sub").mkdir()
    for path in ("plain.ckpt", Path("sub/a.ckpt"), str(tmp_path / "b"), "./c.ckpt"):
        save_checkpoint(path, model=model)
        assert load_checkpoint(path, model=model) == {}
    assert sorted(os.listdir()) == ["b", "c.ckpt", "plain.ckpt", "sub"]


@pytest.mark.parametrize("extra", [{"epoch": 3}, {1: "a"}, {"a": None}, {"a": b"x"}])
def test_extra_is_text(backend: Any, tmp_path: Path, extra: Any) -> None:
    """What would not come back as it went in is refused, before a file is made."""
    with pytest.raises(ArgumentError, match="save_checkpoint: extra holds strings"):
        save_checkpoint(tmp_path / "a.ckpt", model=nn.Linear(1, 1), extra=extra)
    assert os.listdir(tmp_path) == []


def test_what_the_arrays_may_be(backend: Any, tmp_path: Path) -> None:
    """float64, integers, no elements, one number, NaN and infinity, a parameter under two names, lists of layers."""

    class Odd(nn.Layer):
        def __init__(self, fill: float) -> None:
            super().__init__()
            self.wide = nn.Parameter(np.full((2, 3), fill))
            self.number = nn.Parameter(np.float32(fill))
            self.empty = nn.Parameter(np.zeros((0, 4), np.float32))
            self.strange = nn.Parameter(np.array([np.nan, np.inf, -0.0], np.float32) * fill)
            self.count = nn.Buffer(np.array([2**62], np.int64) - int(fill))
            self.mask = nn.Buffer(np.array([True, False]) if fill == 1.0 else np.array([False, False]))
            self.blocks = [nn.Linear(1, 1), nn.Dropout(), [nn.Dropout()]]
            self.again = self.blocks[0]

    source, target = Odd(1.0), Odd(2.0)
    source.blocks[1](np.ones(9, np.float32))
    save_checkpoint(tmp_path / "odd.ckpt", model=source)
    load_checkpoint(tmp_path / "odd.ckpt", model=target)
    for name, value in target.state_dict().items():
        assert value.dtype == source.state_dict()[name].dtype
        assert value.tobytes() == source.state_dict()[name].tobytes(), name
    for ours, theirs in ((target.blocks[1], source.blocks[1]), (target.blocks[2][0], source.blocks[2][0])):
        assert (ours.key, ours.counter.item()) == (theirs.key, theirs.counter.item())
    assert target.blocks[1].counter.item() == 3
