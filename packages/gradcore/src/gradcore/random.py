"""Random numbers on the host: initial weights and the keys of dropout layers, one generator per thread.

Weights are drawn here whatever the backend, so one seed gives equal weights everywhere. Masks are drawn on the
backend from (key, counter), see Backend.random_uniform.
"""

from __future__ import annotations

import threading

import numpy as np

from gradcore.convert import whole_number


class _State(threading.local):
    generator: np.random.Generator | None = None  # made when first asked for: numpy.random takes 50 ms to import


_state = _State()


def manual_seed(seed: int) -> None:
    """Start this thread's generator from a seed: equal seeds give equal layers.

    >>> import gradcore
    >>> gradcore.manual_seed(0)
    >>> first = gradcore.nn.Linear(2, 2).weight
    >>> gradcore.manual_seed(0)
    >>> bool((first == gradcore.nn.Linear(2, 2).weight).sum().item() == 4)
    True
    """
    _state.generator = np.random.Generator(np.random.Philox(whole_number("manual_seed", "seed", seed, 0)))


def host_generator() -> np.random.Generator:
    """This thread's generator."""
    if _state.generator is None:
        _state.generator = np.random.Generator(np.random.Philox())
    return _state.generator


def next_key() -> int:
    """A fresh 63-bit key for a stream of its own."""
    return int(host_generator().integers(0, 2**63))
