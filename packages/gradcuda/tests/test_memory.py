"""The allocator: reuse, statistics, running out of memory and going on, one allocation an array on demand."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.gpu


def test_a_freed_block_is_used_again(backend: Any) -> None:
    first = backend.empty((1000,), np.float32)
    place = first.pointer
    before = backend.memory_statistics()
    del first
    again = backend.empty((1010,), np.float32)  # of the same class
    after = backend.memory_statistics()
    assert again.pointer == place
    assert after["from_driver"] == before["from_driver"]
    assert after["allocations"] == before["allocations"] + 1


def test_statistics_come_back_to_the_start(backend: Any) -> None:
    gc.collect()
    start = backend.memory_statistics()["in_use"]
    arrays = [backend.full((n,), 1.0, np.float64) for n in (1, 100, 10_000, 1_000_000)]
    held = backend.memory_statistics()
    wanted = sum(a.nbytes for a in arrays)
    assert wanted <= held["in_use"] - start <= 1.125 * wanted + 512 * len(arrays)
    assert held["peak"] >= held["in_use"]
    assert held["reserved"] >= held["in_use"]
    del arrays
    assert backend.memory_statistics()["in_use"] == start
    assert backend.trim_memory() > 0
    assert backend.memory_statistics()["reserved"] < held["reserved"]


def test_empty_arrays_take_nothing(backend: Any) -> None:
    before = backend.memory_statistics()["allocations"]
    assert backend.empty((0, 3), np.float32).pointer == 0
    assert backend.memory_statistics()["allocations"] == before


def test_out_of_memory_then_on(backend: Any) -> None:
    """Case 63: the text has the bytes, nothing is lost, and a hundred times over."""
    from gradcuda._ext import OutOfMemoryError

    gc.collect()
    start = backend.memory_statistics()["in_use"]
    for _ in range(100):
        with pytest.raises(OutOfMemoryError, match=r"requested \d+ bytes .*, free \d+ bytes .*, total \d+ bytes"):
            backend.empty((1 << 45,), np.float32)
        one = backend.full((3,), 1.0, np.float32)
        np.testing.assert_array_equal(backend.to_numpy(backend.add(one, 1.0)), np.full(3, 2.0, np.float32))
    del one
    assert backend.memory_statistics()["in_use"] == start


def test_a_step_that_fails_half_way(backend: Any) -> None:
    from gradcuda._ext import OutOfMemoryError

    gc.collect()
    start = backend.memory_statistics()["in_use"]

    def step() -> None:
        kept = [backend.full((1000, 1000), 1.0, np.float32) for _ in range(5)]
        backend.broadcast_to(kept[0], (1 << 24, 1000, 1000))

    with pytest.raises(OutOfMemoryError):
        step()
    gc.collect()
    assert backend.memory_statistics()["in_use"] == start


def test_the_cache_is_given_back_before_giving_up(backend: Any, script: Callable[..., Any]) -> None:
    text = (
        "import numpy as np, gradcore\n"
        "b = gradcore.get_backend('cuda')\n"
        "import ctypes\n"
        "total = 0\n"
        "try:\n"
        "    b.empty((1 << 45,), np.uint8)\n"
        "except Exception as error:\n"
        "    import re; free = int(re.search(r'free (\\d+) bytes', str(error)).group(1))\n"
        "part = int(free * 0.3)\n"
        "for n in (part, part + part // 3, 2 * part):\n"  # three classes that do not fit together
        "    x = b.empty((n,), np.uint8); del x\n"
        "print('fine')\n"
    )
    done = script(text)
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_plain_allocator(script: Callable[..., Any]) -> None:
    text = (
        "import numpy as np, gradcore\n"
        "b = gradcore.get_backend('cuda')\n"
        "x = b.full((1000,), 1.0, np.float32); y = b.add(x, x); del x\n"
        "s = b.memory_statistics(); print(s['in_use'], s['reserved'], s['allocations'] == s['from_driver'])\n"
    )
    done = script(text, GRADCUDA_ALLOCATOR="plain")
    assert (done.stdout, done.stderr) == ("4000 4000 True\n", "")
