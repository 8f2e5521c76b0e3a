"""What a layer owns: attributes, lists, tuples and dicts of parameters and layers; loading by name."""

from typing import Any

import numpy as np
import pytest

from gradcore import nn
from gradcore.errors import ArgumentError, DTypeError
from gradcore.nn import Buffer, Parameter


class Many(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first = Parameter([1.0])
        self.blocks = [nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1, bias=False)]
        self.pairs = ([Parameter([2.0])], (Parameter([3.0]), nn.Linear(1, 1, bias=False)))
        self.heads = {"cat": nn.Linear(1, 1, bias=False), "dog": [Parameter([4.0])]}
        self.mean = Buffer([0.0])
        self.name = "many"
        self.sizes = [1, 2, 3]

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.heads["cat"](self.pairs[1][1](x))


def test_lists_tuples_and_dicts_at_any_depth() -> None:
    """A parameter that is not found is a network that does not learn, without a word."""
    layer = Many()
    assert list(layer.state_dict()) == [
        "first",
        "pairs.0.0",
        "pairs.1.0",
        "heads.dog.0",
        "mean",
        "blocks.0.weight",
        "blocks.2.weight",
        "pairs.1.1.weight",
        "heads.cat.weight",
    ]
    assert len(layer.parameters()) == 8
    assert [name for name, _ in layer.named_buffers()] == ["mean"]
    layer.eval()
    assert not layer.heads["cat"].training
    assert not layer.pairs[1][1].training
    for parameter in layer.parameters():
        parameter.copy_(np.ones(parameter.shape))
    layer([[2.0]])
    assert layer.backward([[1.0]]).tolist() == [[1.0]]


def test_a_container_that_repeats_an_attribute_adds_no_name() -> None:
    """`self.saved = x, self.weight` in a forward must not change the checkpoint."""

    class Saving(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter([2.0])
            self.inner = nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            self.saved = x, self.weight
            self.order = [self.inner]
            return self.inner(x * self.weight)

    layer = Saving()
    names = list(layer.state_dict())
    layer([[1.0]])
    assert list(layer.state_dict()) == names == ["weight", "inner.weight", "inner.bias"]


def test_a_parameter_held_by_two_layers() -> None:
    """Once among the parameters, under each name in the state."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    net = nn.Sequential(first, second)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert len({id(p) for p in net.parameters()}) == 3


def test_a_child_that_knows_its_parent() -> None:
    """Ends, and finds everything once."""
    parent, child = nn.Linear(1, 1), nn.Linear(1, 1)
    parent.child, child.parent = child, parent
    assert list(parent.state_dict()) == ["weight", "bias", "child.weight", "child.bias"]
    assert len(parent.parameters()) == len(child.parameters()) == 4
    assert list(parent.layers()) == [parent, child]


def test_removed_and_replaced() -> None:
    """Nothing is registered: the attributes of this moment count."""
    layer = nn.Linear(1, 1)
    layer.bias = None
    layer.extra = Parameter([1.0])
    assert list(layer.state_dict()) == ["weight", "extra"]
    del layer.extra
    assert list(layer.state_dict()) == ["weight"]


# loading

ZERO = {"weight": np.zeros((1, 2), np.float32), "bias": np.zeros(1, np.float32)}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"bias": None}, "missing bias"),
        ({"scale": np.zeros(1)}, "unexpected scale"),
        ({"weight": np.zeros((2, 1), np.float32)}, r"weight has shape \(2, 1\), expected \(1, 2\)"),
        ({"bias": np.zeros((), np.float32)}, r"bias has shape \(\), expected \(1,\)"),
        ({"bias": np.zeros(1, np.int64)}, "bias is int64, expected float32"),
        ({"bias": np.zeros(1, bool)}, "bias is bool, expected float32"),
        ({"bias": np.array([1e300])}, "bias holds float64 values too large for float32"),
    ],
)
def test_all_or_nothing(change: dict[str, Any], text: str) -> None:
    """Convention "load of wrong shapes": an error before any change, also when the fault comes last."""
    layer = nn.Linear(2, 1)
    before = layer.state_dict()
    state = {name: value for name, value in {**ZERO, **change}.items() if value is not None}
    with pytest.raises(ArgumentError, match=f"Linear.load_state_dict: .*{text}"):
        layer.load_state_dict(state)
    np.testing.assert_equal(layer.state_dict(), before)
    layer.load_state_dict(ZERO)
    np.testing.assert_equal(layer.state_dict(), ZERO)


@pytest.mark.parametrize("wrong", [np.array(["a"]), np.array([None]), np.array([1j])])
def test_values_that_are_no_numbers(wrong: Any) -> None:
    with pytest.raises(DTypeError):
        nn.Linear(2, 1).load_state_dict({**ZERO, "bias": wrong})


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", ">f4", "list", "tensor"])
def test_what_can_be_loaded(kind: str) -> None:
    """Floats of any width, byte order and container; the layer keeps its own type."""
    values = [[1.5, -2.0]]
    given: Any = values if kind == "list" else Parameter(values) if kind == "tensor" else np.array(values, kind)
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": given})
    assert layer.weight.tolist() == values
    assert layer.weight.dtype == np.float32
    assert layer.weight.requires_grad


def test_infinities_and_nan_can_be_loaded() -> None:
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": np.array([[np.inf, np.nan]])})
    np.testing.assert_array_equal(layer.weight, np.array([[np.inf, np.nan]], np.float32))


def test_the_state_is_a_copy() -> None:
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    state["bias"][:] = 7.0
    assert layer.bias.item() != 7.0
    layer.load_state_dict(state)
    state["bias"][:] = 8.0
    assert layer.bias.item() == 7.0


def test_pytorch_weights_load() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Conv2d(2, 4, 3, groups=2)
    ours = nn.Conv2d(2, 4, 3, groups=2)
    ours.load_state_dict(theirs.state_dict())
    np.testing.assert_array_equal(ours.weight, theirs.weight.detach().numpy())
