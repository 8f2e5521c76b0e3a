"""Window arguments and output sizes."""

import numpy as np
import pytest

from gradcore.errors import ArgumentError, ShapeError
from gradcore.ops.window import image_shape, output_size, pair


def test_pair() -> None:
    assert pair("op", "stride", 2, 1) == (2, 2)
    assert pair("op", "stride", (1, 3), 1) == (1, 3)
    assert pair("op", "stride", [np.int64(1), 3], 1) == (1, 3)


@pytest.mark.parametrize("value", [0, -1, (1, 0), 1.0, "2", None, (1,), (1, 2, 3), ()], ids=repr)
def test_pair_refuses(value: object) -> None:
    """Case 17."""
    with pytest.raises(ArgumentError, match=r"^op: stride must be") as error:
        pair("op", "stride", value, 1)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    ("size", "window", "floor", "ceil"),
    [
        ((6, 7), (1, 2, 0), (3, 4), (3, 4)),
        ((8, 10), (3, 4, 0), (2, 2), (2, 3)),
        ((5, 6), (1, 2, 0), (3, 3), (3, 3)),
        ((5, 5), (2, 2, 1), (3, 3), (3, 3)),
        ((5, 5), (3, 3, 1), (2, 2), (2, 2)),
        ((25, 25), (2, 2, 0), (12, 12), (13, 13)),
        ((4, 4), (3, 2, 1), (2, 2), (3, 3)),
    ],
)
def test_output_sizes(size: tuple, window: tuple, floor: tuple, ceil: tuple) -> None:
    """Case 14."""
    kernel, stride, padding = ((n, n) for n in window)
    assert output_size("op", size, kernel, stride, padding, (1, 1)) == floor
    assert output_size("op", size, kernel, stride, padding, (1, 1), ceil_mode=True) == ceil


def test_output_sizes_beside_torch() -> None:
    """Case 14 for every small size."""
    torch = pytest.importorskip("torch")
    for n in range(1, 9):
        image = torch.zeros(1, 1, n, n)
        for k in range(1, 5):
            for s in range(1, 5):
                for p in range(k // 2 + 1):
                    if n + 2 * p < k:
                        continue
                    for ceil in (False, True):
                        expected = tuple(torch.nn.functional.max_pool2d(image, k, s, p, ceil_mode=ceil).shape[2:])
                        assert output_size("op", (n, n), (k, k), (s, s), (p, p), (1, 1), ceil) == expected, (
                            n,
                            k,
                            s,
                            p,
                            ceil,
                        )


def test_sizes_that_do_not_fit() -> None:
    """Case 17."""
    with pytest.raises(ShapeError, match=r"^op: kernel 5x5 is larger than the padded input 4x4$"):
        output_size("op", (2, 2), (3, 3), (1, 1), (1, 1), (2, 2))
    with pytest.raises(ShapeError, match="kernel 6x6 is larger than the padded input 3x6"):
        output_size("op", (3, 6), (6, 6), (1, 1), (0, 0), (1, 1))
    with pytest.raises(ShapeError, match=r"op: input must be \(N, C, H, W\), got \(3, 4\)"):
        image_shape("op", (3, 4))
