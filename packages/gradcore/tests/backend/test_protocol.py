"""The Protocol as a contract: every primitive with these arguments, and no result that harms an operand."""

import inspect

import numpy as np
import pytest

from gradcore.backend.base import BaseBackend
from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.protocol import CAPABILITIES, Array, Backend, Conv2dOps, Pool2dOps

PRIMITIVES = [name for name in vars(Backend) if not name.startswith("_") and callable(vars(Backend)[name])]
back = NumpyBackend()


def arguments(function: object) -> list[str]:
    names = list(inspect.signature(function).parameters)
    return names[1:] if names and names[0] == "self" else names


def test_arrays() -> None:
    assert isinstance(np.zeros(3), Array)
    assert not isinstance([1.0], Array)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_is_there(name: str) -> None:
    """And is not the Protocol's own empty method."""
    method = getattr(NumpyBackend, name)
    assert method is not vars(Backend)[name]
    if isinstance(method, np.ufunc):
        assert method.nin == len(arguments(vars(Backend)[name]))
    else:
        assert arguments(method) == arguments(vars(Backend)[name])


@pytest.mark.parametrize("capability", [Conv2dOps, Pool2dOps])
def test_capabilities(capability: type) -> None:
    assert isinstance(back, capability)
    assert not isinstance(BaseBackend(), capability)
    assert capability.__name__ in back.capabilities
    for name, method in vars(capability).items():
        if not name.startswith("_"):
            assert arguments(getattr(NumpyBackend, name)) == arguments(method)


def test_capabilities_are_listed() -> None:
    assert {Conv2dOps, Pool2dOps} < set(CAPABILITIES)
    assert back.capabilities == tuple(c.__name__ for c in CAPABILITIES if isinstance(back, c))


X, POSITIVE = np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
CALLS = {
    **dict.fromkeys(
        ("add", "subtract", "multiply", "divide", "maximum", "greater", "greater_equal", "equal"), (X, POSITIVE)
    ),
    **dict.fromkeys(("negative", "abs", "sign", "exp", "tanh", "relu", "sigmoid"), (X,)),
    **dict.fromkeys(("log", "log1p", "sqrt"), (POSITIVE,)),
    "power": (POSITIVE, X),
    "where": (X > 0, X, POSITIVE),
    "sum": (X, (0,), False),
    "max": (X, (0,), False),
    "argmax": (X, 0, False),
    "concat": ([X, POSITIVE], 0),
    "take": (X, np.array([1, 1]), 0),
    "matmul": (X, POSITIVE, True, False),
    "reshape": (X, (4,)),
    "permute_dims": (X, (1, 0)),
    "broadcast_to": (X, (2, 2, 2)),
    "strided_slice": (X, (0, 0), (2, 2), (1, 1)),
    "astype": (X, np.float64),
    "softmax": (X, 1),
    "log_softmax": (X, 1),
    "linear": (X, POSITIVE, POSITIVE[0]),
}
VIEWS = {"reshape", "permute_dims", "broadcast_to", "strided_slice"}


@pytest.mark.parametrize("name", CALLS)
def test_no_result_shares_or_changes_an_operand(name: str) -> None:
    """But for the four that may be views."""
    before = X.copy(), POSITIVE.copy()
    result = getattr(back, name)(*CALLS[name])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(POSITIVE, before[1])
    shares = np.shares_memory(result, X) or np.shares_memory(result, POSITIVE)
    assert shares == (name in VIEWS)
