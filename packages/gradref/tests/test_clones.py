"""Each instruction set by itself: the loader shows a test machine only its own clone of every kernel.

The C files are compiled once for each instruction set, with the flags of CMakeLists.txt, and called through ctypes.
Needs the source tree and a C compiler; sets that this CPU lacks are skipped.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from . import oracle
from .oracle import Conv, Pool, assert_same, data
from .shapes import CONVS, FUSED, INF, NAN, POOLS

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = sorted((PACKAGE / "csrc").glob("*.c"))
COMPILER = shutil.which(os.environ.get("CC", "cc"))
NEEDS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "fma", "bmi2"},
    "x86-64": set(),
}

pytestmark = pytest.mark.skipif(not SOURCES or not COMPILER, reason="needs the C sources and a C compiler")


def cpu_flags() -> set[str]:
    info = Path("/proc/cpuinfo")
    found = re.search(r"^flags\s*:(.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return set(found[1].split()) if found else set()


@pytest.fixture(scope="module", params=NEEDS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not cpu_flags() or NEEDS[request.param] - cpu_flags():
        pytest.skip(f"this CPU does not run {request.param}")
    flags = re.search(r"foreach\(flag (.*)\)", (PACKAGE / "CMakeLists.txt").read_text())
    assert flags
    target = tmp_path_factory.mktemp("clones") / "kernels.so"
    command = [COMPILER, "-std=gnu11", *flags[1].split(), "-fPIC", "-shared", f"-DGRADREF_FORCE_ARCH={request.param}"]
    built = subprocess.run([*command, "-o", target, *SOURCES, "-lm"], capture_output=True, text=True)
    if "unrecognized" in built.stderr or "unknown argument" in built.stderr:
        pytest.skip("this compiler lacks one of the flags")
    assert built.returncode == 0, built.stderr
    return ctypes.CDLL(str(target))


def struct(sizes: tuple[int, ...]) -> ctypes.Array:
    return (ctypes.c_int64 * len(sizes))(*sizes)


Argument = np.ndarray | int | float | tuple[int, ...] | None


def convert(a: Argument) -> ctypes._SimpleCData | ctypes.Array | None:
    """A tuple becomes the struct of sizes."""
    if isinstance(a, np.ndarray):
        return ctypes.c_void_p(a.ctypes.data)
    if isinstance(a, tuple):
        return struct(a)
    return a if a is None else ctypes.c_float(a) if isinstance(a, float) else ctypes.c_int64(a)


def run(library: ctypes.CDLL, name: str, *arguments: Argument) -> None:
    """Call a kernel; one that needs a workspace gets it as the last argument."""
    converted = [convert(a) for a in arguments]
    family = re.sub("(?<=pool2d_backward)_(input|weight)$", "", name)
    family = "linear" if family.startswith("linear") else family
    if name.endswith("_bias") or not hasattr(library, f"gradref_{family}_workspace"):
        library[f"gradref_{name}"](*converted)
        return
    workspace = library[f"gradref_{family}_workspace"]
    workspace.restype = ctypes.c_int64
    first = next(i for i, a in enumerate(arguments) if isinstance(a, tuple | int))
    scratch = np.full(
        workspace(*converted[first:]) + 32, NAN, np.float32
    )  # NaN: what is read before it is written shows
    start = -scratch.ctypes.data // 4 % 16
    scratch[-16:] = 77
    library[f"gradref_{name}"](*converted, ctypes.c_void_p(scratch.ctypes.data + 4 * start))
    assert (scratch[-16:] == 77).all(), "wrote past its workspace"


def conv_sizes(s: Conv) -> tuple[int, ...]:
    channels = s.weight_shape[0]
    return *s.x_shape, channels, *s.kernel, *s.y_shape[2:], *s.stride, *s.padding, *s.dilation, s.groups


def pool_sizes(s: Pool) -> tuple[int, ...]:
    return s.planes[0] * s.planes[1], *s.size, *s.kernel, *s.out, *s.stride, *s.padding, *s.dilation


@pytest.mark.parametrize("spoilt", [False, True], ids=["finite", "infinities and NaN"])
@pytest.mark.parametrize("name", CONVS)
def test_conv2d(library: ctypes.CDLL, name: str, spoilt: bool) -> None:
    s = CONVS[name]
    spoil = (INF, -INF, NAN) if spoilt else ()
    x, grad, weight, bias = (
        data(s.x_shape, 0, spoil),
        data(s.y_shape, 2),
        data(s.weight_shape, 1),
        data((s.y_shape[1],), 3),
    )
    y, dx, dw = (np.full(shape, 5, np.float32) for shape in (s.y_shape, s.x_shape, s.weight_shape))
    run(library, "conv2d", y, x, weight, bias, conv_sizes(s))
    assert_same(y, oracle.conv2d(s, x, weight, bias), 20)
    run(library, "conv2d_backward_weight", dw, grad, x, conv_sizes(s))
    assert_same(dw, oracle.conv2d_backward_weight(s, grad, x), 80)
    weight = data(s.weight_shape, 1, spoil)
    run(library, "conv2d_backward_input", dx, grad, weight, conv_sizes(s))
    assert_same(dx, oracle.conv2d_backward_input(s, grad, weight), 20)


def test_no_cliff(library: ctypes.CDLL) -> None:
    """The tiles must live in registers: where the compiler fails to see that, they run at the speed of plain loops."""
    s = Conv(2, 32, (28, 28), 32, (3, 3), padding=(1, 1))
    x, weight, grad = data(s.x_shape, 0), data(s.weight_shape, 1), data(s.y_shape, 2)
    y, dx, dw = (np.empty(shape, np.float32) for shape in (s.y_shape, s.x_shape, s.weight_shape))

    def best(name: str, *arguments: np.ndarray | tuple[int, ...] | None) -> float:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            run(library, name, *arguments)
            times.append(time.perf_counter() - begin)
        return min(times)

    begin = time.perf_counter()
    library.gradref_conv2d_reference(
        *(ctypes.c_void_p(a.ctypes.data) for a in (y, x, weight)), None, struct(conv_sizes(s))
    )
    plain = time.perf_counter() - begin
    for name, arrays in (
        ("conv2d", (y, x, weight, None)),
        ("conv2d_backward_input", (dx, grad, weight)),
        ("conv2d_backward_weight", (dw, grad, x)),
    ):
        factor = plain / best(name, *arrays, conv_sizes(s))
        assert factor > 8, f"{name} is only {factor:.1f} times as fast as the textbook loops"


@pytest.mark.parametrize("name", POOLS)
def test_pools(library: ctypes.CDLL, name: str) -> None:
    s = POOLS[name]
    sizes, grad = pool_sizes(s), data(s.y_shape, 1)
    for spoil in ((), (INF, -INF, NAN, NAN)):
        x = np.round(data(s.x_shape, 0, spoil))
        y, indices, dx = np.empty(s.y_shape, np.float32), np.empty(s.y_shape, np.int32), np.empty(s.x_shape, np.float32)
        run(library, "max_pool2d", y, indices, x, sizes)
        expected = oracle.max_pool2d(s, x)
        np.testing.assert_array_equal(y, expected[0])
        np.testing.assert_array_equal(indices, expected[1])
        run(library, "max_pool2d_backward", dx, grad, indices, sizes)
        assert_same(dx, oracle.max_pool2d_backward(s, grad, indices))
        for count in (0, 1):
            run(library, "avg_pool2d", y, x, sizes, count)
            assert_same(y, oracle.avg_pool2d(s, x, bool(count)))
            run(library, "avg_pool2d_backward", dx, grad, sizes, count)
            assert_same(dx, oracle.avg_pool2d_backward(s, grad, bool(count)))


@pytest.mark.parametrize("spoilt", [False, True], ids=["finite", "infinities and NaN"])
@pytest.mark.parametrize("name", FUSED)
def test_conv2d_relu_max_pool2d(library: ctypes.CDLL, name: str, spoilt: bool) -> None:
    s, p = FUSED[name]
    spoil = (INF, -INF, NAN) if spoilt else ()
    x, weight, bias = (
        oracle.whole_numbers(s.x_shape, 0, spoil),
        oracle.whole_numbers(s.weight_shape, 1),
        data(s.y_shape[1:2], 2),
    )
    bias = np.round(bias)
    y, indices = np.full(p.y_shape, 5, np.float32), np.full(p.y_shape, 5, np.int32)
    run(library, "conv2d_relu_max_pool2d", y, indices, x, weight, bias, conv_sizes(s), pool_sizes(p))
    expected = oracle.conv2d_relu_max_pool2d(s, p, x, weight, bias)
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_array_equal(indices, expected[1])
    grad, pooled = data(p.y_shape, 3, spoil), p.out[0] * p.out[1]
    dx, dw, db = (np.full(shape, 5, np.float32) for shape in (s.x_shape, s.weight_shape, s.y_shape[1:2]))
    name = "conv2d_relu_max_pool2d_backward"
    run(library, f"{name}_input", dx, grad, indices, weight, conv_sizes(s), pooled)
    assert_same(dx, oracle.fused_backward_input(s, grad, indices, weight), 50)
    run(library, f"{name}_weight", dw, grad, indices, x, conv_sizes(s), pooled)
    assert_same(dw, oracle.fused_backward_weight(s, grad, indices, x), 80)
    run(library, f"{name}_bias", db, grad, indices, s.n, s.y_shape[1], pooled)
    assert_same(db, oracle.fused_backward_bias(grad, indices), 10)


@pytest.mark.parametrize("sizes", [(64, 128, 10), (13, 257, 33), (250, 17, 48), (0, 3, 4), (1, 1, 1)])
def test_linear(library: ctypes.CDLL, sizes: tuple[int, int, int]) -> None:
    n, inputs, outputs = sizes
    x, weight, grad, bias = data((n, inputs), 0), data((outputs, inputs), 1), data((n, outputs), 2), data((outputs,), 3)
    y, dx, dw = (np.full(a.shape, 5, np.float32) for a in (grad, x, weight))
    for relu in (0, 1):
        run(library, "linear", y, x, weight, bias, n, inputs, outputs, relu)
        expected = np.einsum("ni,oi->no", x.astype(float), weight) + bias
        assert_same(y, oracle.relu(expected) if relu else expected, 40)
    run(library, "linear_backward_input", dx, grad, weight, n, inputs, outputs)
    assert_same(dx, np.einsum("no,oi->ni", grad.astype(float), weight), 20)
    run(library, "linear_backward_weight", dw, grad, x, n, inputs, outputs)
    assert_same(dw, np.einsum("no,ni->oi", grad.astype(float), x), 20)


def test_one_pass_kernels(library: ctypes.CDLL) -> None:
    x, grad = data((3, 5, 7, 9), 0, (INF, -INF, NAN)), data((3, 5, 7, 9), 1)
    y, dx, sums = np.empty_like(x), np.empty_like(x), np.empty(5, np.float32)
    run(library, "relu", y, x, x.size)
    np.testing.assert_array_equal(y, oracle.relu(x))
    run(library, "relu_backward", dx, grad, y, x.size)
    np.testing.assert_array_equal(dx, np.where(x <= 0, 0, grad))
    run(library, "channel_sum", sums, grad, 3, 5, 63)
    assert_same(sums, grad.sum((0, 2, 3), dtype=float), 10)
    p, m, v = data((945,), 2), data((945,), 3), np.abs(data((945,), 4))
    g, (q, r, s) = grad.ravel(), (a.astype(float) for a in (p, m, v))
    step = np.array([0.9, 0.1, 0.99, 0.01, 0.5, 2.0, 1e-3, 0.8, 0.3], np.float32)  # as in gradref_adam_step
    run(library, "adam", p, g, m, v, 945, step)
    h = g + 0.3 * q
    r, s = 0.9 * r + 0.1 * h, 0.99 * s + 0.01 * h * h
    assert_same(p, 0.8 * q - 0.5 * r / (2 * np.sqrt(s) + 1e-3), 5)
    p, q = data((945,), 2), data((945,), 2).astype(float)
    run(library, "sgd", p, g, m, 945, 0.5, 0.9, 0.7, 0.3, 1)
    h = g + 0.3 * q
    r = 0.9 * r + 0.7 * h
    assert_same(p, q - 0.5 * (h + 0.9 * r), 5)


def test_no_cliff_in_the_fused_step(library: ctypes.CDLL) -> None:
    """Each kernel at least so many times as fast as its textbook loops."""
    s, p = FUSED["mnist 2"]
    x, weight, grad = data(s.x_shape, 0), data(s.weight_shape, 1), data(p.y_shape, 2)
    y, indices = np.empty(p.y_shape, np.float32), np.empty(p.y_shape, np.int32)
    dx, dw, pooled = np.empty(s.x_shape, np.float32), np.empty(s.weight_shape, np.float32), p.out[0] * p.out[1]
    name = "conv2d_relu_max_pool2d"
    for kernel, factor, arguments in (
        (name, 8, (y, indices, x, weight, None, conv_sizes(s), pool_sizes(p))),
        (f"{name}_backward_input", 3, (dx, grad, indices, weight, conv_sizes(s), pooled)),
        (f"{name}_backward_weight", 3, (dw, grad, indices, x, conv_sizes(s), pooled)),
    ):
        times: dict[str, float] = {}
        for form in ("", "_reference"):
            for _ in range(5):
                begin = time.perf_counter()
                run(library, kernel + form, *arguments)
                times[form] = min(times.get(form, 1.0), time.perf_counter() - begin)
        found = times["_reference"] / times[""]
        assert found > factor, f"{kernel} is only {found:.1f} times as fast as the textbook loops"
