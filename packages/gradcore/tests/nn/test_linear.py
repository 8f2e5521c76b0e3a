"""Linear against PyTorch and worked-out numbers; its arguments."""

from typing import Any

import numpy as np
import pytest

from gradcore import Tensor, nn
from gradcore.errors import ArgumentError, DTypeError, ShapeError


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (2, 3, 4), (4,), (0, 4), (2, 0, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_like_torch(like_torch: Any, shape: tuple[int, ...], bias: bool) -> None:
    torch = pytest.importorskip("torch")
    like_torch(nn.Linear(4, 5, bias=bias), torch.nn.Linear(4, 5, bias=bias), *shape)


def test_worked_out() -> None:
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": [[2.0, -1.0]], "bias": [0.5]})
    assert layer([[3.0, 4.0]]).tolist() == [[2.5]]
    assert layer.backward([[10.0]]).tolist() == [[20.0, -10.0]]
    assert layer.weight.grad.tolist() == [[30.0, 40.0]]
    assert layer.bias.grad.tolist() == [10.0]


def test_a_batch_of_none_has_zero_gradients() -> None:
    """Case 24: exact zeros, not what happened to be in memory."""
    layer = nn.Linear(300, 20)
    y = layer(np.zeros((0, 300), np.float32))
    assert y.shape == (0, 20)
    assert layer.backward(np.zeros((0, 20), np.float32)).shape == (0, 300)
    assert layer.weight.grad.shape == (20, 300)
    assert not layer.weight.grad.numpy().any()
    assert layer.bias.grad.tolist() == [0.0] * 20


def test_a_row_does_not_depend_on_its_batch(cast: Any, close: Any, dtype: Any) -> None:
    """Case 24: row 2 of five equals that row alone."""
    layer = cast(nn.Linear(7, 3))
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(dtype)
    close(layer(x).numpy()[2:3], layer(x[2:3]).numpy())


@pytest.mark.parametrize(("arguments", "text"), [((0, 2), "in_features"), ((2, -1), "out_features"), ((2.5, 1), "2.5")])
def test_sizes_are_checked(arguments: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"Linear.*{text}"):
        nn.Linear(*arguments)


def test_sizes_may_be_numpy_integers() -> None:
    assert nn.Linear(np.int64(3), np.array([1, 4]).max() + 1).weight.shape == (5, 3)


def test_wrong_input_names_both_shapes() -> None:
    """Case 17's kind; the next correct call works."""
    layer = nn.Linear(3, 2)
    with pytest.raises(ShapeError, match=r"linear: got input \(4, 5\) and weight \(2, 3\)"):
        layer(np.zeros((4, 5), np.float32))
    assert layer(np.zeros((4, 3), np.float32)).shape == (4, 2)


def test_float64_input_names_both_types() -> None:
    """Never cut to float32 in silence (case 41)."""
    with pytest.raises(DTypeError, match=r"float64 and float32.*astype"):
        nn.Linear(3, 2)(np.zeros((4, 3)))


def test_integer_input_is_converted_and_has_no_gradient() -> None:
    """Case 43: a uint8 image goes in as float32; there is nothing to return for it."""
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": [[1.0, -1.0]]})
    assert layer(np.array([[5, 7]], np.uint8)).tolist() == [[-2.0]]
    assert layer.backward([[1.0]]) is None
    assert layer.weight.grad.tolist() == [[5.0, 7.0]]


def test_repr() -> None:
    assert repr(nn.Linear(3, 2, bias=False)) == "Linear(3, 2, bias=False)  # 6 parameters"


def test_one_tensor_type(dtype: Any) -> None:
    """A float64 layer stays float64."""
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(np.eye(2, dtype=dtype))
    layer.bias = nn.Parameter(np.zeros(2, dtype))
    assert layer(Tensor(np.ones((1, 2), dtype))).dtype == dtype
