"""The two kinds of tensor that a layer owns: what it learns and what it merely keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcore.backend.base import BaseBackend
from gradcore.tensor import Tensor


class Parameter(Tensor):
    """A tensor that a layer learns: it wants a gradient, also when it is made inside no_grad."""

    __slots__ = ()

    def __init__(self, data: Any, *, backend: str | BaseBackend | None = None, requires_grad: bool = True) -> None:
        super().__init__(data, backend=backend, requires_grad=requires_grad)


class Buffer(Tensor):
    """A tensor that a layer keeps but does not learn (running statistics). persistent: part of the state_dict."""

    __slots__ = ("persistent",)

    def __init__(
        self,
        data: Any,
        *,
        backend: str | BaseBackend | None = None,
        persistent: bool = True,
        requires_grad: bool = False,
    ) -> None:
        super().__init__(data, backend=backend, requires_grad=requires_grad)
        self.persistent = persistent

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        return _buffer(self.numpy(), self.backend, self.persistent)

    def __reduce__(self) -> Any:
        return _buffer, (np.array(self.numpy()), self.backend.name, self.persistent)


def _buffer(data: np.ndarray, backend: str | BaseBackend, persistent: bool) -> Buffer:
    return Buffer(data, backend=backend, persistent=persistent)
