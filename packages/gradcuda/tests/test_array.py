"""DeviceArray: to the device and back, types, shapes, and DLPack with PyTorch and CuPy."""

from typing import Any

import numpy as np
import pytest

from gradcore.convert import DTYPES
from gradcore.errors import DTypeError, ShapeError

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 0, 3), (1, 1, 5, 1, 1, 1, 1, 2)], ids=str)
def test_round_trip(backend: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    host = (np.arange(np.prod(shape)) % 5).reshape(shape).astype(dtype)
    array = backend.asarray(host)
    assert array.dtype is DTYPES[dtype]  # the very object: gradcore compares with `is`
    assert array.shape == shape
    assert type(array.shape) is tuple
    back = backend.to_numpy(array)
    assert back.dtype is DTYPES[dtype]
    np.testing.assert_array_equal(back, host)
    assert back.shape == shape


@pytest.mark.parametrize("layout", ["transposed", "reversed", "strided", "readonly", "broadcast"])
def test_any_host_layout(backend: Any, layout: str) -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    readonly = base.copy()
    readonly.flags.writeable = False
    host = {
        "transposed": base.T,
        "reversed": base[::-1, ::-1],
        "strided": base[::2, ::3],
        "readonly": readonly,
        "broadcast": np.broadcast_to(base[:1], (3, 6)),
    }[layout]
    np.testing.assert_array_equal(backend.to_numpy(backend.asarray(host)), host)


def test_the_caller_may_overwrite_at_once(backend: Any) -> None:
    host = np.zeros(3_000_000, np.float32)
    arrays = []
    for i in range(20):
        host[:] = i
        arrays.append(backend.asarray(host))
    for i, array in enumerate(arrays):
        got = backend.to_numpy(array)
        assert got.min() == got.max() == i


def test_the_result_is_the_callers(backend: Any) -> None:
    array = backend.full((3,), 1.0, np.float32)
    first = backend.to_numpy(array)
    first[:] = 7.0
    np.testing.assert_array_equal(backend.to_numpy(array), np.ones(3, np.float32))


def test_what_is_refused(backend: Any) -> None:
    with pytest.raises(ShapeError, match="at most 8 axes"):
        backend.asarray(np.zeros((1,) * 9, np.float32))
    with pytest.raises(DTypeError, match="asarray"):
        backend.asarray(np.zeros(3, np.float16))
    one = backend.full((2,), 1, np.float32)
    with pytest.raises(DTypeError, match="add: got float32 and int64"):
        backend.add(one, backend.full((2,), 1, np.int64))
    with pytest.raises(ShapeError, match=r"add: shapes do not broadcast: got \(2,\) \(3,\)"):
        backend.add(one, backend.full((3,), 1, np.float32))
    with pytest.raises(TypeError):
        backend.add(1.0, 2.0)
    assert repr(one) == "<DeviceArray (2,) float32 on cuda:0>"


def test_reshape_shares_memory(backend: Any) -> None:
    x = backend.asarray(np.arange(6, dtype=np.float32))
    y = backend.reshape(x, (2, 3))
    assert y.pointer == x.pointer
    backend.copy_(x, backend.full((6,), 9.0, np.float32))
    np.testing.assert_array_equal(backend.to_numpy(y), np.full((2, 3), 9.0, np.float32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_with_torch(backend: Any, dtype: np.dtype) -> None:
    torch = pytest.importorskip("torch")
    host = (np.arange(12) % 2).reshape(3, 4).astype(dtype)
    mine = backend.asarray(host)
    theirs = torch.from_dlpack(mine)
    assert theirs.data_ptr() == mine.pointer
    np.testing.assert_array_equal(theirs.cpu().numpy(), host)
    back = backend.from_dlpack(theirs)
    assert back.pointer == mine.pointer
    del mine
    np.testing.assert_array_equal(backend.to_numpy(back), host)  # the memory outlives its first owner
    turned = torch.from_dlpack(back).T
    np.testing.assert_array_equal(backend.to_numpy(backend.from_dlpack(turned)), host.T)
    np.testing.assert_array_equal(backend.to_numpy(backend.from_dlpack(torch.from_numpy(host))), host)


def test_order_with_torch_streams(backend: Any) -> None:
    """Each side's stream waits for the other's work: long kernels first, then an exchange without a host wait."""
    torch = pytest.importorskip("torch")
    ones = backend.full((4000, 4000), 1.0, np.float32)
    side = torch.cuda.Stream()
    for stream in (torch.cuda.default_stream(), side):
        with torch.cuda.stream(stream):
            product = ones
            for _ in range(5):
                product = backend.matmul(ones, backend.multiply(product, 1 / 4000), False, False)
            theirs = torch.from_dlpack(product)
            assert float(theirs.double().mean()) == pytest.approx(1.0, rel=1e-3)  # five sums of 4000 rounded terms
            for _ in range(5):
                theirs = theirs @ theirs / 4000
            result = backend.add(backend.from_dlpack(theirs.contiguous()), 1.0)
            del theirs, product
        got = backend.to_numpy(result)
        assert got.min() == pytest.approx(2.0, rel=1e-2)  # each squaring doubles the error so far
        assert got.max() == pytest.approx(2.0, rel=1e-2)


def test_memory_given_back_by_torch_is_not_reused_too_early(backend: Any) -> None:
    torch = pytest.importorskip("torch")
    for i in range(20):
        mine = backend.full((1 << 22,), float(i), np.float32)
        theirs = torch.from_dlpack(mine)
        del mine
        total = theirs.double().sum() / (1 << 22)  # queued on torch's stream
        del theirs
        backend.full((1 << 22,), -1.0, np.float32)
        assert float(total) == i


def test_with_cupy(backend: Any) -> None:
    cupy = pytest.importorskip("cupy")
    mine = backend.asarray(np.arange(6, dtype=np.float32))
    theirs = cupy.from_dlpack(mine)
    assert theirs.data.ptr == mine.pointer
    assert backend.from_dlpack(theirs).pointer == mine.pointer
    np.testing.assert_array_equal(cupy.asnumpy(theirs), np.arange(6))
