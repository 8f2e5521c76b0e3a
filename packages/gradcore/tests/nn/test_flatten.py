"""Flatten."""

from typing import Any

import numpy as np
import pytest

from gradcore import GradcoreError, nn


@pytest.mark.parametrize("start", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (0, 3, 2), (2, 0, 2), (1, 1, 1)])
def test_like_torch(like_torch: Any, start: int, shape: Any) -> None:
    torch = pytest.importorskip("torch")
    like_torch(nn.Flatten(start), torch.nn.Flatten(start), *shape)


def test_the_start_is_checked() -> None:
    with pytest.raises(GradcoreError, match="flatten"):
        nn.Flatten(2)(np.zeros((3, 4), np.float32))


def test_repr() -> None:
    assert [repr(nn.Flatten()), repr(nn.Flatten(2))] == ["Flatten()", "Flatten(start_axis=2)"]
