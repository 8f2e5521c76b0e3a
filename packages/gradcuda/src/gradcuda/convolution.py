"""Which convolution runs: the words for a run's header, and cuDNN's presence where it was asked for by name.

The kernels are in csrc/conv2d_*.cu, the table behind "auto" in csrc/conv2d_choose.cpp.
"""

from __future__ import annotations

from gradcore.errors import BackendUnavailable
from gradcuda import _ext
from gradcuda.libraries import CUDNN, candidates

CONVOLUTIONS = ("auto", "direct", "unroll", "implicit_gemm", "cudnn")


def describe(conv: str) -> str:
    """For people: "convolution: implicit_gemm (cuDNN not used)".

    Raises BackendUnavailable if cuDNN was asked for and is not there.

    >>> describe("direct")
    'convolution: direct (cuDNN not used)'
    """
    if conv == "auto":
        return "convolution: by shape, mostly implicit_gemm (cuDNN not used)"
    if conv != "cudnn":
        return f"convolution: {conv} (cuDNN not used)"
    try:
        version = _ext.cudnn_version(candidates(CUDNN))
    except _ext.CudaError as error:
        raise BackendUnavailable(str(error)) from None
    return f"convolution: cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}"
