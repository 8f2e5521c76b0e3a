"""Elementwise Functions: values and slopes beside PyTorch, corners, broadcasting, scalars, errors."""

from collections.abc import Callable

import numpy as np
import pytest

from gradcore import GradcoreError, Tensor, tensor
from gradcore.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

SHAPES = [
    ((), ()),
    ((3,), ()),
    ((1,), (1,)),
    ((2, 3), (2, 3)),
    ((3, 1), (1, 4)),
    ((2, 3, 4), (3, 1)),
    ((0, 3), (3,)),
    ((0,), (1,)),
]
BINARY: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
}
SCALAR: dict[str, Callable] = {
    "x + s": lambda x: x + 2.5,
    "s + x": lambda x: 2.5 + x,
    "x - s": lambda x: x - 2.5,
    "s - x": lambda x: 2.5 - x,
    "x * s": lambda x: x * 2.5,
    "s * x": lambda x: 2.5 * x,
    "x / s": lambda x: x / 2.5,
    "s / x": lambda x: 2.5 / x,
    "x ** s": lambda x: x**2.5,
    "x ** 2": lambda x: x**2,
    "x ** -1": lambda x: x**-1,
    "s ** x": lambda x: 2.5**x,
    "-x": lambda x: -x,
    "abs(x)": abs,
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sqrt": lambda x: x.sqrt(),
    "abs": lambda x: x.abs(),
}


def slopes(function: Callable, *values: float) -> list[float]:
    """The gradients of function at the values."""
    operands = [tensor([v], requires_grad=True) for v in values]
    function(*operands).sum().backward()
    return [x.grad.item() for x in operands]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(
    name: str, shapes: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    a, b = (rng.uniform(0.5, 2.0, shape).astype(dtype) for shape in shapes)
    against_torch(BINARY[name], BINARY[name], a, b, layout=layout)
    against_torch(BINARY[name], BINARY[name], b, a, layout=layout)


@pytest.mark.parametrize("shape", [(), (1,), (4, 3), (0, 2)], ids=str)
@pytest.mark.parametrize("name", SCALAR)
def test_one_operand(name: str, shape: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    against_torch(SCALAR[name], SCALAR[name], rng.uniform(0.5, 2.0, shape).astype(dtype), layout=layout)


@pytest.mark.parametrize("name", ["-x", "abs", "exp", "x ** 2", "x * s", "s - x"])
def test_negative_operand(name: str, dtype: str, rng: np.random.Generator, against_torch) -> None:
    against_torch(SCALAR[name], SCALAR[name], -rng.uniform(0.5, 2.0, (3, 4)).astype(dtype))


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (lambda x: x.relu(), 0.0, 0.0),
        (abs, 0.0, 0.0),
        (lambda x: x.abs(), -0.0, 0.0),
        (lambda x: x**2, -3.0, -6.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x.sqrt(), 0.0, np.inf),
        (lambda x: x**0.5, 0.0, np.inf),
        (lambda x: x**-3, -2.0, -0.1875),
        (lambda x: 0.0**x, 2.0, 0.0),
        (lambda x: 0.0**x, 0.0, 0.0),
        (lambda x: 1.0**x, 3.0, 0.0),
        (lambda x: x.log(), 0.0, np.inf),
        (lambda x: 1.0 / x, 0.0, -np.inf),
    ],
)
def test_slopes_at_corners(function: Callable, at: float, expected: float) -> None:
    """Case 7."""
    assert slopes(function, at) == [pytest.approx(expected, rel=1e-6)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (2.0, 3.0, (12.0, 5.5451774)),
        (0.0, 0.0, (0.0, 0.0)),
        (0.0, 1.0, (1.0, 0.0)),
        (0.0, 2.0, (0.0, 0.0)),
        (-3.0, 0.0, (0.0, np.nan)),
        (-2.0, -3.0, (-0.1875, np.nan)),
        (-3.0, 2.0, (-6.0, np.nan)),
        (0.0, -1.0, (-np.inf, -np.inf)),
    ],
)
def test_power_of_two_variables(a: float, b: float, expected: tuple) -> None:
    """Case 7: no NaN and no warning but where the exponent's slope of a negative base is asked for."""
    assert slopes(lambda x, y: x**y, a, b) == pytest.approx(expected, rel=1e-6, nan_ok=True)


@pytest.mark.filterwarnings("error")
def test_negative_base_asks_no_logarithm() -> None:
    """Case 7: the exponent wants no gradient, so there is no NaN anywhere."""
    x = tensor([-2.0], requires_grad=True)
    y = x ** tensor([-3.0])
    y.sum().backward()
    assert y.item() == -0.125
    assert x.grad.item() == -0.1875


def test_power_rule_beside_torch(dtype: str, against_torch) -> None:
    base = np.array([0.0, 0.0, 0.0, 0.5, 1.0, 3.0], dtype)
    exponent = np.array([0.0, 1.0, 2.5, -1.0, 0.0, -2.0], dtype)
    against_torch(BINARY["power"], BINARY["power"], base, exponent)


@pytest.mark.parametrize(
    "scalar", [True, 3, 3.0, np.float32(3), np.float64(3), np.int64(3), np.uint8(3), np.bool_(True)], ids=repr
)
@pytest.mark.parametrize("name", BINARY)
def test_scalars_are_weak(name: str, scalar: object, dtype: str) -> None:
    """Case 35: a Python or NumPy scalar takes the tensor's type, on either side."""
    x = Tensor(np.array([1.5, 2.0], dtype))
    for y, expected in [
        (BINARY[name](x, scalar), BINARY[name](x, float(scalar))),
        (BINARY[name](scalar, x), BINARY[name](float(scalar), x)),
    ]:
        assert type(y) is Tensor
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.numpy(), expected.numpy())


def test_complex_scalars_are_refused() -> None:
    for scalar in (1j, np.complex64(1j)):
        with pytest.raises(DTypeError, match="complex"):
            tensor([1.0]) * scalar


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64", "bool"])
@pytest.mark.parametrize("name", BINARY)
def test_integers_become_floats(name: str, kind: str) -> None:
    """Case 43: uint8 5 minus 7 is -2; beside a float tensor integers take its type."""
    a, b = Tensor(np.array([1, 0]).astype(kind)), Tensor(np.array([1, 1]).astype(kind))
    y = BINARY[name](a, b)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.numpy(), BINARY[name](np.array([1.0, 0.0]), np.array([1.0, 1.0])))
    for partner in ("float32", "float64"):
        assert BINARY[name](a, Tensor(np.ones(2, partner))).dtype == partner
        assert BINARY[name](np.ones(2, kind), Tensor(np.ones(2, partner))).dtype == partner


def test_small_integers_do_not_wrap() -> None:
    """Case 43."""
    five, seven = Tensor(np.array(5, np.uint8)), Tensor(np.array(7, np.uint8))
    assert [(five - seven).item(), (five - 7).item(), (3 - five).item(), (-five).item()] == [-2, -2, -2, -5]
    assert (Tensor(np.full(300, 200, np.uint8)).sum()).item() == 60000
    assert (Tensor(np.arange(300) % 3) == 0).sum().item() == 100


@pytest.mark.parametrize("name", BINARY)
def test_float64_does_not_meet_float32(name: str) -> None:
    """Case 41: never cut in silence."""
    x32, x64 = tensor([1.0]), Tensor(np.array([1e300]))
    for a, b in [(x32, x64), (x64, x32), (x32, x64.numpy()), (x64.numpy(), x32)]:
        with pytest.raises(DTypeError, match=r"float32 and float64|float64 and float32") as error:
            BINARY[name](a, b)
        assert ".astype('float32')" in str(error.value)
    assert BINARY[name](x32, x32).dtype == np.float32  # the next correct call works


@pytest.mark.parametrize("name", BINARY)
def test_shapes_that_do_not_broadcast(name: str) -> None:
    a, b = tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0])
    for x, y in [(a, b), (a, b.numpy()), (Tensor(np.ones(2, np.int64)), b)]:
        with pytest.raises(ShapeError, match=rf"(?i)^{name}: got \(2,\) and \(3,\)"):
            BINARY[name](x, y)


def test_lists_take_the_tensors_type(dtype: str) -> None:
    x = Tensor(np.array([1.0, 2.0], dtype))
    values = [1, 2]
    for y in (x + values, values + x, x * [0.1, 0.2], x - (1.0, 2.0)):
        assert y.dtype == dtype


def test_unknown_operands_are_named() -> None:
    for other in ("text", None, {}, object()):
        with pytest.raises(GradcoreError):
            tensor([1.0]) + other


def test_infinities_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    x = tensor([0.0, -1.0, np.inf, 1000.0])
    for y in (x.log(), 1.0 / x, x / 0.0, x.exp(), x.sqrt(), x**-1, x**0.5):
        y.numpy()
    assert not recwarn.list
