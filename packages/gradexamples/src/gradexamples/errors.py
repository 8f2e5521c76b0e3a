"""What the user is told in one line instead of a traceback.

An ExampleError's text names the file or option and says what to do. __main__.py prints it and exits with
`code`: 1 when something outside is wrong (data, checkpoint, backend), 2 when the command line is.
"""


class ExampleError(Exception):
    """A run that cannot go on, with the line to print and the exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class DataError(ExampleError):
    """Data files that are missing, cut, or not what their header says."""


def one_line(error: BaseException) -> str:
    """The text of an error on a single line; its class name when it has no text."""
    return " ".join(str(error).split()) or type(error).__name__
