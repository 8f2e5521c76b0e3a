"""The products of a linear layer, fast and reference, against float64; which of them RefBackend sends to C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradref.backend import RefBackend

from . import kernels, oracle
from .oracle import assert_same, data
from .shapes import INF, NAN, SPOILT

both = pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])

# rows, inputs, outputs
SIZES = {
    "mnist 1": (64, 1568, 128),
    "mnist 2": (64, 128, 10),
    "no rows": (0, 5, 7),
    "no inputs": (3, 0, 7),
    "no outputs": (3, 5, 0),
    "one value": (1, 1, 1),
    "one row": (1, 300, 33),
    "more rows than one block": (250, 17, 33),
    "rows and lanes fit exactly": (12, 256, 32),
    "one more than that": (13, 257, 33),
    "several chunks": (5, 700, 20),
    "strided rows that need no packing": (7, 48, 64),
}


@np.errstate(invalid="ignore")
def check(
    sizes: tuple[int, int, int], reference: bool, spoil: tuple[float, ...] = (), which: int = 0
) -> list[np.ndarray]:
    n, inputs, outputs = sizes
    x, weight, grad = (
        data(shape, seed, spoil if seed == which else ())
        for seed, shape in enumerate(((n, inputs), (outputs, inputs), (n, outputs)))
    )
    bias = data((outputs,), 3)
    a, b, c = x.astype(float), weight.astype(float), grad.astype(float)
    y = np.einsum("ni,oi->no", a, b)  # not @, which may take a shortcut past infinities
    results = []
    for start in (bias, None):
        expected = y if start is None else y + start
        results += [kernels.linear(x, weight, start, relu, reference) for relu in (False, True)]
        assert_same(results[-2], expected, 2 * (inputs + 1) ** 0.5)
        assert_same(results[-1], oracle.relu(expected), 2 * (inputs + 1) ** 0.5)
    results.append(kernels.linear_backward_input(grad, weight, reference))
    assert_same(results[-1], np.einsum("no,oi->ni", c, b), 2 * (outputs + 1) ** 0.5)
    results.append(kernels.linear_backward_weight(grad, x, reference))
    assert_same(results[-1], np.einsum("no,ni->oi", c, a), 2 * (n + 1) ** 0.5)
    return results


@both
@pytest.mark.parametrize("name", SIZES)
def test_named_sizes(name: str, reference: bool) -> None:
    check(SIZES[name], reference)


@both
@pytest.mark.parametrize("which", [0, 1, 2], ids=["x", "weight", "grad"])
@pytest.mark.parametrize("name", ["mnist 2", "one more than that", "several chunks"])
def test_infinities_and_nan_stay_where_the_formula_has_them(name: str, which: int, reference: bool) -> None:
    check(SIZES[name], reference, (INF, -INF, NAN), which)


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 40), st.integers(1, 60), st.integers(1, 70)),
    spoil=st.sampled_from(SPOILT),
    which=st.integers(0, 2),
    reference=st.booleans(),
)
def test_any_size(sizes: tuple[int, int, int], spoil: tuple[float, ...], which: int, reference: bool) -> None:
    check(sizes, reference, spoil, which)


@pytest.mark.parametrize("name", SIZES)
def test_repeats_bit_for_bit(name: str) -> None:
    first = check(SIZES[name], False)
    for _ in range(2):
        assert [a.tobytes() for a in check(SIZES[name], False)] == [a.tobytes() for a in first]


@pytest.mark.parametrize("algorithm", ["fast", "reference"])
@pytest.mark.parametrize("name", [*SIZES, "few rows", "tall"])
def test_backend(name: str, algorithm: str) -> None:
    """Whatever the rules choose, for arrays in any order, and the same bits each time."""
    n, inputs, outputs = (SIZES | {"few rows": (16, 600, 150), "tall": (600, 40, 30)})[name]
    backend = RefBackend(algorithm)
    x, weight = np.asfortranarray(data((n, inputs), 0)), data((outputs, 2 * inputs), 1)[:, ::2]
    grad, bias = np.asfortranarray(data((n, outputs), 2)), data((2 * outputs,), 3)[::2]
    y = np.einsum("ni,oi->no", x.astype(float), weight.astype(float))

    def run() -> list[np.ndarray]:
        return [
            backend.linear(x, weight, bias),
            backend.linear(x, weight, None),
            backend.linear_relu(x, weight, bias),
            backend.linear_backward_input(grad, weight),
            backend.linear_backward_weight(grad, x),
        ]

    got = run()
    expected = [
        y + bias,
        y,
        oracle.relu(y + bias),
        np.einsum("no,oi->ni", grad.astype(float), weight),
        np.einsum("no,ni->oi", grad.astype(float), x),
    ]
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == np.float32
        assert_same(a, b, 2 * (max(n, inputs, outputs) + 1) ** 0.5)
    assert [a.tobytes() for a in run()] == [a.tobytes() for a in got]


def test_float64_stays_float64() -> None:
    backend = RefBackend()
    x, weight = np.full((9, 200), 1e200), np.full((100, 200), 1e100)
    assert backend.linear(x, weight, None)[0, 0] > 1e302
    assert backend.linear_backward_input(x[:, :100], weight).dtype == np.float64
    assert backend.linear_backward_weight(x[:, :100], x).dtype == np.float64
