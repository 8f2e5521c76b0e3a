"""The backend `cuda`: a placeholder that installs everywhere and says that its kernels are not built yet.

Importing this package touches no GPU and loads no library. Next: plugin.py.
"""

__version__ = "0.1.0"
