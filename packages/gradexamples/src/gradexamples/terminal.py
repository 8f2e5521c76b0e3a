"""What is drawn in the terminal: a progress bar, digits in half-blocks, probabilities as bars.

Piped output stays plain: no bar, no colour, one line at a time. One character cell shows two pixels, one above the
other ("\u2580" paints the upper one); a terminal with colours shows them in grey, others in black and white. Where the
output's encoding lacks the block characters, "#" and spaces take their place.
"""

import sys
import time
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

MARGIN = 3  # pixels at each side of a 28x28 digit that are nearly always empty
WIDTH = 28 - 2 * MARGIN  # columns of a drawn digit


class Reporter:
    """Lines of a training run, with a progress bar below them when stdout is a terminal.

    >>> with Reporter(total=10) as show:
    ...     show.line("Epoch [1/3]")
    Epoch [1/3]
    """

    def __init__(self, total: int, unit: str = "step") -> None:
        self.live = total > 0 and sys.stdout.isatty()
        if self.live:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn(f"{{task.completed:.0f}}/{{task.total:.0f}} {unit}s"),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                transient=True,
                expand=True,
            )
            self._task = self._progress.add_task("training", total=total, speed="")
        self._started = time.perf_counter()
        self._done = 0

    def __enter__(self) -> "Reporter":
        if self.live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self._progress.stop()

    def line(self, text: str) -> None:
        if self.live:
            # rich would take "[1/3]" for a style, and fold long lines.
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def advance(self, steps: int) -> None:
        if self.live:
            self._done += steps
            speed = self._done / (time.perf_counter() - self._started)
            self._progress.update(self._task, advance=steps, speed=f"{speed:,.0f}/s")


def show_digits(images: np.ndarray, captions: list[str], right: list[bool], console: Console | None = None) -> None:
    """Draw images (N, 28, 28) of values 0..1 side by side, each above its caption."""
    console = console or Console(highlight=False)
    drawings = [digit_lines(image, console) for image in images]
    for cells in zip(*drawings, strict=True):
        console.print(Text("  ").join(cells), soft_wrap=True)
    names = [
        Text(caption[:WIDTH].center(WIDTH), style="" if good else "bold red")
        for caption, good in zip(captions, right, strict=True)
    ]
    console.print(Text("  ").join(names), soft_wrap=True)


def digits_in_a_row(most: int = 6) -> int:
    """How many digits fit side by side."""
    return max(1, min(most, (Console().width + 2) // (WIDTH + 2)))


def digit_lines(image: np.ndarray, console: Console) -> list[Text]:
    """One image (28, 28) of values 0..1 as lines of text, two pixel rows a line, without the empty margin."""
    pixels = np.clip(image[MARGIN:-MARGIN, MARGIN:-MARGIN], 0, 1)
    upper, lower = pixels[0::2], pixels[1::2]
    if console.color_system is not None and encodes(console, "\u2580"):
        return [_grey_line(a, b) for a, b in zip(upper, lower, strict=True)]
    # first the lower pixel, then the upper: none, lower, upper, both
    glyphs = " \u2584\u2580\u2588" if encodes(console, "\u2580\u2584\u2588") else " .'#"
    codes = (lower > 0.4).astype(int) + 2 * (upper > 0.4).astype(int)
    return [Text("".join(glyphs[code] for code in row)) for row in codes]


def _grey_line(upper: np.ndarray, lower: np.ndarray) -> Text:
    line = Text()
    for a, b in zip((upper * 255).astype(int), (lower * 255).astype(int), strict=True):
        line.append("\u2580", style=f"rgb({a},{a},{a}) on rgb({b},{b},{b})")
    return line


def show_bars(probabilities: np.ndarray, names: tuple[str, ...], console: Console | None = None) -> None:
    """A bar chart of one prediction, the most probable class highlighted."""
    console = console or Console(highlight=False)
    space = max(10, min(40, console.width - 20))
    full, parts = ("\u2588", " \u258f\u258e\u258d\u258c\u258b\u258a\u2589")
    if not encodes(console, full + parts):
        full, parts = "#", " "
    best, label = int(probabilities.argmax()), max(map(len, names))
    for index, (name, p) in enumerate(zip(names, probabilities, strict=True)):
        whole, rest = divmod(round(float(p) * space * len(parts)), len(parts))
        bar = full * whole + (parts[rest] if rest else "")
        line = Text(f"{name:>{label}} {100 * p:6.2f}% ", style="bold" if index == best else "")
        line.append(bar, style="green" if index == best else "blue")
        console.print(line, soft_wrap=True)


def encodes(console: Console, text: str) -> bool:
    """Whether the console's output can carry these characters."""
    try:
        text.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
