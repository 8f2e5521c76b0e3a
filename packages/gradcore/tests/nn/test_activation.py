"""ReLU, Sigmoid and Tanh against PyTorch, at 0, far out and at what is not finite."""

from typing import Any

import numpy as np
import pytest

from gradcore import nn

ALL = [nn.ReLU, nn.Sigmoid, nn.Tanh]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4, 4), (0, 3), ()])
def test_like_torch(like_torch: Any, kind: Any, shape: Any) -> None:
    torch = pytest.importorskip("torch")
    like_torch(kind(), getattr(torch.nn, kind.__name__)(), *shape)


@pytest.mark.parametrize(
    ("kind", "values", "slopes"),
    [
        (nn.ReLU, [0.0, 0.0, np.inf, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 1.0]),
        (nn.Sigmoid, [0.5, 0.0, 1.0, 0.0, 0.7310585786300049], [0.25, 0.0, 0.0, 0.0, 0.19661193324148185]),
        (nn.Tanh, [0.0, -1.0, 1.0, -1.0, 0.7615941559557649], [1.0, 0.0, 0.0, 0.0, 0.41997434161402614]),
    ],
)
def test_corners(kind: Any, values: list[float], slopes: list[float], close: Any, dtype: Any) -> None:
    """Slope 0 at 0 for ReLU; no NaN and no warning far out (case 7)."""
    layer = kind()
    y = layer(np.array([0.0, -np.inf, np.inf, -1e4, 1.0], dtype))
    close(y, values)
    close(layer.backward(np.ones(5, dtype)), slopes)


@pytest.mark.parametrize("kind", ALL)
def test_nan_stays(kind: Any, dtype: Any) -> None:
    layer = kind()
    assert np.isnan(layer(np.array([np.nan], dtype)).numpy()).all()


@pytest.mark.parametrize("kind", ALL)
def test_repr(kind: Any) -> None:
    assert repr(kind()) == f"{kind.__name__}()"
