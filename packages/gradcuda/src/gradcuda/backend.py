"""CudaBackend: every operation is a bound C++ function, named in the class body, so a call has no Python frame.

An array is a DeviceArray (csrc/array.h); it knows its device, stream and memory. Only what needs no array, or has to
look at one first, is a Python method here. Work is queued and returns at once; `to_numpy` and `synchronize` wait.
Next: csrc/array.h, csrc/bind.h; the README has the whole order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcore.backend import BaseBackend, Pair, Scalar, Shape
from gradcore.convert import host_array
from gradcore.errors import ArgumentError, BackendUnavailable
from gradcuda import _ext
from gradcuda._ext import DeviceArray, Graph
from gradcuda.convolution import CONVOLUTIONS, describe
from gradcuda.libraries import CUBLAS, CUDNN, candidates

PRECISIONS = ("float32", "tf32")
CUDA = 2  # DLPack's device types
CUDA_MANAGED = 13


class CudaBackend(BaseBackend):
    """The backend "cuda" (the first device) or "cuda:N".

    conv: the convolution algorithm; default the environment variable GRADCUDA_CONV, else "auto", which chooses by
    shape. precision: "float32", or "tf32" to let products and the tiled convolution round their operands to TF32
    (10 bits) on tensor cores; default GRADCUDA_PRECISION, else "float32". Raises BackendUnavailable, ArgumentError.
    """

    def __init__(self, name: str = "cuda", *, conv: str | None = None, precision: str | None = None) -> None:
        index = _index(name)
        self.name = f"cuda:{index}"  # "cuda" and "cuda:0" are one backend
        self.precision = _choice("precision", precision, "GRADCUDA_PRECISION", PRECISIONS)
        self.conv = _choice("conv", conv, "GRADCUDA_CONV", CONVOLUTIONS)
        tf32 = self.precision == "tf32"
        try:
            self._context = _ext.create_context(index, tf32, self.conv, candidates(CUBLAS), candidates(CUDNN))
        except BackendUnavailable as error:
            raise BackendUnavailable(f"backend {name!r} is not available: {error}") from None
        if tf32 and self._context.capability < 80:
            raise ArgumentError(f"precision: {self._context.device_name} has no tf32 (from compute capability 8.0 on)")
        self.device = f"{self._context.device_name} ({self.name})"
        self.convolution = describe(self.conv)  # for people: which algorithm, and whether cuDNN is in use

    def with_precision(self, precision: str) -> CudaBackend:
        """The same device and algorithm at another precision; itself if nothing changes."""
        if precision == self.precision:
            return self
        return CudaBackend(self.name, conv=self.conv, precision=precision)

    # memory

    def empty(self, shape: Shape, dtype: Any) -> DeviceArray:
        return self._context.empty(shape, dtype)

    def full(self, shape: Shape, value: Scalar, dtype: Any) -> DeviceArray:
        return self._context.full(shape, value, dtype)

    def asarray(self, host: np.ndarray) -> DeviceArray:
        return _ext.upload(self._context, np.asarray(host, order="C"))

    def from_dlpack(self, x: Any) -> DeviceArray:
        """An array on this device is shared, in order with its library's stream; any other is copied."""
        if isinstance(x, DeviceArray) and _ext.same_context(x, self._context):
            return x
        kind, index = x.__dlpack_device__()
        if kind not in (CUDA, CUDA_MANAGED):
            return self.asarray(host_array(np.from_dlpack(x)))
        if index != self._context.device:
            raise ArgumentError(f"from_dlpack: the array is on cuda:{index}, this is {self.name}")
        return _ext.import_dlpack(self._context, x.__dlpack__(stream=self._context.stream))

    def synchronize(self) -> None:
        self._context.synchronize()

    def check_indices(self, indices: DeviceArray, length: int, operation: str, ignore: int | None = None) -> None:
        """Nothing to do: the kernels check what they read, and the error comes at the next waiting call."""

    to_numpy = staticmethod(_ext.to_numpy)
    copy_ = staticmethod(_ext.copy_)
    astype = staticmethod(_ext.astype)
    append_ = staticmethod(_ext.append_)

    # elementwise

    add = staticmethod(_ext.add)
    subtract = staticmethod(_ext.subtract)
    multiply = staticmethod(_ext.multiply)
    divide = staticmethod(_ext.divide)
    power = staticmethod(_ext.power)
    maximum = staticmethod(_ext.maximum)
    greater = staticmethod(_ext.greater)
    greater_equal = staticmethod(_ext.greater_equal)
    equal = staticmethod(_ext.equal)
    where = staticmethod(_ext.where)
    negative = staticmethod(_ext.negative)
    abs = staticmethod(_ext.abs)
    sign = staticmethod(_ext.sign)
    exp = staticmethod(_ext.exp)
    log = staticmethod(_ext.log)
    log1p = staticmethod(_ext.log1p)
    sqrt = staticmethod(_ext.sqrt)
    tanh = staticmethod(_ext.tanh)

    # reductions

    sum = staticmethod(_ext.sum)
    max = staticmethod(_ext.max)
    argmax = staticmethod(_ext.argmax)
    sum_to = staticmethod(_ext.sum_to)

    # shape

    reshape = staticmethod(_ext.reshape)
    permute_dims = staticmethod(_ext.permute_dims)
    broadcast_to = staticmethod(_ext.broadcast_to)
    concat = staticmethod(_ext.concat)
    strided_slice = staticmethod(_ext.strided_slice)
    strided_slice_backward = staticmethod(_ext.strided_slice_backward)
    take = staticmethod(_ext.take)
    take_backward = staticmethod(_ext.take_backward)
    take_batch = staticmethod(_ext.take_batch)

    # linear algebra and random numbers

    matmul = staticmethod(_ext.matmul)
    linear = staticmethod(_ext.linear)
    random_uniform = staticmethod(_ext.random_uniform)

    # derived operations with kernels of their own

    relu = staticmethod(_ext.relu)
    relu_backward = staticmethod(_ext.relu_backward)
    sigmoid = staticmethod(_ext.sigmoid)
    sigmoid_backward = staticmethod(_ext.sigmoid_backward)
    tanh_backward = staticmethod(_ext.tanh_backward)
    softmax = staticmethod(_ext.softmax)
    softmax_backward = staticmethod(_ext.softmax_backward)
    log_softmax = staticmethod(_ext.log_softmax)
    log_softmax_backward = staticmethod(_ext.log_softmax_backward)
    softmax_cross_entropy = staticmethod(_ext.softmax_cross_entropy)
    softmax_cross_entropy_backward = staticmethod(_ext.softmax_cross_entropy_backward)
    batch_norm = staticmethod(_ext.batch_norm)
    batch_norm_backward = staticmethod(_ext.batch_norm_backward)
    sgd_ = staticmethod(_ext.sgd_)
    adam_ = staticmethod(_ext.adam_)

    # Conv2dOps and Pool2dOps

    conv2d = staticmethod(_ext.conv2d)
    conv2d_backward_input = staticmethod(_ext.conv2d_backward_input)
    conv2d_backward_weight = staticmethod(_ext.conv2d_backward_weight)
    max_pool2d = staticmethod(_ext.max_pool2d)
    max_pool2d_backward = staticmethod(_ext.max_pool2d_backward)
    avg_pool2d = staticmethod(_ext.avg_pool2d)
    avg_pool2d_backward = staticmethod(_ext.avg_pool2d_backward)

    def _unpool(self, grad: DeviceArray, indices: DeviceArray, conv_size: Pair, pool: Any) -> DeviceArray:
        """For the fused operations. A closed entry's index, -1, is no position: the kernel gathers and skips it."""
        return self.max_pool2d_backward(grad, indices, (*grad.shape[:2], *conv_size), *pool)

    # GraphCapture

    def capture_graph(self, function: Callable[[], None]) -> Graph:
        """Call the function once while its work is recorded, not executed. What it reads must have been made before."""
        return _ext.capture_graph(self._context, function)

    # the device itself

    @property
    def stream(self) -> int:
        """The cudaStream_t on which all work is done, for other libraries to wait on."""
        return self._context.stream

    def memory_statistics(self) -> dict[str, int]:
        """Bytes in_use, peak, reserved; blocks handed out (allocations), those that took the driver (from_driver)."""
        return self._context.memory_statistics()

    def trim_memory(self) -> int:
        """Give cached memory back to the driver; returns bytes."""
        return self._context.trim()


def _index(name: str) -> int:
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number or "0").isdigit() or name.endswith(":"):
        raise BackendUnavailable(f"no backend {name!r}: write 'cuda' or 'cuda:N' with the number of a device")
    return int(number or 0)


def _choice(option: str, given: str | None, variable: str, choices: tuple[str, ...]) -> str:
    chosen = given or os.environ.get(variable) or choices[0]
    if chosen not in choices:
        where = option if given else variable
        raise ArgumentError(f"{where}: {chosen!r} is not one of {', '.join(choices)}")
    return chosen
