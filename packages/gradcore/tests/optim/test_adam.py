"""Adam and AdamW beside PyTorch with every option; cases 44 and 47."""

from typing import Any

import numpy as np
import pytest

from gradcore.errors import ArgumentError
from gradcore.nn import Parameter
from gradcore.optim import Adam, AdamW


@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"betas": (0.8, 0.95)},
        {"betas": (0.0, 0.0)},
        {"eps": 1e-3},
        {"weight_decay": 0.1},
        {"weight_decay": 0.0},
        {"betas": (0.5, 0.9), "eps": 1e-4, "weight_decay": 0.3},
    ],
)
def test_like_torch(like_torch: Any, kind: Any, options: Any) -> None:
    torch = pytest.importorskip("torch")
    twin = getattr(torch.optim, kind.__name__)
    like_torch(lambda p: kind(p, lr=0.02, **options), lambda p: twin(p, lr=0.02, **options), 0.02)


@pytest.mark.parametrize(
    ("make", "start", "grads", "values"),
    [
        (lambda p: Adam(p, lr=0.001), 1.0, [0.1], [0.999]),
        (lambda p: Adam(p, lr=0.001), 1.0, [-250.0], [1.001]),
        (
            lambda p: Adam(p, lr=0.01),
            1.0,
            [0.1, -0.2, 0.3, 0.0],
            [0.9900000010, 0.9936610360, 0.9902286254, 0.9874170035],
        ),
        (lambda p: AdamW(p, lr=0.01, weight_decay=0.1), 1.0, [0.0], [0.999]),
        (lambda p: Adam(p, lr=0.01, weight_decay=0.1), 1.0, [0.0], [0.99]),
        (lambda p: AdamW(p, lr=0.01, weight_decay=0.1), 1.0, [0.5, 0.5], [0.9890000002, 0.9780110004]),
        (lambda p: Adam(p, lr=0.01), 1.0, [0.1, None, 0.1], [0.99, 0.99, 0.98]),
        (lambda p: Adam(p, lr=0.01), 1.0, [0.1, 0.0, 0.1], [0.99, 0.9832994, 0.9751194]),
    ],
)
def test_worked_out(run: Any, make: Any, start: float, grads: Any, values: Any) -> None:
    """Cases 44 and 47: bias correction, coupled and decoupled decay, None against zero."""
    assert run(make, start, *grads) == pytest.approx(values, rel=1e-6)


def test_all_ten_digits(run: Any, near: Any) -> None:
    """Case 44's long run, to the digits given."""
    values = run(lambda p: Adam(p, lr=0.01), 1.0, 0.1, -0.2, 0.3, 0.0)
    assert values == near([0.9900000010, 0.9936610360, 0.9902286254, 0.9874170035])


def test_default_decay() -> None:
    """AdamW's is 0.01, Adam's none (case 44)."""
    p = [Parameter([1.0])]
    assert (AdamW(p).weight_decay, Adam(p).weight_decay, Adam(p).lr) == (0.01, 0.0, 1e-3)


def test_counts_are_per_parameter() -> None:
    """A parameter that was skipped gets its own first step later, bias-corrected as such (case 47)."""
    late, early = Parameter([1.0]), Parameter([1.0])
    optimizer = Adam([late, early], lr=0.01)
    for step in range(10):
        early.grad = [0.1]
        late.grad = [0.1] if step == 9 else None
        optimizer.step()
    assert late.item() == pytest.approx(0.99, rel=1e-6)
    state = optimizer.state_dict()
    assert (state["step.0"], state["step.1"]) == (1, 10)


@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": -1.0},
        {"lr": float("nan")},
        {"betas": (1.0, 0.9)},
        {"betas": (0.9, 1.0)},
        {"betas": (-0.1, 0.9)},
        {"eps": -1e-8},
        {"eps": float("nan")},
        {"weight_decay": -0.1},
    ],
)
def test_senseless_numbers(kind: Any, wrong: Any) -> None:
    """Case 47: at construction, with the option's name."""
    name = next(iter(wrong)).rstrip("s") if "eps" not in wrong else "eps"
    with pytest.raises(ArgumentError, match=f"{kind.__name__}: {name}"):
        kind([Parameter([1.0])], **wrong)


def test_gradients_that_are_not_finite(dtype: Any) -> None:
    """They show in the weights, as in PyTorch, with no warning from below."""
    p = Parameter(np.array([1.0, 1.0], dtype))
    optimizer = Adam([p])
    p.grad = np.array([np.inf, 0.0], dtype)
    optimizer.step()
    assert np.isnan(p.numpy()[0])
    assert p.numpy()[1] == 1.0
