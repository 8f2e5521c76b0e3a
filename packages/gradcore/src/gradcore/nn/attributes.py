"""Walks over what a layer holds: its attributes, and lists and tuples of them, in definition order.

Nothing is registered when a layer is built, so a plain attribute is all that a user writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcore.convert import host_array
from gradcore.errors import ArgumentError

if TYPE_CHECKING:
    from gradcore.nn.layer import Layer
    from gradcore.tensor import Tensor


def members(layer: Layer, *kinds: type) -> Iterator[tuple[str, Any]]:
    """(name, object) of the given kinds held directly; an item of a list is named "list.index"."""
    for name, value in vars(layer).items():
        if isinstance(value, kinds):
            yield name, value
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                if isinstance(item, kinds):
                    yield f"{name}.{i}", item


def walk(layer: Layer, prefix: str = "") -> Iterator[tuple[str, Layer]]:
    """(dotted name, layer) of this layer and all below it, parents first."""
    yield prefix, layer
    for name, child in layer.named_children():
        yield from walk(child, f"{prefix}.{name}" if prefix else name)


def tensors(layer: Layer, *kinds: type) -> Iterator[tuple[str, Any]]:
    """(dotted name, tensor) of the given kinds, in the layer and below; shared ones under each name."""
    for prefix, owner in walk(layer):
        for name, tensor in members(owner, *kinds):
            yield (f"{prefix}.{name}" if prefix else name), tensor


def unique(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each object once, under its first name."""
    seen: set[int] = set()
    for name, thing in named:
        if id(thing) not in seen:
            seen.add(id(thing))
            yield name, thing


def load(own: Mapping[str, Tensor], state: Mapping[str, Any], operation: str) -> None:
    """Copy state into own tensors by name. Everything is checked first: nothing changes if anything does not fit."""
    values = check(own, state, operation)
    for name, tensor in own.items():
        tensor.copy_(values[name])


def check(own: Mapping[str, Tensor], state: Mapping[str, Any], operation: str) -> dict[str, np.ndarray]:
    """state as host arrays, if its names and shapes are those of own; else ArgumentError names what differs."""
    missing, surplus = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if missing or surplus:
        what = [f"missing {', '.join(missing)}"] if missing else []
        what += [f"unexpected {', '.join(surplus)}"] if surplus else []
        raise ArgumentError(f"{operation}: names do not fit: {'; '.join(what)}")
    values = {name: host_array(value) for name, value in state.items()}
    for name, tensor in own.items():
        if values[name].shape != tensor.shape:
            raise ArgumentError(f"{operation}: {name} has shape {values[name].shape}, expected {tensor.shape}")
        if values[name].dtype.kind != tensor.dtype.kind:
            raise ArgumentError(f"{operation}: {name} is {values[name].dtype}, expected {tensor.dtype}")
    return values


def tree(layer: Layer) -> str:
    """The layer and its children, indented, with parameter counts."""
    children = list(layer.named_children())
    count = sum(p.size for p in layer.parameters())
    head = f"{type(layer).__name__}({layer.describe()}"
    tail = f")  # {count:,} parameter{'' if count == 1 else 's'}" if count else ")"
    if not children:
        return head + tail
    lines = [f"({name}): {child!r}".replace("\n", "\n  ") for name, child in children]
    return head + "".join(f"\n  {line}" for line in lines) + "\n" + tail
