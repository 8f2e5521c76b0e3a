"""XOR: the twenty seeds of the promise, the printed lines, the record, both loops, every backend."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize("seed", range(20))
def test_seeds_0_to_19(run: Run, seed: int, tmp_path: Path) -> None:
    result = run("xor", "--seed", seed, "--json", tmp_path / "run.json")
    assert result.exit_code == 0
    answers = re.findall(r"^\[([01]\.0), ([01]\.0)\] => (\d\.\d{4}) \(([01]\.0)\)$", result.stdout, re.MULTILINE)
    assert len(answers) == 4
    for first, second, answer, target in answers:
        assert float(target) == (first != second)
        assert abs(float(answer) - float(target)) <= 0.02
    assert json.loads((tmp_path / "run.json").read_text())["final_loss"] <= 1e-4
    assert float(re.findall(r"^Final Loss: (.*)$", result.stdout, re.MULTILINE)[0]) <= 1e-4


def test_a_line_every_hundred_epochs(run: Run) -> None:
    lines = re.findall(r"^Epoch \[(\d+)/1000\], Loss: \d\.\d{6}$", run("xor", "--seed", 0).stdout, re.MULTILINE)
    assert lines == [str(epoch) for epoch in range(100, 1001, 100)]


@pytest.mark.parametrize("epochs", [0, 1, 7, 25, 105])
def test_other_numbers_of_epochs(run: Run, epochs: int, tmp_path: Path) -> None:
    result = run("xor", "--epochs", epochs, "--json", tmp_path / "run.json")
    assert result.exit_code == 0
    lines = re.findall(rf"^Epoch \[(\d+)/{epochs}\]", result.stdout, re.MULTILINE)
    assert lines[-1:] == ([str(epochs)] if epochs else [])
    assert len(lines) <= 10
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["steps"] == record["epochs"] == len(record["losses"]) == epochs
    assert (record["step_microseconds"] is None) == (epochs == 0)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_both_loops_give_the_same_digits(run: Run, backend: str, optimizer: str, tmp_path: Path) -> None:
    losses = []
    for loop in ("tape", "layers"):
        options = ("--backend", backend, "--optimizer", optimizer, "--loop", loop, "--seed", 3, "--epochs", 30)
        assert run("xor", *options, "--json", tmp_path / "run.json").exit_code == 0
        losses.append(json.loads((tmp_path / "run.json").read_text())["losses"])
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]


def test_small_batches(run: Run, tmp_path: Path) -> None:
    assert run("xor", "--batch-size", 3, "--epochs", 5, "--json", tmp_path / "run.json").exit_code == 0
    assert json.loads((tmp_path / "run.json").read_text())["steps"] == 10, "one of three points and one of one"
    assert run("xor", "--batch-size", 100000, "--epochs", 5, "--json", tmp_path / "run.json").exit_code == 0
    assert json.loads((tmp_path / "run.json").read_text())["steps"] == 5


def test_the_seed_is_printed_when_it_was_drawn(run: Run) -> None:
    first, second = (re.findall(r"seed: (\d+),", run("xor", "--epochs", 0).stdout)[0] for _ in range(2))
    assert first != second
    again = run("xor", "--epochs", 0, "--seed", first).stdout
    assert run("xor", "--epochs", 0, "--seed", first).stdout == again


def test_outputs_that_are_not_finite_are_said_aloud(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradexamples import xor

    good = xor.network

    def broken() -> object:
        model = good()
        model.load_state_dict({name: value * float("nan") for name, value in model.state_dict().items()})
        return model

    monkeypatch.setattr(xor, "network", broken)
    result = run("xor", "--epochs", 20, "--json", tmp_path / "run.json")
    assert result.exit_code == 1
    assert "not finite" in result.stderr
    assert "not a number" in result.stdout
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["test_accuracy"] is record["final_loss"] is None
