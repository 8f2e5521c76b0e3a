"""Shapes for the tests: hypothesis strategies that reach every option, and named ones that reach every code path."""

from __future__ import annotations

from hypothesis import strategies as st

from .oracle import Conv, Pool

INF, NAN = float("inf"), float("nan")
SPOILT = [(), (INF,), (-INF,), (NAN,), (INF, -INF, NAN)]

# What the fast kernels treat apart; each is named for the reason that it is here.
CONVS = {
    "mnist 1": Conv(3, 1, (28, 28), 16, (3, 3), padding=(1, 1)),
    "mnist 2": Conv(3, 16, (14, 14), 32, (3, 3), padding=(1, 1)),
    "no images": Conv(0, 3, (8, 8), 4, (3, 3)),
    "one value": Conv(1, 1, (1, 1), 1, (1, 1)),
    "one value, many images": Conv(131, 3, (1, 1), 9, (1, 1)),
    "small planes share a line": Conv(11, 5, (4, 3), 7, (3, 2), padding=(1, 1)),
    "1x1, stride 2: unused phases": Conv(2, 5, (9, 8), 17, (1, 1), stride=(2, 2)),
    "stride longer than the kernel": Conv(2, 2, (13, 11), 3, (2, 3), stride=(4, 5), padding=(1, 0)),
    "stride and dilation share a factor": Conv(2, 3, (15, 14), 5, (3, 3), (4, 2), (2, 3), (2, 2)),
    "padding larger than the kernel": Conv(2, 2, (2, 2), 3, (3, 3), padding=(4, 5)),
    "padding and stride, 1x1": Conv(1, 2, (3, 3), 2, (1, 1), stride=(2, 3), padding=(3, 2)),
    "kernel as large as the input": Conv(2, 3, (6, 5), 4, (6, 5)),
    "row of taps": Conv(2, 3, (1, 60), 4, (1, 7), padding=(0, 3)),
    "column of taps": Conv(2, 3, (60, 1), 4, (7, 1), padding=(3, 0)),
    "lanes are outputs": Conv(2, 4, (12, 50), 50, (3, 3), padding=(1, 1)),
    "lanes are inputs": Conv(2, 40, (9, 11), 3, (3, 3), padding=(1, 1)),
    "lanes are inputs, strided": Conv(5, 33, (9, 11), 2, (3, 2), (2, 2), (1, 1)),
    "lanes are groups": Conv(2, 1, (10, 9), 1, (3, 3), padding=(1, 1), groups=37),
    "lanes are groups, two by three": Conv(7, 2, (6, 5), 3, (3, 3), (2, 1), (1, 1), groups=18),
    "few groups": Conv(2, 8, (9, 9), 17, (3, 3), padding=(1, 1), groups=3),
    "thirteen taps": Conv(2, 1, (9, 40), 2, (1, 13), padding=(0, 6)),
    "many positions": Conv(1, 2, (70, 65), 3, (3, 3), padding=(1, 1)),
}


@st.composite
def convs(draw: st.DrawFn) -> Conv:
    def pairs(low: int, high: int) -> tuple[int, int]:
        return draw(st.integers(low, high)), draw(st.integers(low, high))

    kernel, dilation, padding = pairs(1, 4), pairs(1, 3), pairs(0, 5)
    smallest = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding, strict=True)]
    size = tuple(low + draw(st.integers(0, 9)) for low in smallest)
    channels = st.sampled_from([1, 1, 2, 3, 5, 8, 9, 17])
    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 17]))
    n = draw(st.sampled_from([0, 1, 1, 2, 5]))
    return Conv(n, draw(channels), size, draw(channels), kernel, pairs(1, 4), padding, dilation, groups)


@st.composite
def pools(draw: st.DrawFn, dilated: bool) -> Pool:
    """Windows with padding and overhang; those that would hold no entry are left out."""

    def axis() -> tuple[int, ...]:
        while True:
            k, d, s = draw(st.integers(1, 4)), draw(st.integers(1, 3)) if dilated else 1, draw(st.integers(1, 4))
            size, pad = draw(st.integers(1, 20)), draw(st.integers(0, k * d // 2))
            # the most windows that begin inside the input, then perhaps fewer
            most = Pool((1, 1), (size, 1), (1, 1), (k, 1), (s, 1), (pad, 0), (d, 1))
            count = 0
            while most.window(count, 0):
                count += 1
            if count:
                return size, draw(st.integers(max(1, count - 2), count)), k, s, pad, d

    size, out, kernel, stride, padding, dilation = zip(axis(), axis(), strict=True)
    planes = draw(st.sampled_from([0, 1, 1, 2])), draw(st.integers(1, 3))
    return Pool(planes, size, out, kernel, stride, padding, dilation)


POOLS = {
    "2x2": Pool((2, 3), (8, 40), (4, 20), (2, 2), (2, 2)),
    "2x2, rows of 7": Pool((3, 5), (14, 14), (7, 7), (2, 2), (2, 2)),
    "2x2, rows of 14": Pool((3, 2), (28, 28), (14, 14), (2, 2), (2, 2)),
    "2x2, rows of 1": Pool((5, 3), (5, 3), (2, 1), (2, 2), (2, 2)),
    "2x2, odd sizes": Pool((2, 2), (9, 45), (4, 22), (2, 2), (2, 2)),
    "2x2, fewer windows than fit": Pool((2, 2), (12, 44), (4, 18), (2, 2), (2, 2)),
    "2x2, hanging over": Pool((2, 2), (9, 43), (5, 22), (2, 2), (2, 2)),
    "overlapping": Pool((2, 2), (11, 37), (5, 18), (3, 3), (2, 2)),
    "side by side, 3x2": Pool((2, 2), (9, 40), (3, 20), (3, 2), (3, 2)),
    "whole plane": Pool((4, 3), (7, 5), (1, 1), (7, 5), (7, 5)),
    "padding and overhang": Pool((1, 2), (10, 33), (6, 17), (3, 3), (2, 2), (1, 1)),
    "gaps": Pool((1, 2), (10, 33), (3, 9), (2, 1), (4, 4)),
    "no planes": Pool((0, 3), (6, 6), (3, 3), (2, 2), (2, 2)),
    "a very long row": Pool((1, 2), (3, 700), (3, 350), (3, 3), (1, 2), (1, 1)),
}
