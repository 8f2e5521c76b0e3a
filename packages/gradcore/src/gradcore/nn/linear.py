"""Linear: y = x @ weight.T + bias. The smallest layer with parameters; a good one to start reading from."""

from __future__ import annotations

from gradcore.backend.base import BaseBackend
from gradcore.convert import whole_number
from gradcore.nn import init
from gradcore.nn.layer import Layer
from gradcore.nn.parameter import Parameter
from gradcore.ops.linalg import linear
from gradcore.tensor import Tensor


class Linear(Layer):
    """x (..., in_features) to (..., out_features). weight (out, in) and bias (out,) start as in PyTorch.

    >>> import gradcore
    >>> gradcore.nn.Linear(3, 2)
    Linear(3, 2)  # 8 parameters
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, backend: str | BaseBackend | None = None
    ) -> None:
        super().__init__(backend=backend)
        in_features = whole_number("Linear", "in_features", in_features, 1)
        out_features = whole_number("Linear", "out_features", out_features, 1)
        self.weight = Parameter(init.default((out_features, in_features), in_features), backend=backend)
        self.bias = Parameter(init.default((out_features,), in_features), backend=backend) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    def describe(self) -> str:
        out_features, in_features = self.weight.shape
        return f"{in_features}, {out_features}" + (", bias=False" if self.bias is None else "")
