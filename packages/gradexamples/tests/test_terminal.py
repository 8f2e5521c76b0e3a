"""Drawing in the terminal: with colours, without, and where the encoding has no blocks."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console

from gradexamples import terminal
from gradexamples.terminal import Reporter, digit_lines, show_bars, show_digits

NAMES = tuple("0123456789")


def console(encoding: str = "utf-8", colour: bool = False, width: int = 80) -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    return Console(
        file=file, width=width, force_terminal=colour, color_system="truecolor" if colour else None, highlight=False
    )


def written(to: Console) -> str:
    to.file.flush()
    return to.file.buffer.getvalue().decode(to.file.encoding)  # type: ignore[attr-defined]


@pytest.fixture
def image() -> np.ndarray:
    """A 7: a bar on top and a slanted stroke."""
    picture = np.zeros((28, 28))
    picture[6:8, 8:20] = 1
    for row in range(8, 22):
        picture[row, 19 - (row - 8) // 2] = 1
    return picture


def test_blocks_show_the_pixels(image: np.ndarray) -> None:
    lines = [line.plain for line in digit_lines(image, console())]
    assert len(lines) == 11
    assert {len(line) for line in lines} == {22}
    pixels = image[3:-3, 3:-3]
    for row, line in enumerate(lines):
        for column, glyph in enumerate(line):
            upper, lower = pixels[2 * row, column] > 0, pixels[2 * row + 1, column] > 0
            assert glyph == {(0, 0): " ", (0, 1): "▄", (1, 0): "▀", (1, 1): "█"}[int(upper), int(lower)]


def test_side_by_side_with_captions(image: np.ndarray) -> None:
    out = console()
    show_digits(np.stack([image, image]), ["7 (truth 7)", "1 (truth 7)"], [True, False], out)
    lines = written(out).splitlines()
    assert len(lines) == 12
    assert "7 (truth 7)" in lines[-1]
    assert "1 (truth 7)" in lines[-1]
    assert "\x1b" not in written(out)


def test_grey_in_colour(image: np.ndarray) -> None:
    out = console(colour=True)
    show_digits(image[np.newaxis] / 2, ["7"], [False], out)
    assert "38;2;127;127;127" in written(out)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_where_blocks_cannot_be_written(encoding: str, image: np.ndarray) -> None:
    out = console(encoding)
    show_digits(image[np.newaxis], ["7"], [True], out)
    show_bars(np.full(10, 0.1), NAMES, out)
    assert "#" in written(out)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_bars_fit_and_are_in_proportion(width: int) -> None:
    out = console(width=width)
    probabilities = np.array([0.5, 0.25, 0.125, 0.125, 0, 0, 0, 0, 0, 0])
    show_bars(probabilities, NAMES, out)
    lines = written(out).splitlines()
    assert len(lines) == 10
    assert "50.00%" in lines[0]
    bars = [line.count("█") for line in lines]
    assert bars[0] == pytest.approx(2 * bars[1], abs=1)
    assert bars[4] == 0
    assert max(map(len, lines)) <= max(width, 24)


def test_digits_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, fitting in ((10, 1), (80, 3), (120, 5), (500, 6)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert terminal.digits_in_a_row() == fitting


def test_plain_lines_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(total=10) as show:
        show.line("Epoch [1/3]")
        show.advance(5)
    assert capsys.readouterr().out == "Epoch [1/3]\n"


def test_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    with Reporter(total=10) as show:
        show.advance(5)
        show.line("Epoch [1/3], Step [187/938], " + "x" * 100)
        show.advance(5)
    text = screen.getvalue()
    assert "Epoch [1/3], Step [187/938], " + "x" * 100 in text, "no style, no fold"
    assert "10/10 steps" in text
    assert text.rstrip().endswith("\x1b[2K") or "\x1b[?25h" in text, "the cursor is back"


def test_no_bar_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert not Reporter(total=0).live
