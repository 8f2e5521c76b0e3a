"""Where NVIDIA's libraries may lie: in the wheels nvidia-cublas and nvidia-cudnn-cu13, or wherever the loader looks.

Nothing is loaded here; csrc/blas.cpp opens the first that exists, at the first product.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

CUBLAS = ("cu13/lib/libcublas.so.13",)
CUDNN = ("cudnn/lib/libcudnn.so.9", "cu13/lib/libcudnn.so.9")


def candidates(names: tuple[str, ...]) -> list[str]:
    """Existing files of these names below the folders of the `nvidia` wheels."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    paths = [Path(folder) / name for folder in folders for name in names]
    return [str(path) for path in paths if path.is_file()]


def is_loaded(soname: str) -> bool:
    """Whether this process has the library already, brought by another package."""
    try:
        return soname in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
