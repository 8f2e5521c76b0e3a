"""XOR: the smallest problem that one layer cannot solve, and two can.

`network` and the loop in `train` are the whole example. Eight tanh units and a sigmoid output, trained with Adam on
all four points at once, get below a loss of 1e-4 from every seed tried (0 to 199).
Next: xor_by_hand.py, the same network with every derivative written out.
"""

import math

import numpy as np

import gradcore
from gradcore import Tensor
from gradcore.data import Batches
from gradcore.nn import Linear, MSELoss, Sequential, Sigmoid, Tanh

from .errors import ExampleError
from .options import Settings
from .session import Session
from .terminal import Reporter
from .training import STEPS, Trainer, outputs_of

POINTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
TARGETS = np.array([[0], [1], [1], [0]], dtype=np.float32)
HIDDEN = 8
RATES = {"adam": 0.1, "adamw": 0.1, "sgd": 0.5}
LINES = 10  # printed lines a run, at most


def network() -> Sequential:
    """Points (N, 2) -> the probability that exactly one of the two is 1 (N, 1)."""
    return Sequential(Linear(2, HIDDEN), Tanh(), Linear(HIDDEN, 1), Sigmoid())


def count_right(output: Tensor, target: Tensor) -> Tensor:
    return ((output > 0.5) == (target > 0.5)).astype("float32").sum()


def run(settings: Settings) -> None:
    """The whole command: train, print the four predictions, draw, record."""
    session = Session("xor", settings, network, len(POINTS), RATES)
    with gradcore.use_backend(session.backend):
        gradcore.manual_seed(session.seed)
        model = network()
        print(session.header(model), flush=True)
        trainer = train(session, model)
        outputs = outputs_of(model, POINTS)
        final_loss = float(((outputs - TARGETS).astype(np.float64) ** 2).mean())
        finite = bool(np.isfinite(outputs).all())
        accuracy = 100 * float(((outputs > 0.5) == (TARGETS > 0.5)).mean()) if finite else math.nan
        for point, output, target in zip(POINTS.tolist(), outputs[:, 0], TARGETS[:, 0], strict=True):
            print(f"{point} => {output:.4f} ({target:.1f})")
        print(f"Final Loss: {final_loss:.6f}", flush=True)
        session.write_record(trainer.history, accuracy, final_loss)
        if not finite:
            raise ExampleError("the network's outputs are not finite (NaN or infinity); try a smaller --lr")
        if settings.plot is not None:
            draw(session, model, trainer)


def train(session: Session, model: Sequential) -> Trainer:
    """Train up to the asked number of epochs. Saved at the printed lines: an epoch is shorter than a save."""
    optimizer = session.make_optimizer(model)
    size = min(session.batch_size, len(POINTS))
    batches = Batches(POINTS, TARGETS, size, session.seed, shuffle=size < len(POINTS))
    session.restore(model, optimizer, batches)
    step = STEPS[session.settings.loop](model, MSELoss(), optimizer, count_right)
    trainer = Trainer(step, batches, len(POINTS), size, session.settings.graph)
    first, epochs = session.epoch, session.settings.epochs
    every = max(1, -(-epochs // LINES))
    done = first
    try:
        with Reporter(total=max(0, epochs - first) * len(batches)) as show:
            while done < epochs:
                mark = min(epochs, (done // every + 1) * every)
                trainer.advance((mark - done) * len(batches), show)
                done = mark
                loss = float(trainer.history.losses[-1][-1])
                show.line(f"Epoch [{done}/{epochs}], Loss: {loss:.6f}")
                if math.isnan(loss):
                    show.line("The loss is not a number any more: the training stops here. Try a smaller --lr.")
                    break
                session.save(done, model, optimizer, batches)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(session.interrupted(done)) from None
    return trainer


def draw(session: Session, model: Sequential, trainer: Trainer) -> None:
    """The loss, the answers between the four points, and the lines of the hidden units."""
    from .plots import draw_xor

    axis = np.linspace(-0.5, 1.5, 81, dtype=np.float32)
    first, second = np.meshgrid(axis, axis)
    surface = outputs_of(model, np.stack([first.ravel(), second.ravel()], axis=1)).reshape(first.shape)
    weights, bias = (np.asarray(parameter.numpy()) for parameter in list(model.parameters())[:2])
    draw_xor(session.settings.plot, trainer.history, surface, weights, bias, session.title())
