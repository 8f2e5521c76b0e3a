"""NumPy's convolution against plain loops in float64, written apart; inputs stay as they were."""

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend

back = NumpyBackend()

# x, weight, stride, padding, dilation, groups
SETTINGS = [
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 7, 6), (6, 2, 3, 3), (2, 3), (1, 2), (1, 1), 2),
    ((1, 4, 8, 9), (4, 1, 2, 3), (3, 1), (0, 3), (2, 2), 4),
    ((1, 2, 3, 3), (2, 2, 3, 3), (4, 4), (4, 4), (1, 1), 1),
    ((0, 2, 5, 5), (3, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
]


def loops(x, w, b, stride, padding, dilation, groups) -> np.ndarray:
    """y from the definition."""
    n, c, h, width = x.shape
    o, per_group, kh, kw = w.shape
    padded = np.zeros((n, c, h + 2 * padding[0], width + 2 * padding[1]))
    padded[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + width] = x
    oh = (padded.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (padded.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, o, oh, ow))
    for image, out, i, j in np.ndindex(n, o, oh, ow):
        first = out // (o // groups) * per_group
        y[image, out, i, j] = b[out]
        for channel, p, q in np.ndindex(per_group, kh, kw):
            pixel = padded[image, first + channel, i * stride[0] + p * dilation[0], j * stride[1] + q * dilation[1]]
            y[image, out, i, j] += w[out, channel, p, q] * pixel
    return y


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_against_plain_loops(setting: tuple, kind: str) -> None:
    """Cases 19, 20, 24. The gradients are those of a linear map: <grad, conv(dx)> = <backward(grad), dx>."""
    x_shape, w_shape, *options = setting
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(kind) for s in (x_shape, w_shape, w_shape[:1]))
    kept = x.copy(), w.copy()
    close = {"rtol": 1e-4, "atol": 1e-5} if kind == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    y = back.conv2d(x, w, b, *options)
    exact = loops(x, w, b, *options)
    assert (y.dtype, y.flags.c_contiguous) == (kind, True)
    np.testing.assert_allclose(y, exact, **close)
    np.testing.assert_allclose(back.conv2d(x, w, None, *options), exact - b[:, None, None], **close)

    grad = rng.normal(size=y.shape).astype(kind)
    none = np.zeros(len(b))
    dx = back.conv2d_backward_input(grad, w, x.shape, *options)
    dw = back.conv2d_backward_weight(grad, x, w.shape, *options)
    assert (dx.shape, dx.dtype, dw.shape, dw.dtype) == (x.shape, kind, w.shape, kind)
    for at in list(np.ndindex(*x.shape))[::7]:
        unit = np.zeros(x.shape)
        unit[at] = 1
        np.testing.assert_allclose(dx[at], (grad * loops(unit, w, none, *options)).sum(), **close)
    for at in list(np.ndindex(*w.shape))[::5]:
        unit = np.zeros(w.shape)
        unit[at] = 1
        np.testing.assert_allclose(dw[at], (grad * loops(x, unit, none, *options)).sum(), **close)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(w, kept[1])


@pytest.mark.parametrize(
    "arrange",
    [np.asfortranarray, lambda a: a[::-1][::-1], lambda a: a[..., ::-1].copy()[..., ::-1]],
    ids=["fortran", "twice", "backwards"],
)
def test_any_strides(arrange) -> None:
    """Case 41: all three operands as views."""
    rng = np.random.default_rng(0)
    x, w, options = rng.normal(size=(2, 4, 6, 6)), rng.normal(size=(4, 2, 3, 3)), ((2, 1), (1, 0), (1, 1), 2)
    y = back.conv2d(x, w, None, *options)
    grad = rng.normal(size=y.shape)
    np.testing.assert_allclose(back.conv2d(arrange(x), arrange(w), None, *options), y)
    np.testing.assert_allclose(
        back.conv2d_backward_input(arrange(grad), arrange(w), x.shape, *options),
        back.conv2d_backward_input(grad, w, x.shape, *options),
    )
    np.testing.assert_allclose(
        back.conv2d_backward_weight(arrange(grad), arrange(x), w.shape, *options),
        back.conv2d_backward_weight(grad, x, w.shape, *options),
    )
