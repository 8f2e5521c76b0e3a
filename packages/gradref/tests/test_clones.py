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
from .shapes import CONVS, INF, NAN, POOLS

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


def run(library: ctypes.CDLL, name: str, *arguments: np.ndarray | int | tuple[int, ...] | None) -> None:
    """Call a kernel. A tuple becomes the struct of sizes; convolutions get their workspace as the last argument."""
    converted: list[ctypes._SimpleCData | ctypes.Array | None] = []
    for a in arguments:
        if isinstance(a, np.ndarray):
            converted.append(ctypes.c_void_p(a.ctypes.data))
        elif isinstance(a, tuple):
            sizes = struct(a)
            converted.append(sizes)
        else:
            converted.append(a if a is None else ctypes.c_int(a))
    if name.startswith("conv2d"):
        workspace = library[f"gradref_{name}_workspace"]
        workspace.restype = ctypes.c_int64
        scratch = np.full(workspace(sizes) + 32, NAN, np.float32)  # NaN: what is read before it is written shows
        start = -scratch.ctypes.data // 4 % 16
        scratch[-16:] = 77
        library[f"gradref_{name}"](*converted, ctypes.c_void_p(scratch.ctypes.data + 4 * start))
        assert (scratch[-16:] == 77).all(), "wrote past its workspace"
    else:
        library[f"gradref_{name}"](*converted)


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
