"""gradref: the backend `ref`, convolution and pooling in sequential C.

Found by gradcore through its entry point; nothing here needs to be imported by hand.
Next: plugin.py, then backend.py.
"""

__version__ = "0.1.0"
