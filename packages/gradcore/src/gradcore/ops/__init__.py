"""Functional operations on tensors, one file per family: each checks its arguments once and calls its Function."""

from gradcore.ops.compare import maximum, minimum, where
from gradcore.ops.conv import conv2d
from gradcore.ops.linalg import linear, matmul
from gradcore.ops.losses import bce_with_logits, mse_loss
from gradcore.ops.pool import avg_pool2d, max_pool2d
from gradcore.ops.shape import concat, stack, take
from gradcore.ops.softmax import cross_entropy, log_softmax, softmax

__all__ = [
    "avg_pool2d",
    "bce_with_logits",
    "concat",
    "conv2d",
    "cross_entropy",
    "linear",
    "log_softmax",
    "matmul",
    "max_pool2d",
    "maximum",
    "minimum",
    "mse_loss",
    "softmax",
    "stack",
    "take",
    "where",
]
