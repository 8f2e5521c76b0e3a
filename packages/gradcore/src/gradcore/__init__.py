"""gradcore: tensors, autograd, layers, optimizers, and the backends they run on.

Reading order: tensor.py, function.py, autograd.py, ops/, nn/, optim/, backend/.

>>> import gradcore
>>> x = gradcore.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
Tensor([2., 4., 6.])
"""

from gradcore import nn, ops, optim
from gradcore.autograd import enable_grad, grad, no_grad
from gradcore.backend.registry import choose_backend, get_backend, list_backends, use_backend
from gradcore.capture import capture
from gradcore.data import Batches
from gradcore.errors import GradcoreError
from gradcore.function import Function
from gradcore.io import load_checkpoint, save_checkpoint
from gradcore.nn import Parameter
from gradcore.ops import concat, maximum, minimum, stack, where
from gradcore.random import manual_seed
from gradcore.tensor import Tensor, tensor

__version__ = "0.1.0"

__all__ = [
    "Batches",
    "Function",
    "GradcoreError",
    "Parameter",
    "Tensor",
    "capture",
    "choose_backend",
    "concat",
    "enable_grad",
    "get_backend",
    "grad",
    "list_backends",
    "load_checkpoint",
    "manual_seed",
    "maximum",
    "minimum",
    "nn",
    "no_grad",
    "ops",
    "optim",
    "save_checkpoint",
    "stack",
    "tensor",
    "use_backend",
    "where",
]
