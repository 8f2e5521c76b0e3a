"""gradcuda: the backend `cuda`, CUDA kernels, cuBLAS and CUDA graphs.

Importing this package touches no GPU and loads no library. Next: plugin.py, how gradcore finds it; backend.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcuda.backend import CudaBackend

__version__ = "0.1.0"

__all__ = ["cuda_backend"]


def cuda_backend(
    name: str = "cuda", *, conv: str | None = None, precision: str | None = None, **options: Any
) -> CudaBackend:
    """A new CUDA backend beside the registry's own, with options: see CudaBackend.

    >>> cuda_backend(conv="direct").device  # doctest: +SKIP
    'NVIDIA H200 (cuda:0), convolution: direct (cuDNN not used)'
    """
    from gradcuda.backend import CudaBackend

    return CudaBackend(name, conv=conv, precision=precision, **options)
