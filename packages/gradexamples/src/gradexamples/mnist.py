"""The MNIST example: a small convolutional network, its settings, and what the run prints.

Read `network` and `train` first: everything else is around them. A run is reproducible from its seed: the seed fixes
the weights and the order of the images, and the printed figures are read back only at the printed lines.
Next: training.py (the step), session.py (backend, checkpoint, record), plots.py.
"""

import math

import numpy as np

import gradcore
from gradcore import Tensor
from gradcore.data import Batches
from gradcore.nn import Conv2d, CrossEntropyLoss, Flatten, Linear, MaxPool2d, ReLU, Sequential

from . import mnist_data
from .errors import ExampleError
from .mnist_data import Data
from .options import Settings
from .report import History
from .session import Session
from .terminal import Reporter, digits_in_a_row, show_digits
from .training import STEPS, Trainer, outputs_of

BATCH_SIZE = 64
RATES = {"adam": 1e-3, "adamw": 1e-3, "sgd": 0.02}
LINES = 5  # printed lines an epoch


def network() -> Sequential:
    """Two convolutions and two linear layers, 206,922 parameters: (N, 1, 28, 28) -> logits (N, 10)."""
    return Sequential(
        Conv2d(1, 16, 3, padding=1),
        ReLU(),
        MaxPool2d(2),  # (N, 16, 14, 14)
        Conv2d(16, 32, 3, padding=1),
        ReLU(),
        MaxPool2d(2),  # (N, 32, 7, 7)
        Flatten(),
        Linear(32 * 7 * 7, 128),
        ReLU(),
        Linear(128, 10),
    )


def count_right(output: Tensor, target: Tensor) -> Tensor:
    """Right answers in a batch, counted in float32: a uint8 would wrap at 256."""
    return (output.argmax(1) == target).astype("float32").sum()


def run(settings: Settings) -> None:
    """The whole command: train, test, show, draw, record."""
    session = Session("mnist", settings, network, BATCH_SIZE, RATES)
    with gradcore.use_backend(session.backend):
        gradcore.manual_seed(session.seed)
        model = network()
        print(session.header(model), flush=True)
        data = mnist_data.load(settings.dataset, settings.data_dir)
        print(f"Loaded {len(data.train_images)} training samples and {len(data.test_images)} test samples", flush=True)
        history, outputs = train(session, model, data)
        report(session, model, data, history, outputs)


def train(session: Session, model: Sequential, data: Data) -> tuple[History, np.ndarray]:
    """Train up to the asked number of epochs; the figures, and the outputs (N, 10) for the test images."""
    optimizer = session.make_optimizer(model)
    size = min(session.batch_size, len(data.train_images))
    batches = Batches(mnist_data.scale(data.train_images), data.train_labels, size, session.seed)
    session.restore(model, optimizer, batches)
    step = STEPS[session.settings.loop](model, CrossEntropyLoss(), optimizer, count_right)
    trainer = Trainer(step, batches, len(data.train_images), size, session.settings.graph)
    test_images = mnist_data.scale(data.test_images)
    first, epochs = session.epoch, session.settings.epochs
    outputs = None
    epoch = first
    try:
        with Reporter(total=max(0, epochs - first) * len(batches)) as show:
            for epoch in range(first, epochs):
                loss, accuracy = train_epoch(trainer, f"Epoch [{epoch + 1}/{epochs}]", show)
                outputs = outputs_of(model, test_images)
                if math.isnan(loss):
                    show.line("The loss is not a number any more: the training stops here. Try a smaller --lr.")
                    break  # these weights never recover, and must not replace a good checkpoint
                test = accuracy_of(outputs, data.test_labels)
                trainer.history.tests.append((trainer.history.timer.total_steps, test))
                show.line(
                    f"Epoch [{epoch + 1}/{epochs}], Loss: {loss:.4f}, Accuracy: {accuracy:.2f}%, Test: {test:.2f}%"
                )
                session.save(epoch + 1, model, optimizer, batches)
        if outputs is None:
            outputs = outputs_of(model, test_images)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(session.interrupted(epoch)) from None
    return trainer.history, outputs


def train_epoch(trainer: Trainer, name: str, show: Reporter) -> tuple[float, float]:
    """One epoch with its printed lines: mean loss and accuracy since its start. Ends early when the loss is NaN."""
    steps = trainer.steps_per_epoch
    since, done = len(trainer.history.losses), 0
    for mark in sorted({steps * k // LINES for k in range(1, LINES + 1)} - {0}):
        trainer.advance(mark - done, show)
        done = mark
        loss, accuracy = trainer.summary(since)
        show.line(f"{name}, Step [{mark}/{steps}], Loss: {loss:.4f}, Accuracy: {accuracy:.2f}%")
        if math.isnan(loss):
            break
    return loss, accuracy


def accuracy_of(outputs: np.ndarray, labels: np.ndarray) -> float:
    """Percent of right answers; an output that is not finite is no answer, whatever argmax says."""
    finite = np.isfinite(outputs).all(axis=1)
    return 100 * int(((outputs.argmax(axis=1) == labels) & finite).sum()) / len(labels)


def report(session: Session, model: Sequential, data: Data, history: History, outputs: np.ndarray) -> None:
    """The result: accuracy, a few digits in the terminal, picture and record. ExampleError for useless outputs."""
    bad = int((~np.isfinite(outputs).all(axis=1)).sum())
    accuracy = float("nan") if bad else accuracy_of(outputs, data.test_labels)
    losses = history.all_losses
    session.write_record(history, accuracy, float(losses[-1]) if len(losses) else None)
    if bad:
        raise ExampleError(
            f"the network's outputs are not finite (NaN or infinity) for {bad} of {len(outputs)} test images: "
            "there is no accuracy to report; try a smaller --lr"
        )
    print(f"Test Accuracy: {accuracy:.2f}%", flush=True)
    if history.timer.total_steps:
        seconds = history.timer.train_seconds
        print(f"Trained {history.timer.total_steps} steps in {seconds:.1f} s", flush=True)
    predicted = outputs.argmax(axis=1)
    draw_examples(data, predicted)
    if session.settings.plot is not None:
        from .plots import draw_mnist

        settings = session.settings
        title = f"{settings.dataset}, {session.title()}"
        draw_mnist(settings.plot, history, data, outputs, model.state_dict()["0.weight"], title)


def draw_examples(data: Data, predicted: np.ndarray) -> None:
    """The first test images, the last place kept for a wrong answer if there is one."""
    right = predicted == data.test_labels
    chosen = list(range(min(digits_in_a_row(), len(right))))
    mistakes = np.flatnonzero(~right)
    if len(mistakes) and mistakes[0] > chosen[-1]:
        chosen[-1] = int(mistakes[0])
    names = data.classes
    captions = [f"{names[predicted[i]]} (truth {names[data.test_labels[i]]})" for i in chosen]
    show_digits(data.test_images[chosen] / 255, captions, [bool(right[i]) for i in chosen])
