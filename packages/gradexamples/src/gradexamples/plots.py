"""What --plot draws: how the training went, what the network gets wrong, and what its first layer looks for.

matplotlib is imported here only, with its Agg canvas: no window system is needed. Every drawing function takes the
run's figures as arrays and writes one file.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import Rectangle

from .errors import ExampleError
from .mnist_data import Data
from .report import History

INK = "#22303c"
MUTED = "#7b8794"
GRID = "#e4e8ec"
BLUE = "#2a6f97"
PALE = "#bcd5e5"
GREEN = "#3a7d44"
RED = "#c8402f"
PAPER = "#ffffff"
DIVERGING = LinearSegmentedColormap.from_list("filters", [RED, "#f7f3ee", BLUE])

ROWS, COLUMNS = 5, 10  # the grid of predictions
MISTAKES = 15  # of its places, at most, for wrong answers


def draw_mnist(path: Path, history: History, data: Data, outputs: np.ndarray, filters: np.ndarray, title: str) -> None:
    """Curves above; below them a grid of predictions, wrong ones marked, and the first layer's filters."""
    figure = _figure(12, 9.2)
    predicted = outputs.argmax(axis=1)
    accuracy = 100 * float((predicted == data.test_labels).mean())
    figure.text(0.045, 0.955, f"{accuracy:.2f} % of the test images recognised", size=17, color=INK, weight="bold")
    figure.text(0.045, 0.927, title, size=10.5, color=MUTED)
    curves = figure.add_gridspec(1, 2, left=0.07, right=0.965, top=0.87, bottom=0.575, wspace=0.16)
    _loss_curve(figure.add_subplot(curves[0]), history.all_losses)
    _accuracy_curve(figure.add_subplot(curves[1]), history)
    below = figure.add_gridspec(
        1, 2, left=0.045, right=0.965, top=0.465, bottom=0.03, width_ratios=[1.75, 1], wspace=0.1
    )
    _prediction_grid(figure, below[0], data, predicted)
    _filter_grid(figure, below[1], np.asarray(filters))
    _save(figure, path)


def draw_xor(
    path: Path, history: History, surface: np.ndarray, weights: np.ndarray, bias: np.ndarray, title: str
) -> None:
    """The loss; what the network answers between the four points; the line that each hidden unit draws.

    surface: answers (R, R) over -0.5..1.5 squared, row = second input; weights (HIDDEN, 2), bias (HIDDEN,).
    """
    figure = _figure(13, 4.6)
    figure.text(0.045, 0.92, "XOR with two layers", size=17, color=INK, weight="bold")
    figure.text(0.045, 0.865, title, size=10.5, color=MUTED)
    spec = figure.add_gridspec(
        1, 3, left=0.06, right=0.98, top=0.74, bottom=0.13, wspace=0.24, width_ratios=[1.35, 1, 1]
    )
    _loss_curve(figure.add_subplot(spec[0]), history.all_losses, floor=1e-9, smooth=False)
    _answer_surface(figure.add_subplot(spec[1]), surface)
    _hidden_lines(figure.add_subplot(spec[2]), weights, bias)
    _save(figure, path)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=120, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path)
    except OSError as error:
        raise ExampleError(f"{path}: cannot be written ({error.strerror})") from error


def _style(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", size=11.5, color=INK, pad=9, weight="bold")
    axes.tick_params(colors=MUTED, labelsize=9, length=0, which="both")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(MUTED)


def _nothing_yet(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no training steps in this run", transform=axes.transAxes, ha="center", color=MUTED)


def _loss_curve(axes: Axes, losses: np.ndarray, floor: float = 1e-4, smooth: bool = True) -> None:
    _style(axes, "Loss of each step")
    if not len(losses):
        return _nothing_yet(axes)
    shown = np.maximum(losses.astype(np.float64), floor)  # a loss of exactly 0 has no place on a logarithmic axis
    steps = np.arange(1, len(shown) + 1)
    window = max(1, len(shown) // 60) if smooth else 1
    mean = _running_mean(shown, window)
    if window > 1:
        axes.plot(steps, shown, color=PALE, linewidth=0.5)
    axes.plot(steps[window - 1 :], mean, color=BLUE, linewidth=1.8)
    axes.set_yscale("log")
    if window > 1:
        low, high = np.quantile(shown, [0.01, 1.0])  # a few lucky batches must not squeeze the rest
        axes.set_ylim(low * 0.7, high * 1.4)
    axes.margins(x=0.01)
    axes.set_xlabel("step", color=MUTED, size=9)
    note = f"mean of {window} steps, at the end {mean[-1]:.2g}" if window > 1 else f"at the end {mean[-1]:.2g}"
    axes.text(0.985, 0.92, note, transform=axes.transAxes, ha="right", color=BLUE, size=9.5)
    return None


def _accuracy_curve(axes: Axes, history: History) -> None:
    _style(axes, "Accuracy")
    right = history.all_right
    if not len(right):
        return _nothing_yet(axes)
    window = max(1, len(right) // 60)
    curve = 100 * _running_mean(right, window) / _running_mean(np.concatenate(history.seen), window)
    axes.plot(np.arange(window, len(right) + 1), curve, color=BLUE, linewidth=1.3, alpha=0.75)
    axes.text(0.985, 0.12, "training, before each step", transform=axes.transAxes, ha="right", color=BLUE, size=9.5)
    if history.tests:
        steps, tests = zip(*history.tests, strict=True)
        axes.plot(
            steps, tests, color=GREEN, linewidth=1.4, marker="o", markersize=7, markeredgecolor=PAPER, clip_on=False
        )
        axes.text(0.985, 0.04, "test, after each epoch", transform=axes.transAxes, ha="right", color=GREEN, size=9.5)
        for number, (step, test) in enumerate(history.tests, start=1):
            last = number == len(tests)
            if last or len(tests) <= 6:
                axes.annotate(
                    f"{test:.2f} %", (step, test), xytext=(0, 9), textcoords="offset points",
                    ha="right" if last else "center", color=GREEN, size=9.5, weight="bold",
                )  # fmt: skip
    # Most of the story is between 90 and 100; the first steps may fall below the picture.
    low = float(np.quantile(curve, 0.04))
    bottom = max(0.0, min(low, 95.0) - 3)
    axes.set_ylim(bottom, 100 + 0.12 * (100 - bottom))  # room for the labels above the last points
    axes.set_yticks([tick for tick in axes.get_yticks() if bottom <= tick <= 100])
    axes.margins(x=0.01)
    axes.yaxis.set_major_formatter("{x:.0f} %")
    axes.set_xlabel("step", color=MUTED, size=9)
    return None


def _running_mean(values: np.ndarray, window: int) -> np.ndarray:
    total = np.cumsum(np.concatenate([[0.0], values.astype(np.float64)]))
    return (total[window:] - total[:-window]) / window


def _heading(figure: Figure, spec: SubplotSpec, title: str, note: str) -> None:
    """An empty pair of axes over a whole part of the figure, for its title."""
    axes = figure.add_subplot(spec)
    axes.axis("off")
    axes.set_title(title, loc="left", size=11.5, color=INK, pad=22, weight="bold")
    axes.set_title(note, loc="right", size=9.5, color=MUTED, pad=22)


def _prediction_grid(figure: Figure, spec: SubplotSpec, data: Data, predicted: np.ndarray) -> None:
    """Test images with the answer; a wrong one in a red frame, as answer and truth."""
    wrong = np.flatnonzero(predicted != data.test_labels)
    right = np.flatnonzero(predicted == data.test_labels)
    places = ROWS * COLUMNS
    mistakes = _spread(wrong, max(MISTAKES, places - len(right)))
    chosen = np.sort(np.concatenate([mistakes, _spread(right, places - len(mistakes))]))
    note = f"{len(wrong)} of {len(predicted)} wrong; {len(mistakes)} of them here"
    _heading(figure, spec, "Predictions", note)
    grid = spec.subgridspec(ROWS, COLUMNS, hspace=0.5, wspace=0.12)
    for place, index in enumerate(chosen):
        axes = figure.add_subplot(grid[place])
        axes.imshow(data.test_images[index], cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
        axes.axis("off")
        answer, truth = data.classes[predicted[index]], data.classes[data.test_labels[index]]
        if answer == truth:
            axes.set_title(answer, size=8.5, color=MUTED, pad=2.5)
            continue
        axes.set_title(f"{answer}, not {truth}"[:18], size=8.5, color=RED, pad=2.5, weight="bold")
        frame = Rectangle(
            (0, 0), 1, 1, transform=axes.transAxes, fill=False, edgecolor=RED, linewidth=1.8, clip_on=False
        )
        axes.add_patch(frame)


def _spread(indices: np.ndarray, count: int) -> np.ndarray:
    """At most `count` of the indices, evenly taken from all of them."""
    if len(indices) <= count:
        return indices
    return indices[np.linspace(0, len(indices) - 1, count).astype(int)]


def _filter_grid(figure: Figure, spec: SubplotSpec, filters: np.ndarray) -> None:
    """Each filter (1, KH, KW) of the first layer; blue adds light, red takes it away."""
    _heading(figure, spec, "First layer's filters", "red below 0, blue above")
    side = int(np.ceil(np.sqrt(len(filters))))
    grid = spec.subgridspec(-(-len(filters) // side), side, hspace=0.12, wspace=0.12)
    limit = float(np.abs(filters).max())
    for place, kernel in enumerate(filters):
        axes = figure.add_subplot(grid[place])
        axes.imshow(kernel[0], cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(GRID)


def _answer_surface(axes: Axes, surface: np.ndarray) -> None:
    _style(axes, "The network's answer")
    axes.grid(False)
    axes.imshow(
        surface, origin="lower", extent=(-0.5, 1.5, -0.5, 1.5), cmap=DIVERGING, vmin=0, vmax=1, interpolation="bilinear"
    )
    size = len(surface)
    ticks = np.linspace(-0.5, 1.5, size)
    axes.contour(ticks, ticks, surface, levels=[0.5], colors=INK, linewidths=1, linestyles="dashed")
    _four_points(axes)


def _hidden_lines(axes: Axes, weights: np.ndarray, bias: np.ndarray) -> None:
    """Each hidden unit is 0 along one line; the output combines them."""
    _style(axes, "Where each hidden unit is 0")
    axes.grid(False)
    x = np.array([-0.5, 1.5])
    strength = np.hypot(weights[:, 0], weights[:, 1])
    for (a, b), c, s in zip(weights, bias, strength / strength.max(), strict=True):
        if abs(b) > abs(a):
            axes.plot(x, -(a * x + c) / b, color=BLUE, linewidth=0.6 + 2 * s, alpha=0.25 + 0.6 * s)
        else:
            axes.plot(-(b * x + c) / a, x, color=BLUE, linewidth=0.6 + 2 * s, alpha=0.25 + 0.6 * s)
    axes.set_xlim(-0.5, 1.5)
    axes.set_ylim(-0.5, 1.5)
    axes.set_aspect("equal")
    _four_points(axes)


def _four_points(axes: Axes) -> None:
    for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        one = x != y
        axes.plot(x, y, "o", markersize=13, color=BLUE if one else RED, markeredgecolor=PAPER, markeredgewidth=1.8)
        axes.annotate(str(int(one)), (x, y), ha="center", va="center", color=PAPER, size=8, weight="bold")
    axes.set_xticks([0, 1])
    axes.set_yticks([0, 1])
