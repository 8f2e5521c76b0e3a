"""The compiled module's surface: what it refuses and how it says so, the interpreter lock, memory, silence at exit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from gradref import _kernels

from . import kernels
from .oracle import Conv, Pool, data

CONV = Conv(2, 3, (6, 5), 4, (3, 3), padding=(1, 1))
POOL = Pool((2, 3), (6, 8), (3, 4), (2, 2), (2, 2))


def conv_arrays() -> dict[str, np.ndarray]:
    return {
        "y": np.zeros(CONV.y_shape, np.float32),
        "x": data(CONV.x_shape, 0),
        "weight": data(CONV.weight_shape, 1),
        "bias": data((4,), 2),
    }


def call(arrays: dict[str, np.ndarray]) -> None:
    _kernels.conv2d(*arrays.values(), *CONV.options, False)


@pytest.mark.parametrize("name", ["y", "x", "weight", "bias"])
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "bool"])
def test_wrong_dtype(name: str, dtype: str) -> None:
    arrays = conv_arrays()
    arrays[name] = arrays[name].astype(dtype)
    with pytest.raises(TypeError, match=f"^conv2d: {name} must be float32, got {dtype}[0-9]*$"):
        call(arrays)


@pytest.mark.parametrize("name", ["y", "x", "weight"])
def test_wrong_layout(name: str) -> None:
    """Fortran order, every second column, reversed rows: refused, never copied (a copied output would be lost)."""
    for change in (np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2], lambda a: a[:, :, ::-1]):
        arrays = conv_arrays()
        arrays[name] = change(arrays[name])
        with pytest.raises(ValueError, match=f"^conv2d: {name} must be C-contiguous$"):
            call(arrays)


def test_strides_of_single_and_empty_axes_do_not_matter() -> None:
    s = Conv(1, 1, (5, 5), 1, (3, 3))
    x = np.lib.stride_tricks.as_strided(data(s.x_shape, 0), strides=(4, 4, 20, 4))
    kernels.conv2d(s, x, data(s.weight_shape, 1), None, False)
    empty = np.empty((0, 5, 5, 1), np.float32).transpose(0, 3, 2, 1)
    assert kernels.conv2d(Conv(0, 1, (5, 5), 1, (3, 3)), empty, data(s.weight_shape, 1), None, False).size == 0


def test_wrong_rank_and_shape() -> None:
    for name, shape, text in (
        ("x", (3, 6, 5), r"x must have 4 axes, got shape \(3, 6, 5\)"),
        ("bias", (4, 1), r"bias must have 1 axis, got shape \(4, 1\)"),
        ("bias", (5,), r"bias must have shape \(4,\), got \(5,\)"),
        ("weight", (4, 2, 3, 3), r"weight must have shape \(4, 3, 3, 3\), got \(4, 2, 3, 3\)"),
        ("y", (2, 4, 6, 6), r"y must have shape \(2, 4, 6, 5\), got \(2, 4, 6, 6\)"),
        ("weight", (4, 3, 9, 3), "kernel is larger than the padded input"),
        ("x", (2, 3, 0, 5), "only the batch may be empty"),
    ):
        arrays = conv_arrays()
        arrays[name] = np.zeros(shape, np.float32)
        with pytest.raises(ValueError, match=f"^conv2d: {text}$"):
            call(arrays)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (((0, 1), (1, 1), (1, 1), 1), "stride must be at least 1"),
        (((1, 1), (-1, 1), (1, 1), 1), "padding must not be negative"),
        (((1, 1), (1, 1), (1, 0), 1), "dilation must be at least 1"),
        (((1, 1), (1, 1), (1, 1), 2), "groups must divide both channel counts"),
        (((1, 1), (1, 1), (1, 1), 0), "groups must divide both channel counts"),
        (((1, 1), (2**30, 1), (1, 1), 1), "padding or dilation is too large"),
    ],
)
def test_wrong_options(options: tuple, text: str) -> None:
    with pytest.raises(ValueError, match=f"^conv2d: {text}$"):
        _kernels.conv2d(*conv_arrays().values(), *options, False)


def test_read_only_inputs_are_taken_and_read_only_outputs_are_not() -> None:
    arrays = conv_arrays()
    for name in ("x", "weight", "bias"):
        arrays[name].flags.writeable = False
    before = {name: a.tobytes() for name, a in arrays.items()}
    call(arrays)
    assert all(arrays[name].tobytes() == before[name] for name in ("x", "weight", "bias"))
    arrays["y"].flags.writeable = False
    with pytest.raises(TypeError):
        call(arrays)


def test_what_is_no_array_is_refused() -> None:
    for wrong in ([1.0], None, 3, "x", np.zeros(CONV.x_shape, ">f4")):
        with pytest.raises(TypeError):
            call(conv_arrays() | {"x": wrong})


def test_the_next_correct_call_works_after_an_error() -> None:
    with pytest.raises(TypeError):
        call(conv_arrays() | {"x": np.zeros(3)})
    call(conv_arrays())


def test_the_interpreter_lock_is_released() -> None:
    s = Conv(2, 16, (64, 64), 16, (3, 3), padding=(1, 1))
    x, weight = data(s.x_shape, 0), data(s.weight_shape, 1)
    ticks: list[float] = []
    done = threading.Event()

    def count() -> None:
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    kernels.conv2d(s, x, weight, None, True)
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = sum(begin < t < end for t in ticks)
    assert inside >= 3, f"{inside} ticks in {end - begin:.3f} s"


def test_threads_compute_what_one_does() -> None:
    def work(seed: int) -> list[bytes]:
        x, weight, grad = data(CONV.x_shape, seed), data(CONV.weight_shape, seed + 1), data(CONV.y_shape, seed + 2)
        results = []
        for _ in range(50):
            results.append(kernels.conv2d(CONV, x, weight, None, False).tobytes())
            results.append(kernels.conv2d_backward_input(CONV, grad, weight, False).tobytes())
            results.append(kernels.conv2d_backward_weight(CONV, grad, x, False).tobytes())
            results.append(kernels.max_pool2d(POOL, data(POOL.x_shape, seed), False)[1].tobytes())
        return results

    together: dict[int, list[bytes]] = {}
    threads = [threading.Thread(target=lambda i=i: together.update({i: work(i)})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == {i: work(i) for i in range(4)}


def test_a_thousand_calls_with_temporary_arrays() -> None:
    expected = kernels.conv2d(CONV, data(CONV.x_shape, 0), data(CONV.weight_shape, 1), None, False).tobytes()
    for _ in range(1000):
        y = np.empty(CONV.y_shape, np.float32)
        _kernels.conv2d(y, data(CONV.x_shape, 0), data(CONV.weight_shape, 1), None, *CONV.options, False)
        assert y.tobytes() == expected


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer keeps freed memory for a while")
def test_scratch_is_freed() -> None:
    resource = pytest.importorskip("resource")
    s = Conv(1, 8, (256, 256), 8, (3, 3), padding=(1, 1))  # 2 MB of scratch
    x, weight, grad = data(s.x_shape, 0), data(s.weight_shape, 1), data(s.y_shape, 2)

    def run(times: int) -> int:
        for _ in range(times):
            kernels.conv2d(s, x, weight, None, False)
            kernels.conv2d_backward_weight(s, grad, x, False)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(3)
    assert run(50) - before < 40_000  # kilobytes; 50 leaks would be 200,000


SCRIPT = """
import sys
import numpy as np
from gradref import _kernels
{imports}
class Model:
    def __init__(self):
        self.me = self                                  # a cycle
        self.kernel, self.weight = _kernels.conv2d, np.ones((2, 1, 3, 3), np.float32)
model = Model()                                         # a global
for _ in range(2):
    y = np.empty((1, 2, 4, 4), np.float32)
    model.kernel(y, np.ones((1, 1, 6, 6), np.float32), model.weight, None, (1, 1), (0, 0), (1, 1), 1, False)
assert (y == 9).all()
{end}
"""


@pytest.mark.parametrize("imports", ["", "from gradref.backend import RefBackend; backend = RefBackend()"])
def test_silent_at_exit(imports: str) -> None:
    """nanobind would list leaked functions on stderr."""
    fine = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(imports=imports, end="")], capture_output=True, text=True
    )
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "")
    end = "raise ZeroDivisionError('mine')"
    raised = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(imports=imports, end=end)], capture_output=True, text=True
    )
    assert raised.returncode == 1
    assert raised.stderr.startswith("Traceback")
    assert raised.stderr.endswith("ZeroDivisionError: mine\n")
