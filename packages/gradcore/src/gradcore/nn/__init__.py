"""Layers and losses. Start with layer.py, then linear.py; the rest are a few lines each."""

from gradcore.nn import init
from gradcore.nn.activation import ReLU, Sigmoid, Tanh
from gradcore.nn.conv import Conv2d
from gradcore.nn.dropout import Dropout
from gradcore.nn.flatten import Flatten
from gradcore.nn.hand_written import accumulate_grad
from gradcore.nn.layer import Layer
from gradcore.nn.linear import Linear
from gradcore.nn.losses import BCEWithLogitsLoss, CrossEntropyLoss, Loss, MSELoss
from gradcore.nn.norm import BatchNorm2d
from gradcore.nn.parameter import Buffer, Parameter
from gradcore.nn.pool import AvgPool2d, MaxPool2d
from gradcore.nn.sequential import Sequential

__all__ = [
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Layer",
    "Linear",
    "Loss",
    "MSELoss",
    "MaxPool2d",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "accumulate_grad",
    "init",
]
