"""Graphs of a hundred thousand operations: forward, backward, freed, in linear time."""

import sys
import threading
import time

import numpy as np
import pytest

from gradcore import Tensor, tensor

pytestmark = pytest.mark.usefixtures("backend")


def chain(length: int) -> tuple[Tensor, Tensor]:
    x = tensor(np.array(1.0), requires_grad=True)
    y = tensor(np.array(1.0))
    for _ in range(length // 2):
        y = y + x * 0.00001
    return x, y


def test_a_hundred_thousand_operations() -> None:
    """Case 27: forward, backward, and freed without one; the recursion limit is as before."""
    limit = sys.getrecursionlimit()
    x, y = chain(100_000)
    y.backward()
    assert (y.item(), x.grad.item()) == (pytest.approx(1.5), pytest.approx(0.5))
    del y
    x, y = chain(100_000)
    del y, x
    assert sys.getrecursionlimit() == limit


def test_a_long_product() -> None:
    """Case 27."""
    x = tensor(np.array(1.0), requires_grad=True)
    y = x
    for _ in range(10_000):
        y = y * 1.0001
    y.backward()
    assert [y.item(), x.grad.item()] == pytest.approx([2.7181459] * 2)


def test_a_long_sum_of_itself() -> None:
    """Case 27: y = y + 0.00001 x from x, a hundred thousand times."""
    x = tensor(np.array(1.0), requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + x * 0.00001
    y.backward()
    assert [y.item(), x.grad.item()] == pytest.approx([2.0, 2.0])


def test_a_deep_chain_is_freed_node_by_node_in_a_small_thread() -> None:
    """Case 27: freeing must not use up a small stack either."""
    done = []

    def work() -> None:
        x, y = chain(100_000)
        del y
        done.append(x.item())

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert done == [1.0]


def test_backward_time_is_linear() -> None:
    """Case 27: eight times the operations, well below 64 times the time."""

    def seconds(length: int) -> float:
        best = float("inf")
        for _ in range(3):
            _, y = chain(length)
            start = time.perf_counter()
            y.backward()
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(40_000) < 24 * seconds(5_000)
