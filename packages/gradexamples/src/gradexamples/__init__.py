"""Examples that teach and test gradcore: XOR, MNIST, and reading a digit from a picture.

Run them with `python -m gradexamples`. This file imports nothing, so that `--help` is quick and `--threads`
can still set how many threads numpy's BLAS starts. Next: __main__.py, then xor_by_hand.py.
"""

__version__ = "0.1.0"
