"""Print the folder of the CUDA compiler that came as a wheel into this Python environment, or nothing."""

import importlib.util
import os
from pathlib import Path

spec = importlib.util.find_spec("nvidia")
for location in (spec.submodule_search_locations or []) if spec else []:
    root = Path(location) / "cu13"
    if os.access(root / "bin" / "nvcc", os.X_OK):
        print(root)
        break
