"""Errors that the device finds (cases 3, 55, 62): reported once, at a waiting call, with a way to go on or a reason."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, nn
from gradcore.errors import ArgumentError

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("bad", [-1, 3, 2**40])
def test_bad_index(backend: Any, bad: int) -> None:
    x = backend.asarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    indices = backend.asarray(np.array([0, bad, 2], np.int64))
    taken = backend.take(x, indices, 0)
    with pytest.raises(ArgumentError, match=rf"take: index {bad} is not one of 0\.\.2 \(an axis of 3\)"):
        backend.synchronize()
    host = backend.to_numpy(taken)  # reported once
    np.testing.assert_array_equal(host, [[0, 1], [np.nan, np.nan], [4, 5]])
    grad = backend.take_backward(taken, indices, 0, 3)
    with pytest.raises(ArgumentError, match="take: index"):
        backend.to_numpy(grad)
    np.testing.assert_array_equal(
        backend.to_numpy(backend.take_backward(x, backend.asarray(np.array([0, 0, 1])), 0, 3)), [[2, 4], [4, 5], [0, 0]]
    )


@pytest.mark.parametrize("bad", [-1, 3])
def test_bad_label_on_the_device(backend: Any, bad: int) -> None:
    with gradcore.use_backend("cuda"):
        logits = Tensor(np.zeros((2, 3), np.float32), requires_grad=True)
        loss = nn.CrossEntropyLoss()(logits, Tensor(np.array([0, bad])))
        with pytest.raises(ArgumentError, match=rf"cross_entropy: label {bad} is not one of 0\.\.2 \(3 classes\)"):
            loss.item()
        assert nn.CrossEntropyLoss()(logits, Tensor(np.array([0, 1]))).item() == pytest.approx(np.log(3))


def test_a_lost_device_says_so(script: Callable[..., Any]) -> None:
    done = script(
        "import numpy as np, gradcore\n"
        "from gradcuda import _ext\n"
        "b = gradcore.get_backend('cuda'); x = b.full((256,), 1.0, np.float32)\n"
        "_ext.plant(x, 'illegal address')\n"
        "for call in (b.synchronize, lambda: b.add(x, 1.0), lambda: b.to_numpy(x), lambda: b.full((), 1, 'float32')):\n"
        "    try:\n"
        "        call()\n"
        "        print('no error')\n"
        "    except _ext.CudaError as error:\n"
        "        print('restart it' in str(error), 'illegal' in str(error))\n"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True True\n" * 4, "", 0)


# Python 3.12 warns of every fork beside NumPy's threads
QUIET_FORK = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"


def test_fork_after_a_listing_works(script: Callable[..., Any]) -> None:
    done = script(
        QUIET_FORK + "import os, gradcore, numpy as np\n"
        "assert any(row.name == 'cuda' and row.available for row in gradcore.list_backends())\n"
        "pid = os.fork()\n"
        "b = gradcore.get_backend('cuda')\n"
        "ok = float(b.to_numpy(b.sum(b.full((5,), 2.0, np.float32), None, False))) == 10.0\n"
        "if pid == 0:\n"
        "    os._exit(0 if ok else 1)\n"
        "print(ok, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_fork_after_use_is_a_clear_error(script: Callable[..., Any]) -> None:
    done = script(
        QUIET_FORK + "import os, gradcore, numpy as np, gradcuda\n"
        "from gradcuda._ext import CudaError\n"
        "b = gradcore.get_backend('cuda'); x = b.full((5,), 2.0, np.float32)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    told = 0\n"
        "    for call in (lambda: b.add(x, 1.0), lambda: b.to_numpy(x), lambda: gradcuda.cuda_backend()):\n"
        "        try:\n"
        "            call()\n"
        "        except CudaError as error:\n"
        "            told += 'spawn' in str(error)\n"
        "    del x\n"
        "    os._exit(told)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), b.to_numpy(b.add(x, 1.0)).tolist())\n"
    )
    assert (done.stdout, done.stderr) == ("3 [3.0, 3.0, 3.0, 3.0, 3.0]\n", "")


@pytest.mark.parametrize("ending", ["", "raise ValueError('mine')"])
def test_silence_at_exit(script: Callable[..., Any], ending: str) -> None:
    """Case 55, nanobind's report of leaks on, as it is by default."""
    done = script(
        "import numpy as np, gradcore\n"
        "from gradcore import nn\n"
        "gradcore.use_backend('cuda')\n"
        "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))\n"
        "optimizer = gradcore.optim.Adam(net.parameters())\n"
        "cycle = [net]; cycle.append(cycle)\n"
        "data = gradcore.Batches(np.ones((8, 3), np.float32), np.zeros(8, np.int64), 4)\n"
        "def step(x, y):\n"
        "    loss = nn.CrossEntropyLoss()(net(x), y); optimizer.zero_grad(); loss.backward(); optimizer.step()\n"
        "    return loss\n"
        "loop = gradcore.capture(step, data); loop.run(5)\n" + ending
    )
    lines = done.stderr.splitlines()
    assert done.returncode == (1 if ending else 0)
    assert [line for line in lines if "nanobind" in line or "CUDA" in line] == []
    assert lines[-1:] == (["ValueError: mine"] if ending else [])


def test_the_lock_is_released_while_the_host_waits(backend: Any) -> None:
    """Case 38: a Python thread goes on counting beside a long wait."""
    import threading

    x = backend.full((6000, 6000), 1.0, np.float64)
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    for _ in range(20):
        backend.matmul(x, x, False, False)
    thread.start()
    before, began = counted[0], time.perf_counter()
    backend.synchronize()
    waited, during = time.perf_counter() - began, counted[0] - before
    stop.set()
    thread.join()
    assert waited < 0.02 or during > 1000, (waited, during)


def test_threads_get_the_bits_of_one_after_the_other(script: Callable[..., Any]) -> None:
    done = script(
        "import threading, numpy as np, gradcore\n"
        "from gradcore import nn, Tensor\n"
        "def train(seed, out):\n"
        "    with gradcore.use_backend('cuda'):\n"
        "        with lock:\n"
        "            gradcore.manual_seed(seed)\n"
        "            net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))\n"
        "        optimizer = gradcore.optim.SGD(net.parameters(), lr=0.01)\n"
        "        rng = np.random.default_rng(seed)\n"
        "        for _ in range(50):\n"
        "            x, y = Tensor(rng.random((4, 1, 8, 8), np.float32)), Tensor(rng.integers(0, 3, 4))\n"
        "            optimizer.zero_grad(); nn.CrossEntropyLoss()(net(x), y).backward(); optimizer.step()\n"
        "        out[seed] = b''.join(v.tobytes() for v in net.state_dict().values())\n"
        "lock = threading.Lock(); one, many = {}, {}\n"
        "for s in range(4): train(s, one)\n"
        "threads = [threading.Thread(target=train, args=(s, many)) for s in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(one == many, len(set(one.values())))\n"
    )
    assert (done.stdout, done.stderr) == ("True 4\n", "")
