"""Optimizers, schedules and clipping, in order of complexity: sgd.py, adam.py, schedule.py, clip.py."""

from gradcore.optim.adam import Adam, AdamW
from gradcore.optim.clip import clip_grad_norm_, clip_grad_value_
from gradcore.optim.optimizer import Optimizer
from gradcore.optim.schedule import CosineAnnealingLR, ExponentialLR, LambdaLR, LinearWarmupLR, Schedule, StepLR
from gradcore.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearWarmupLR",
    "Optimizer",
    "Schedule",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]
