"""Checkpoints: model, optimizer, random counters, data order and cursor in one safetensors file.

Written atomically: an interrupted save leaves the earlier file whole. Loaded all or nothing: every name and shape is
checked before the first value changes. safetensors holds plain numbers, so a hostile file runs no code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradcore.atomic import write_atomically
from gradcore.convert import check_number
from gradcore.data import Batches
from gradcore.errors import ArgumentError, CheckpointError, GradcoreError
from gradcore.nn import attributes
from gradcore.nn.layer import Layer
from gradcore.optim.optimizer import Optimizer
from gradcore.optim.schedule import Schedule
from gradcore.tensor import Tensor

FORMAT = "gradcore checkpoint 1"
PathLike = str | os.PathLike[str]


def save_checkpoint(
    path: PathLike,
    *,
    model: Layer,
    optimizer: Optimizer | None = None,
    batches: Batches | None = None,
    schedule: Schedule | None = None,
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write everything that a run needs to go on. extra: strings of the caller's. Raises CheckpointError."""
    from safetensors.numpy import save

    for name, value in (extra or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ArgumentError(f"save_checkpoint: extra holds strings alone, got {name!r}: {value!r}")
    tensors = {name: np.array(tensor.numpy()) for name, tensor in _named(model, optimizer).items()}
    state: dict[str, Any] = {"keys": _keys(model)}
    if batches is not None:
        state["batches"] = batches.state_dict()
    if schedule is not None:
        state["schedule"] = schedule.state_dict()
    metadata = {"format": FORMAT, "state": json.dumps(state), "extra": json.dumps(dict(extra or {}))}
    try:
        write_atomically(Path(path), save(tensors, metadata))
    except OSError as error:
        raise CheckpointError(f"checkpoint {os.fspath(path)}: cannot be written: {error.strerror or error}") from None


def load_checkpoint(
    path: PathLike,
    *,
    model: Layer,
    optimizer: Optimizer | None = None,
    batches: Batches | None = None,
    schedule: Schedule | None = None,
) -> dict[str, str]:
    """Take over a checkpoint; returns `extra`. Raises CheckpointError and changes nothing if anything does not fit.

    Pass optimizer, batches and schedule to go on training; the model alone to use its weights.
    """
    tensors, metadata = _read(path)
    try:
        state, extra = _parse(metadata, "state"), _parse(metadata, "extra")
        own = _named(model, optimizer)
        if optimizer is None:
            tensors = {name: value for name, value in tensors.items() if not name.startswith("optimizer.")}
        values = attributes.check(own, tensors, "load")
        if optimizer is not None:
            check_number("load", "optimizer.lr", float(values["optimizer.lr"]))
        for part, target in (("batches", batches), ("schedule", schedule)):
            if target is not None:
                if not isinstance(state.get(part), dict):
                    raise CheckpointError(f"it holds no {part}")
                target.check_state(state[part])
        keys = _check_keys(state.get("keys"), len(_keys(model)))
    except (GradcoreError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"checkpoint {os.fspath(path)}: {error}") from None
    for name, tensor in own.items():
        tensor.copy_(values[name])
    for layer, key in zip(_random_layers(model), keys, strict=True):
        layer.key = key
    if optimizer is not None:
        optimizer._lr = float(optimizer._rate)
    if batches is not None:
        batches.load_state_dict(state["batches"])
    if schedule is not None:
        schedule.load_state_dict(state["schedule"])
    return {str(name): str(value) for name, value in extra.items()}


def _named(model: Layer, optimizer: Optimizer | None) -> dict[str, Tensor]:
    """Every tensor of a run under its name in the file."""
    own: dict[str, Tensor] = {f"model.{name}": tensor for name, tensor in model._state()}
    own |= {f"random.{n}": t for n, t in model.named_buffers() if not t.persistent}
    if optimizer is not None:
        own |= {f"optimizer.{name}": tensor for name, tensor in optimizer._named_state().items()}
    return own


def _random_layers(model: Layer) -> list[Any]:
    return [layer for layer in model.layers() if hasattr(layer, "key")]


def _keys(model: Layer) -> list[str]:
    return [str(layer.key) for layer in _random_layers(model)]


def _parse(metadata: Mapping[str, str], part: str) -> dict[str, Any]:
    """The JSON object under this name of the file's header."""
    try:
        value = json.loads(metadata[part])
    except (KeyError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CheckpointError(f"its header has no readable {part!r}")
    return value


def _check_keys(keys: Any, count: int) -> list[int]:
    """The keys of the model's dropout layers, written as decimal strings since JSON numbers may lose digits."""
    if not isinstance(keys, list) or not all(isinstance(k, str) and k.isdecimal() and len(k) < 20 for k in keys):
        raise CheckpointError("its header has no readable random keys")
    if len(keys) != count:
        raise CheckpointError(f"it belongs to a model with {len(keys)} dropout layers, this one has {count}")
    return [int(key) for key in keys]


def _read(path: PathLike) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    from safetensors import safe_open

    name = os.fspath(path)
    if os.path.isdir(name):
        raise CheckpointError(f"checkpoint {name}: cannot be read: it is a folder")
    try:
        with safe_open(name, framework="numpy") as file:
            metadata = file.metadata() or {}
            known = metadata.get("format") == FORMAT
            tensors = {key: file.get_tensor(key) for key in file.keys()} if known else {}  # noqa: SIM118, not a dict
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror or error
        raise CheckpointError(f"checkpoint {name}: cannot be read: {reason}") from None
    except Exception as error:  # safetensors' own, and what NumPy makes of types that it lacks: always this one
        raise CheckpointError(f"checkpoint {name}: not a whole safetensors file: {error}") from None
    if not known:
        raise CheckpointError(f"checkpoint {name}: a safetensors file, but not a {FORMAT}")
    return tensors, metadata
