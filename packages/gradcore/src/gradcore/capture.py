"""capture: a training loop as one object, whose steps a backend may record once and replay.

    def step(images, labels):
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    loop = gradcore.capture(step, batches)
    losses = loop.run(len(batches))         # one epoch; float32 (n,), read back once

On a backend with GraphCapture the first step of each batch size is made as it is, the second recorded, and the others
are replayed without Python: what the step does outside of the backend (printing, counting, drawing NumPy numbers)
happens in those two calls only, and what outlives a step must change in place, as parameters, buffers and optimizers
do. The learning rate lies in backend memory, so a change takes effect. Other options (momentum, train or eval, a
dropout's p) belong to the recording: change one between two runs, and the loop records anew. float(), numpy() and new
tensors from host data inside a recorded step are errors. Results stay in backend memory until run returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from gradcore.backend.base import BaseBackend
from gradcore.backend.protocol import Graph, GraphCapture
from gradcore.convert import whole_number
from gradcore.data import Batches
from gradcore.errors import BackendMismatch, ShapeError
from gradcore.nn.attributes import walk
from gradcore.nn.layer import Layer
from gradcore.optim.optimizer import Optimizer
from gradcore.tensor import Tensor

Step = Callable[[Tensor, Tensor], Any]
CAPACITY = 1024  # results kept on the backend before they are read


class Loop:
    """Calls the step on one batch after the other. The step returns one number, or a tuple of them, as tensors.

    graph: record and replay where the backend can; False makes every step as it is. Both give the same bits.
    """

    def __init__(self, step: Step, batches: Batches, graph: bool = True) -> None:
        self.step = step
        self.batches = batches
        self._recorder = batches.backend if graph and isinstance(batches.backend, GraphCapture) else None
        self._warm: set[Any] = set()  # kinds of steps that were made once; a kind is (rows, settings)
        self._graphs: dict[Any, tuple[Graph, Results]] = {}
        self._results: dict[Any, Results] = {}
        self._running: Results | None = None  # of the run in progress

    @property
    def recorded(self) -> bool:
        """Whether steps are recorded and replayed."""
        return self._recorder is not None

    def run(self, steps: int) -> Any:
        """Make `steps` steps; returns their results as an array (steps,), or a tuple of arrays if each is a tuple."""
        left = whole_number("capture", "the number of steps", steps, 0)
        if left == 0:
            return np.zeros(0, np.float32)
        settings = tuple(_settings(self.step)) if self._recorder is not None else ()
        parts: list[list[np.ndarray]] = []
        self._running = None
        while left:
            count = min(left, CAPACITY)
            if self._running is not None:
                self._running.rewind()
            for _ in range(count):
                results = self._one(settings)
            parts.append(results.read(count))
            left -= count
        columns = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        return columns if results.is_tuple else columns[0]

    def _one(self, settings: tuple[Any, ...]) -> Results:
        """One step, as it is or replayed; returns where its results went."""
        rows = self.batches.advance()
        kind = (rows, settings)
        if self._recorder is None or kind not in self._warm:
            results = self._make(rows)
            self._warm.add(kind)
            return results
        if kind not in self._graphs:
            self._graphs[kind] = self._record(self._recorder, rows)
        graph, results = self._graphs[kind]
        self._use(results)
        graph.replay()
        return results

    def _make(self, rows: int) -> Results:
        """One step as it is."""
        values, key = self._checked(self.step(*self.batches.gather(rows)))
        if key not in self._results:
            self._results[key] = Results(self.batches.backend, *key)
        results = self._results[key]
        self._use(results)
        results.append(values)
        return results

    def _record(self, recorder: GraphCapture, rows: int) -> tuple[Graph, Results]:
        """The same as a graph; the backend executes nothing of it yet."""
        found: list[Results] = []

        def once() -> None:
            values, key = self._checked(self.step(*self.batches.gather(rows)))
            if key not in self._results:
                raise ShapeError("capture: the step must return the same kind of result each time")
            self._results[key].append(values)
            found.append(self._results[key])

        try:
            return recorder.capture_graph(once), found[0]
        except BaseException:
            self.batches.cursor -= rows  # this batch was not read
            raise

    def _use(self, results: Results) -> None:
        """Say that the coming result goes there."""
        if self._running is None:
            results.rewind()
            self._running = results
        elif results is not self._running:
            raise ShapeError("capture: the step must return the same kind of result each time")

    def _checked(self, result: Any) -> tuple[tuple[Tensor, ...], tuple[bool, tuple[Any, ...]]]:
        """(the numbers, what kind of result it is)."""
        back = self.batches.backend
        is_tuple = isinstance(result, tuple) and len(result) > 0
        values = result if is_tuple else (result,)
        for value in values:
            if not isinstance(value, Tensor) or value.size != 1:
                what = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
                raise ShapeError(
                    f"capture: the step must return one number as a tensor (or a tuple of them), got {what}"
                )
            if value.backend is not back:
                raise BackendMismatch(
                    f"capture: the batches live on {back.name!r}, the step returned a tensor on {value.backend.name!r}"
                )
        return values, (is_tuple, tuple(value.dtype for value in values))


class Results:
    """The numbers of up to CAPACITY steps in backend memory, each at its place: a graph finds it there by a cursor."""

    def __init__(self, backend: BaseBackend, is_tuple: bool, dtypes: tuple[Any, ...]) -> None:
        self.is_tuple = is_tuple
        self._backend = backend
        self._zero = backend.full((), 0, np.int64)
        self._columns = [(backend.full((CAPACITY,), 0, d), backend.full((), 0, np.int64)) for d in dtypes]

    def rewind(self) -> None:
        for _, cursor in self._columns:
            self._backend.copy_(cursor, self._zero)

    def append(self, values: tuple[Tensor, ...]) -> None:
        for (buffer, cursor), value in zip(self._columns, values, strict=True):
            self._backend.append_(buffer, cursor, value._array)

    def read(self, count: int) -> list[np.ndarray]:
        """The first `count` numbers of each column; waits for them."""
        return [np.array(self._backend.to_numpy(buffer)[:count]) for buffer, _ in self._columns]


def capture(step: Step, batches: Batches, graph: bool = True) -> Loop:
    """A loop over `step(images, labels)`; see the module's text. graph=False: no recording."""
    return Loop(step, batches, graph)


# What a recording fixes: the options of the layers and optimizers that the step can reach. The walk follows the
# variables of functions and the direct attributes of objects, which covers closures, methods and small classes.


def _settings(step: Step) -> Iterator[Any]:
    seen: set[int] = set()
    waiting: list[Any] = [step]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType):
            continue
        seen.add(id(thing))
        if isinstance(thing, Layer):
            for _, layer in walk(thing):
                yield id(layer), layer.training, _options(layer)
        elif isinstance(thing, Optimizer):
            yield id(thing), _options(thing)
        elif isinstance(thing, FunctionType):
            waiting += _variables(thing)
        elif isinstance(thing, MethodType):
            waiting += [thing.__func__, thing.__self__]
        else:
            held = vars(thing).values() if hasattr(thing, "__dict__") else ()
            waiting += [one for one in held if isinstance(one, Layer | Optimizer | FunctionType | MethodType)]


def _variables(function: FunctionType) -> Iterator[Any]:
    """What a function's free and global names stand for; gradcore's own functions hold no settings."""
    if function.__module__.partition(".")[0] == __package__:
        return
    names = function.__globals__
    yield from [names[name] for name in function.__code__.co_names if name in names]
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _options(owner: Any) -> tuple[tuple[str, Any], ...]:
    """Public attributes that are numbers, flags, text or tuples of them; the learning rate is not among them."""
    return tuple(
        (name, value)
        for name, value in vars(owner).items()
        if name[0] != "_" and name != "training" and all(isinstance(one, _PLAIN) for one in _items(value))
    )


def _items(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


_PLAIN = (int, float, str, type(None))
