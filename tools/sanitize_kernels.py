"""Launches every CUDA kernel once, on small odd sizes, and makes two training steps: food for compute-sanitizer.

    GRADCUDA_ALLOCATOR=plain compute-sanitizer --tool memcheck  python tools/sanitize_kernels.py
    compute-sanitizer --tool racecheck python tools/sanitize_kernels.py        (initcheck and synccheck the same)
    compute-sanitizer --tool memcheck  python tools/sanitize_kernels.py --plant overrun   (must find an error)

With GRADCUDA_ALLOCATOR=plain each array is an allocation of its own, so that an overrun is seen. Faults to plant:
overrun (memcheck), race (racecheck), uninitialized (initcheck). torch is not imported: its kernels are not ours.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import gradcore
from gradcore import Batches, Tensor, nn
from gradcuda import _ext, cuda_backend

FLOATS = (np.float32, np.float64)
ALL = (*FLOATS, np.int32, np.int64, np.uint8, np.bool_)
BINARY = ("add", "subtract", "multiply", "divide", "power", "maximum", "greater", "greater_equal", "equal")
UNARY = ("negative", "abs", "sign", "exp", "log", "log1p", "sqrt", "tanh", "relu", "sigmoid")
PAIR = (1, 1)
rng = np.random.default_rng(0)


def values(b: Any, *shape: int, dtype: Any = np.float32) -> Any:
    return b.asarray((rng.random(shape) * 3 + 0.5).astype(dtype))


def elementwise(b: Any) -> None:
    for dtype in ALL:
        x, y, row = (values(b, *shape, dtype=dtype) for shape in ((7, 33), (7, 33), (33,)))
        for name in BINARY:
            for other in (y, row, 2, values(b, 1, dtype=dtype)):
                getattr(b, name)(x, other)
        condition = b.greater(x, 1)
        b.where(condition, x, row)
        b.where(condition, 1, x)
        for target in ALL:
            b.astype(x, target)
    for dtype in FLOATS:
        x, grad = values(b, 7, 33, dtype=dtype), values(b, 7, 33, dtype=dtype)
        for name in UNARY:
            getattr(b, name)(x)
        for name in ("relu_backward", "sigmoid_backward", "tanh_backward"):
            getattr(b, name)(grad, x)


def reductions(b: Any) -> None:
    for dtype in ALL:
        for shape, axes in (
            ((5, 3), (1,)),
            ((5, 700), (1,)),
            ((3, 9001), None),
            ((600, 33), (0,)),
            ((4, 5, 67), (0, 2)),
        ):
            x = values(b, *shape, dtype=dtype)
            b.sum(x, axes, False)
            b.max(x, axes, True)
        b.argmax(values(b, 5, 701, dtype=dtype), 1, False)
        b.argmax(values(b, 5, 7, dtype=dtype), None, False)


def shapes(b: Any) -> None:
    for dtype in ALL:
        x = values(b, 5, 7, 9, dtype=dtype)
        b.permute_dims(x, (2, 0, 1))
        b.broadcast_to(values(b, 7, 1, dtype=dtype), (5, 7, 9))
        b.concat([x, x], 1)
        b.strided_slice(x, (4, 0, 1), (-1, 7, 9), (-2, 1, 3))
        b.strided_slice_backward(values(b, 3, 7, 3, dtype=dtype), (5, 7, 9), (4, 0, 1), (-1, 7, 9), (-2, 1, 3))
        b.copy_(b.full((5, 7, 9), 0, dtype), x)
        order, cursor = b.asarray(np.arange(5)[::-1].copy()), b.full((), 1, np.int64)
        b.take_batch(x, order, cursor, 3)
        b.append_(b.full((4,), 0, dtype), cursor, values(b, dtype=dtype))
        for kind in (np.int32, np.int64):
            b.take(x, b.asarray(np.array([[0, 6], [3, 3]], kind)), 1)
    for dtype in FLOATS:
        for kind in (np.int32, np.int64):
            indices = b.asarray(np.array([0, 4, 4, 1, 4], kind))
            b.take_backward(values(b, 5, 33, dtype=dtype), indices, 0, 6)
            b.take_backward(values(b, 3, 5, dtype=dtype), indices, 1, 6)
    b.take(values(b, 5, 8), b.asarray(np.array([0, 9, -1])), 0)
    try:
        b.synchronize()
        raise SystemExit("a bad index was not reported")
    except gradcore.GradcoreError:
        pass
    b.random_uniform((5, 7), 3, b.full((), 5, np.int64))


def products(b: Any) -> None:
    for dtype in FLOATS:
        for ta in (False, True):
            for tb in (False, True):
                b.matmul(
                    values(b, *((7, 5) if ta else (5, 7)), dtype=dtype),
                    values(b, *((9, 7) if tb else (7, 9)), dtype=dtype),
                    ta,
                    tb,
                )
        b.matmul(values(b, 2, 1, 5, 7, dtype=dtype), values(b, 3, 7, 9, dtype=dtype), False, False)


def derived(b: Any) -> None:
    for dtype in FLOATS:
        for width in (3, 10, 1500):
            x, grad = values(b, 5, width, dtype=dtype), values(b, 5, width, dtype=dtype)
            for name in ("softmax", "log_softmax"):
                for axis in (0, 1):
                    y = getattr(b, name)(x, axis)
                    getattr(b, f"{name}_backward")(grad, y, axis)
            labels = b.asarray(np.array([0, 1, 2, -100, 1]))
            for reduction in ("mean", "sum", "none"):
                loss, kept = b.softmax_cross_entropy(x, labels, -100, reduction)
                b.softmax_cross_entropy_backward(loss, kept, labels, -100, reduction)
        x, grad, one = values(b, 4, 3, 5, 7, dtype=dtype), values(b, 4, 3, 5, 7, dtype=dtype), values(b, 3, dtype=dtype)
        _, mean, var = b.batch_norm(x, one, one, 1e-5)
        b.batch_norm_backward(grad, x, one, mean, var, 1e-5)
        lists = [[values(b, *shape, dtype=dtype) for shape in ((3, 5), (7,), ())] for _ in range(4)]
        steps, rate = [b.full((), 0, np.int64) for _ in range(3)], b.full((), 0.1, np.float64)
        b.sgd_(lists[0], lists[1], [], steps, rate, 0.0, 0.0, 0.1, False)
        b.sgd_(lists[0], lists[1], lists[2], steps, rate, 0.9, 0.1, 0.1, True)
        for decoupled in (False, True):
            b.adam_(*lists, steps, rate, 0.9, 0.999, 1e-8, 0.01, decoupled)


def convolutions(b: Any) -> None:
    for dtype in FLOATS:
        for channels, out, groups, stride, padding, dilation in (
            (2, 4, 2, 2, 1, 1),
            (3, 17, 1, 1, 0, 2),
            (16, 32, 1, 1, 1, 1),
        ):
            x, w = values(b, 3, channels, 9, 11, dtype=dtype), values(b, out, channels // groups, 3, 3, dtype=dtype)
            options = ((stride, stride), (padding, padding), (dilation, dilation), groups)
            y = b.conv2d(x, w, values(b, out, dtype=dtype), *options)
            b.conv2d_backward_input(y, w, x.shape, *options)
            b.conv2d_backward_weight(y, x, w.shape, *options)


def pools(b: Any) -> None:
    for dtype in FLOATS:
        x = values(b, 3, 5, 9, 11, dtype=dtype)
        for kernel, stride, out in (((2, 2), (2, 2), (4, 5)), ((3, 3), (1, 1), (7, 9))):
            y, indices = b.max_pool2d(x, kernel, stride, (0, 0), PAIR, out)
            b.max_pool2d_backward(y, indices, x.shape, kernel, stride, (0, 0), PAIR)
            z = b.avg_pool2d(x, kernel, stride, (0, 0), out, True)
            b.avg_pool2d_backward(z, x.shape, kernel, stride, (0, 0), True)


def training(b: Any, graph: bool) -> None:
    """Two steps on a small network with everything in it; with graph, one as it is and two replayed."""
    with gradcore.use_backend("cuda"):
        data = Batches(rng.random((24, 1, 12, 12), np.float32), rng.integers(0, 10, 24), 8)
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.Tanh(),
            nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 10),
        )  # fmt: skip
        optimizer = gradcore.optim.Adam(net.parameters())

        def step(x: Tensor, y: Tensor) -> Tensor:
            loss = nn.CrossEntropyLoss()(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        losses = gradcore.capture(step, data, graph).run(3 if graph else 2)
        assert np.isfinite(losses).all(), losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plant", choices=("overrun", "race", "uninitialized"))
    planted = parser.parse_args().plant
    b = gradcore.get_backend("cuda")
    if planted:
        _ext.plant(b.full((256,), 0.0, np.float32), planted)
        b.synchronize()
        return
    for part in (elementwise, reductions, shapes, products, derived, pools):
        part(b)
        b.synchronize()
        print(f"{part.__name__}: done", flush=True)
    for conv in ("auto", "direct", "unroll", "implicit_gemm"):
        for precision in ("float32", "tf32"):
            other = cuda_backend(conv=conv, precision=precision)
            convolutions(other)
            other.synchronize()
            print(f"convolutions, {conv}, {precision}: done", flush=True)
    training(b, graph=False)
    training(b, graph=True)
    print("training: done")
    assert "torch" not in sys.modules


if __name__ == "__main__":
    main()
