"""Every convolution algorithm on gradcore's table of cases, on shapes that reach every tile, and bit for bit."""

import functools
from typing import Any

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ArgumentError, BackendUnavailable
from gradcore.testing.cases import conv
from gradcore.testing.check import check_case

pytestmark = pytest.mark.gpu

OWN = ("direct", "unroll", "implicit_gemm")
PASSES = ("conv2d", "conv2d_backward_input", "conv2d_backward_weight")
PLAIN = ((1, 1), (1, 1), (1, 1), 1)
SHAPES = {  # x shape, weight shape, setting: by the number of channels that come out, as the tiles are chosen
    "tile_16": ((3, 5, 13, 11), (9, 5, 3, 3), PLAIN),
    "tile_32": ((3, 20, 13, 11), (30, 20, 3, 3), PLAIN),
    "tile_64": ((2, 40, 12, 12), (50, 40, 3, 3), PLAIN),
    "tile_128": ((64, 72, 16, 16), (130, 72, 3, 3), PLAIN),
    "tile_128_odd_plane": ((80, 130, 15, 15), (129, 130, 1, 1), ((1, 1), (0, 0), (1, 1), 1)),
    "tile_64_groups_stride": ((3, 72, 17, 15), (80, 36, 3, 2), ((2, 3), (1, 2), (2, 1), 2)),
    "depthwise": ((4, 64, 14, 14), (64, 1, 3, 3), ((1, 1), (1, 1), (1, 1), 64)),
    "pointwise": ((4, 96, 14, 14), (64, 96, 1, 1), ((1, 1), (0, 0), (1, 1), 1)),
    "pointwise_groups": ((4, 96, 7, 7), (64, 48, 1, 1), ((1, 1), (0, 0), (1, 1), 2)),
    "long_sum": ((128, 3, 56, 56), (8, 3, 3, 3), PLAIN),
}


def make(conv_name: str, precision: str = "float32") -> Any:
    from gradcuda.backend import CudaBackend

    try:
        return CudaBackend("cuda", conv=conv_name, precision=precision)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["auto", *OWN, "cudnn"])
def algorithm(request: pytest.FixtureRequest) -> Any:
    return make(request.param)


def arguments(name: str, dtype: str) -> dict[str, list[Any]]:
    """The host arguments of each pass for one of SHAPES."""
    x_shape, w_shape, setting = SHAPES[name]
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.uniform(-1, 1, shape).astype(dtype) for shape in (x_shape, w_shape, w_shape[:1]))
    grad = rng.uniform(-1, 1, (x_shape[0], w_shape[0], *conv.out_size(x_shape, w_shape, setting))).astype(dtype)
    return {
        "conv2d": [x, weight, bias, *setting],
        "conv2d_backward_input": [grad, weight, x_shape, *setting],
        "conv2d_backward_weight": [grad, x, w_shape, *setting],
    }


def run(backend: Any, operation: str, given: list[Any]) -> np.ndarray:
    operands = [backend.asarray(one) if isinstance(one, np.ndarray) else one for one in given]
    return np.array(backend.to_numpy(getattr(backend, operation)(*operands)))


@functools.cache
def expected(operation: str, name: str) -> np.ndarray:
    given = arguments(name, "float32")[operation]
    wide = [one.astype(np.float64) if isinstance(one, np.ndarray) else one for one in given]
    return np.asarray(getattr(NumpyBackend(), operation)(*wide))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", conv.CASES, ids=lambda case: case.id)
def test_case(algorithm: Any, case: Any, dtype: str) -> None:
    check_case(algorithm, case, dtype)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("operation", PASSES)
def test_every_tile(algorithm: Any, operation: str, name: str) -> None:
    want = expected(operation, name)
    off = np.abs(run(algorithm, operation, arguments(name, "float32")[operation]) - want)
    assert off.max() <= 1e-5 * (1 + np.abs(want).max())


@pytest.mark.parametrize("operation", PASSES)
def test_repeats_bit_for_bit(algorithm: Any, operation: str) -> None:
    for name in ("tile_32", "tile_64_groups_stride", "long_sum"):
        given = arguments(name, "float32")[operation]
        first = run(algorithm, operation, given)
        for _ in range(9):
            assert run(algorithm, operation, given).tobytes() == first.tobytes()


@pytest.mark.parametrize("operation", PASSES[:2])
def test_tiles_add_up_in_the_order_of_the_formula(operation: str) -> None:
    direct, tiled = make("direct"), make("implicit_gemm")
    for name in SHAPES:
        given = arguments(name, "float32")[operation]
        np.testing.assert_array_equal(run(direct, operation, given), run(tiled, operation, given))


def test_a_row_of_a_batch_equals_the_row_alone(algorithm: Any) -> None:
    x, *rest = arguments("tile_32", "float32")["conv2d"]
    many = run(algorithm, "conv2d", [x, *rest])
    alone = run(algorithm, "conv2d", [x[2:3], *rest])
    np.testing.assert_allclose(many[2:3], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["implicit_gemm", "unroll"])
def test_tf32_only_when_asked_for(name: str) -> None:
    x = np.full((1, 4096, 1, 1), 1 + 2.0**-12, np.float32)
    given = [x, np.ones_like(x), None, (1, 1), (0, 0), (1, 1), 1]
    assert abs(run(make(name), "conv2d", given).item() - 4097) < 0.05
    rough = make(name, "tf32")
    assert rough.precision == "tf32"
    if name == "implicit_gemm":  # cuBLAS may do without, for one row
        assert abs(run(rough, "conv2d", given).item() - 4096) < 0.05


@pytest.mark.parametrize("operation", PASSES)
def test_tf32_is_near(operation: str) -> None:
    rough = make("implicit_gemm", "tf32")
    for name in SHAPES:
        want = expected(operation, name)
        ours = run(rough, operation, arguments(name, "float32")[operation])
        assert np.linalg.norm(ours - want) <= 1e-3 * np.linalg.norm(want)


@pytest.mark.parametrize("operation", PASSES)
def test_float64_stays_float64_where_tf32_is_allowed(operation: str) -> None:
    for name in ("implicit_gemm", "auto", "direct", "unroll"):
        rough = make(name, "tf32")
        for shape in ("tile_16", "tile_32", "tile_64_groups_stride"):
            given = arguments(shape, "float32")[operation]
            wide = [one.astype(np.float64) if isinstance(one, np.ndarray) else one for one in given]
            ours = run(rough, operation, wide)
            np.testing.assert_allclose(ours, expected(operation, shape), rtol=1e-10, atol=1e-10)


def test_the_choice_is_shown_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcuda.backend import CudaBackend

    assert "convolution: implicit_gemm (cuDNN not used)" in make("implicit_gemm").convolution
    monkeypatch.setenv("GRADCUDA_CONV", "direct")
    assert CudaBackend("cuda").conv == "direct"
    with pytest.raises(ArgumentError, match="fastest"):
        CudaBackend("cuda", conv="fastest")
