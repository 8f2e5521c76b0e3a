"""Files that are no checkpoint of this run: cut, hostile, or of another one. Always CheckpointError, no change."""

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Batches, load_checkpoint, nn, optim, save_checkpoint
from gradcore.errors import CheckpointError


class Run:
    """The smallest run that has all that a checkpoint holds."""

    def __init__(self, seed: int, kind: Any = optim.Adam) -> None:
        gradcore.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(), nn.Linear(2, 1))
        self.optimizer = kind(self.model.parameters(), lr=0.1 / seed)
        self.batches = Batches(np.zeros((22, 4)), np.zeros(22), 8, seed)
        self.schedule = optim.StepLR(self.optimizer, seed)
        self.batches.next()
        self.model(np.ones((seed, 4), np.float32))

    def parts(self) -> dict[str, Any]:
        return vars(self)

    def state(self) -> dict[str, Any]:
        dropout: Any = self.model[1]
        states = {name: part.state_dict() for name, part in self.parts().items()}
        return {**states, "lr": self.optimizer.lr, "dropout": (dropout.key, dropout.counter.item())}


@pytest.fixture
def saved(backend: Any, tmp_path: Path) -> Path:
    path = tmp_path / "run.ckpt"
    save_checkpoint(path, **Run(7).parts())
    expected, other = Run(7), Run(8)
    assert str(other.state()) != str(expected.state())
    load_checkpoint(path, **other.parts())
    np.testing.assert_equal(other.state(), expected.state())
    return path


def refused(path: Any, run: Run, text: str | None = None) -> None:
    """load_checkpoint raises CheckpointError with the file's name, and changes nothing."""
    before = run.state()
    with pytest.raises(CheckpointError, match=text) as error:
        load_checkpoint(path, **run.parts())
    np.testing.assert_equal(run.state(), before)
    assert os.fspath(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_cut_at_every_tenth_byte(saved: Path) -> None:
    """Case 50."""
    whole, run = saved.read_bytes(), Run(8)
    cut = saved.with_name("cut.ckpt")
    for length in range(0, len(whole), 10):
        cut.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"cut.ckpt: not a whole safetensors file"):
            load_checkpoint(cut, **run.parts())
    refused(cut, run)
    cut.write_bytes(whole + b"\0")
    refused(cut, run, "not a whole safetensors file")
    load_checkpoint(saved, **run.parts())


def test_flipped_bytes_in_the_header(saved: Path) -> None:
    """Either it loads, or it is the one documented error and nothing changed."""
    whole = bytearray(saved.read_bytes())
    length = struct.unpack("<Q", whole[:8])[0]
    rng, run = np.random.default_rng(0), Run(8)
    broken, failures = saved.with_name("broken.ckpt"), 0
    for _ in range(150):
        data = whole.copy()
        data[int(rng.integers(0, 8 + length))] ^= 1 << int(rng.integers(0, 8))
        broken.write_bytes(data)
        before = run.state()
        said = ""
        try:
            load_checkpoint(broken, **run.parts())
        except CheckpointError as error:
            said = str(error)
        if said:
            failures += 1
            assert "broken.ckpt" in said
            np.testing.assert_equal(run.state(), before)
    assert failures > 50


class Bomb:
    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> Any:
        return Path.touch, (self.victim,)


def test_a_hostile_pickle_is_never_run(backend: Any, tmp_path: Path) -> None:
    """Case 50: in every wrapping that torch.load or numpy.load would open."""
    victim, path, run = tmp_path / "pwned", tmp_path / "evil.ckpt", Run(8)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(victim), protocol))
        refused(path, run, "not a whole safetensors file")
    with path.open("wb") as file:
        np.save(file, np.array([Bomb(victim)]), allow_pickle=True)
    refused(path, run)
    with path.open("wb") as file:
        np.savez(file, a=np.array([Bomb(victim)], dtype=object))
    refused(path, run)
    assert not victim.exists()


def rewrite(path: Path, change: Any, tensors: Any = None) -> None:
    """The file again, with another header (and other tensors)."""
    from safetensors import safe_open
    from safetensors.numpy import load_file, save

    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    values = load_file(path)
    change(metadata)
    if tensors is not None:
        tensors(values)
    path.write_bytes(save(values, metadata))


def in_state(**parts: Any) -> Any:
    """A change of the header's JSON state."""

    def change(metadata: dict[str, str]) -> None:
        metadata["state"] = json.dumps({**json.loads(metadata["state"]), **parts})

    return change


BATCHES = {"seed": 7, "epoch": 1, "cursor": 8, "count": 22}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m.update(format="other 1"), "not a gradcore checkpoint 1"),
        (lambda m: m.clear(), "not a gradcore checkpoint 1"),
        (lambda m: m.pop("state"), "no readable 'state'"),
        (lambda m: m.pop("extra"), "no readable 'extra'"),
        (lambda m: m.update(state="{"), "no readable 'state'"),
        (lambda m: m.update(state="[" * 100_000), "no readable 'state'"),
        (lambda m: m.update(state='{"a":' * 100_000), "no readable 'state'"),
        (lambda m: m.update(extra="[" * 100_000 + "]" * 100_000), "no readable 'extra'"),
        (lambda m: m.update(state="[1]"), "no readable 'state'"),
        (lambda m: m.update(extra="[1]"), "no readable 'extra'"),
        (lambda m: m.update(extra="null"), "no readable 'extra'"),
        (lambda m: m.update(state="9" * 10_000), "no readable 'state'"),
        (in_state(keys=[]), "a model with 0 dropout layers, this one has 1"),
        (in_state(keys=["1", "2"]), "with 2 dropout layers"),
        (in_state(keys="1"), "random keys"),
        (in_state(keys=None), "random keys"),
        (in_state(keys=[1.5]), "random keys"),
        (in_state(keys=["9" * 10_000]), "random keys"),
        (in_state(keys=["-1"]), "random keys"),
        (in_state(batches=None), "holds no batches"),
        (in_state(batches=[1]), "holds no batches"),
        (in_state(batches={**BATCHES, "count": 21}), "of 21 rows"),
        (in_state(batches={**BATCHES, "cursor": 23}), "cursor 23"),
        (in_state(batches={**BATCHES, "epoch": -1}), "epoch"),
        (in_state(batches={**BATCHES, "epoch": 10**30}), "epoch"),
        (in_state(batches={**BATCHES, "seed": "x"}), "seed"),
        (in_state(batches={"seed": 7}), "missing count, cursor, epoch"),
        (in_state(schedule=None), "holds no schedule"),
        (in_state(schedule={"base": "x", "count": 1}), "base"),
        (in_state(schedule={"base": -1.0, "count": 1}), "base"),
        (in_state(schedule={"base": float("nan"), "count": 1}), "base"),
        (in_state(schedule={"base": 0.1, "count": 0.5}), "count"),
        (in_state(schedule={"count": 1}), "missing base"),
    ],
)
def test_a_header_that_makes_no_sense(saved: Path, change: Any, text: str) -> None:
    """Case 50: bombs and nonsense in the header; nothing changes although the tensors are fine."""
    rewrite(saved, change)
    refused(saved, Run(8), text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t: t.pop("model.0.bias"), "missing model.0.bias"),
        (lambda t: t.pop("optimizer.exp_avg.2"), "missing optimizer.exp_avg.2"),
        (lambda t: t.pop("random.1.counter"), "missing random.1.counter"),
        (lambda t: t.update({"model.9.weight": np.zeros(2)}), "unexpected model.9.weight"),
        (
            lambda t: t.update({"model.0.bias": np.zeros(3, np.float32)}),
            r"model.0.bias has shape \(3,\), expected \(2,\)",
        ),
        (lambda t: t.update({"model.0.bias": np.zeros(2, np.int32)}), "model.0.bias is int32, expected float32"),
        (lambda t: t.update({"model.0.bias": np.full(2, 1e300)}), "model.0.bias holds float64 values too large"),
        (lambda t: t.update({"optimizer.step.0": np.array(0.5)}), "optimizer.step.0 is float64, expected int64"),
        (lambda t: t.update({"optimizer.lr": np.array(-0.1)}), "optimizer.lr must be at least 0"),
        (lambda t: t.update({"optimizer.lr": np.array(np.nan)}), "optimizer.lr must be"),
    ],
)
def test_tensors_that_do_not_fit(saved: Path, change: Any, text: str) -> None:
    """Convention "load of wrong shapes": names, shapes, types; all or nothing."""
    rewrite(saved, lambda m: None, change)
    refused(saved, Run(8), text)


def test_types_that_numpy_lacks(saved: Path) -> None:
    """bfloat16 and float8, as files of other tools have them."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        for metadata, text in (({}, "not a gradcore checkpoint"), ({"format": "gradcore checkpoint 1"}, None)):
            save_file({"weight": torch.zeros(2, 2, dtype=dtype)}, saved, metadata)
            refused(saved, Run(8), text)


def test_another_optimizer(saved: Path) -> None:
    run = Run(8, lambda p, lr: optim.SGD(p, lr, momentum=0.9))
    refused(saved, run, r"missing optimizer.momentum_buffer.0.*; unexpected optimizer.exp_avg.0")


def test_no_optimizer_inside(backend: Any, tmp_path: Path) -> None:
    run = Run(8)
    save_checkpoint(tmp_path / "weights.ckpt", model=run.model)
    refused(tmp_path / "weights.ckpt", run, "missing optimizer.exp_avg.0")
    load_checkpoint(tmp_path / "weights.ckpt", model=run.model)


@pytest.mark.parametrize(
    ("where", "text"), [("none.ckpt", "no such file"), ("none/a.ckpt", "no such file"), ("", "it is a folder")]
)
def test_what_cannot_be_read(saved: Path, where: str, text: str) -> None:
    """A missing file, a missing folder, a folder."""
    refused(saved.parent / where, Run(8), text)
