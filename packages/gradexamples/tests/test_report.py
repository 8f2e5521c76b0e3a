"""The figures of a run: warm-up apart, equations that hold exactly, and valid JSON whatever happens."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from gradexamples.errors import ExampleError
from gradexamples.report import History, Timer, record, write_json


def test_warm_up_is_what_it_took_longer() -> None:
    timer = Timer()
    timer.add(2, 5.0, warm=True)
    timer.add(8, 4.0, warm=False)
    assert timer.total_steps == 10
    assert timer.train_seconds == pytest.approx(5.0)
    assert timer.warmup_seconds == pytest.approx(4.0)


def test_a_run_of_warm_steps_only() -> None:
    timer = Timer()
    timer.add(2, 3.0, warm=True)
    assert (timer.train_seconds, timer.warmup_seconds) == (3.0, 0.0)


def test_warm_up_is_never_negative() -> None:
    timer = Timer()
    timer.add(1, 0.1, warm=True)
    timer.add(1, 1.0, warm=False)
    assert timer.warmup_seconds == 0


def test_record_of_nothing() -> None:
    contents = record(
        backend="toy", device="CPU", seed=0, epochs=0, history=History(), accuracy=math.nan, final_loss=None
    )
    assert contents["losses"] == []
    assert contents["step_microseconds"] is contents["test_accuracy"] is contents["final_loss"] is None


def test_what_is_not_a_number_becomes_null(tmp_path: Path) -> None:
    history = History(losses=[np.array([1.5, np.nan, np.inf], np.float32)])
    history.timer.add(3, 0.3, warm=False)
    contents = record(
        backend="toy", device="CPU", seed=0, epochs=1, history=history, accuracy=12.5, final_loss=math.inf
    )
    write_json(tmp_path / "run.json", contents)
    read = json.loads((tmp_path / "run.json").read_text(), parse_constant=lambda text: pytest.fail(text))
    assert read["losses"] == [1.5, None, None]
    assert read["final_loss"] is None
    assert read["step_microseconds"] == pytest.approx(1e5)


def test_every_digit_of_a_loss_survives(tmp_path: Path) -> None:
    losses = np.random.default_rng(0).random(100, dtype=np.float32)
    history = History(losses=[losses[:50], losses[50:]])
    contents = record(backend="toy", device="CPU", seed=0, epochs=1, history=history, accuracy=1.0, final_loss=0.5)
    write_json(tmp_path / "run.json", contents)
    read = json.loads((tmp_path / "run.json").read_text())["losses"]
    np.testing.assert_array_equal(np.array(read, np.float32), losses)


def test_a_folder_that_went_away(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match="cannot be written"):
        write_json(tmp_path / "gone" / "run.json", {})
