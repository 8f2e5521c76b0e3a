"""What stays alive after an operation, a backward, an error: the garbage collector is off."""

import gc
import weakref

import numpy as np
import pytest

from gradcore import Function, nn, ops, optim, tensor
from gradcore.errors import ShapeError

pytestmark = pytest.mark.usefixtures("backend")


def test_training_hoards_nothing(rng: np.random.Generator) -> None:
    """Case 31: the garbage collector is off, and after each of 50 rounds nothing of it is alive."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3))
    step = optim.Adam(model.parameters(), lr=0.01)
    images, labels = rng.normal(size=(4, 1, 8, 8)).astype(np.float32), rng.integers(0, 3, 4)
    alive, total = [], 0.0
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            hidden = model(images)
            loss = ops.cross_entropy(hidden, labels)
            parts = weakref.ref(loss), weakref.ref(hidden), weakref.ref(hidden.exp())
            step.zero_grad()
            loss.backward()
            step.step()
            total += float(loss)
            del loss, hidden
            alive.append(sum(part() is not None for part in parts))
        assert all(not p.grad.requires_grad and p._node.inputs == () for p in model.parameters())
    finally:
        gc.enable()
    assert alive == [0] * 50
    assert type(total) is float


class Marked(Function):
    """A node that can be watched: it has a __weakref__, as it names no slots."""

    def forward(self, x):
        self.saved = x
        return self.backend.multiply(x, 2.0)

    def backward(self, grad):
        return self.backend.multiply(grad, 2.0)


@pytest.mark.parametrize("finish", ["backward", "nothing", "error", "kept"])
def test_nodes_die_with_their_outputs(finish: str) -> None:
    """Case 31: no node refers to its own output, whether backward ran or not."""
    x = tensor([1.0], requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            node = Marked()
            y = (node(x) * x).sum()
            watched = weakref.ref(node)
            del node
            if finish in ("backward", "kept"):
                y.backward(retain_graph=finish == "kept")
            elif finish == "error":
                with pytest.raises(ShapeError):
                    y.backward([1.0, 2.0])
            del y
            assert watched() is None
    finally:
        gc.enable()


def test_backward_frees_what_was_saved() -> None:
    """While the output is still there: peak memory is that of the tape."""
    x = tensor([1.0], requires_grad=True)
    node = Marked()
    y = node(x).sum()
    y.backward()
    assert (node.saved, node.inputs, node.versions) == (None, None, None)
    assert y.item() == 2.0


def test_adding_losses_up_as_numbers() -> None:
    """Case 31: a sum of tensors keeps every graph, a sum of floats none."""
    x = tensor([1.0], requires_grad=True)
    node = Marked()
    watched = weakref.ref(node)
    total = float(node(x).sum())
    del node
    assert watched() is None
    assert total == 2.0
