"""The loop: both steps give the same weights, stretches never change a figure, the last small batch is counted."""

import numpy as np
import pytest

import gradcore
from gradcore import Batches
from gradcore.nn import CrossEntropyLoss
from gradcore.optim import Adam
from gradexamples import mnist, mnist_data
from gradexamples.terminal import Reporter
from gradexamples.training import STEPS, Trainer, outputs_of

Digits = tuple[np.ndarray, np.ndarray]


class Live(Reporter):
    """A terminal without a screen: the trainer works in short stretches for it."""

    def __init__(self) -> None:
        super().__init__(total=0)
        self.live = True
        self.steps = 0

    def advance(self, steps: int) -> None:
        self.steps += steps


def trainer_on(
    backend: str, digits: Digits, loop: str = "tape", samples: int = 200
) -> tuple[Trainer, gradcore.nn.Layer]:
    with gradcore.use_backend(backend):
        gradcore.manual_seed(0)
        model = mnist.network()
        optimizer = Adam(model.parameters(), lr=1e-3)
        images, labels = mnist_data.scale(digits[0][:samples]), digits[1][:samples].astype(np.int64)
        batches = Batches(images, labels, 64, 0)
        step = STEPS[loop](model, CrossEntropyLoss(), optimizer, mnist.count_right)
        return Trainer(step, batches, samples, 64), model


def test_tape_and_layers_train_to_the_same_bits(backend: str, digits: Digits) -> None:
    weights = []
    for loop in ("tape", "layers"):
        trainer, model = trainer_on(backend, digits, loop)
        trainer.advance(8, Reporter(0))
        weights.append(model.state_dict())
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name], err_msg=name)


def test_stretches_do_not_change_the_figures(backend: str, digits: Digits) -> None:
    histories = []
    for show, parts in ((Reporter(0), [12]), (Live(), [12]), (Reporter(0), [1, 4, 7])):
        trainer, _ = trainer_on(backend, digits)
        for steps in parts:
            trainer.advance(steps, show)
        histories.append(trainer.history)
    for history in histories[1:]:
        np.testing.assert_array_equal(history.all_losses, histories[0].all_losses)
        np.testing.assert_array_equal(history.all_right, histories[0].all_right)


def test_every_sample_is_counted_once(digits: Digits) -> None:
    trainer, _ = trainer_on("numpy", digits)
    trainer.advance(12, Reporter(0))
    sizes = np.concatenate(trainer.history.seen)
    assert sizes.tolist() == [64, 64, 64, 8] * 3
    assert (trainer.history.all_right <= sizes).all()
    loss, accuracy = trainer.summary(0)
    assert loss == pytest.approx(trainer.history.all_losses.mean(), rel=1e-5)
    assert accuracy == pytest.approx(100 * trainer.history.all_right.sum() / 600)
    assert trainer.history.timer.total_steps == 12


def test_without_a_smaller_last_batch(digits: Digits) -> None:
    trainer, _ = trainer_on("numpy", digits, samples=128)
    trainer.advance(5, Reporter(0))
    assert np.concatenate(trainer.history.seen).tolist() == [64] * 5


def test_warm_up_is_the_first_two_steps_of_each_size(digits: Digits) -> None:
    trainer, _ = trainer_on("numpy", digits)
    trainer.advance(12, Reporter(0))
    assert trainer.history.timer.warm_steps == 4


def test_outputs_in_evaluation_mode(digits: Digits) -> None:
    _, model = trainer_on("numpy", digits)
    images = mnist_data.scale(digits[0][:25])
    whole, parts = outputs_of(model, images), outputs_of(model, images, size=10)
    np.testing.assert_allclose(whole, parts, rtol=1e-5, atol=1e-6)
    assert whole.shape == (25, 10)
    assert model.training
