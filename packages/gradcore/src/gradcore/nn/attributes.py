"""Walks over what a layer holds: its attributes, and lists, tuples and dicts of them, in definition order.

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
    """(name, object) of these kinds that the layer holds, also in lists, tuples and dicts: "list.index", "dict.key".

    A container that repeats an attribute set before it (`self.saved = x, self.weight`) gives it no second name.
    """
    attributes: set[int] = set()
    for name, value in vars(layer).items():
        if isinstance(value, kinds):
            attributes.add(id(value))
            yield name, value
        elif name != "_last":  # the tape of the last call, a tuple too
            yield from _inside(name, value, kinds, attributes)


def _inside(name: str, value: Any, kinds: tuple[type, ...], known: set[int]) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list | tuple | dict):
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if not isinstance(item, kinds):
            yield from _inside(f"{name}.{key}", item, kinds, known)
        elif id(item) not in known:
            yield f"{name}.{key}", item


def walk(layer: Layer, prefix: str = "", above: tuple[Layer, ...] = ()) -> Iterator[tuple[str, Layer]]:
    """(dotted name, layer) of this layer and all below it, parents first; a layer that holds a parent ends there."""
    yield prefix, layer
    above = (*above, layer)
    for name, child in layer.named_children():
        if not any(child is parent for parent in above):
            yield from walk(child, f"{prefix}.{name}" if prefix else name, above)


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
        if values[name].dtype != tensor.dtype:
            with np.errstate(over="ignore"):
                narrow = values[name].astype(tensor.dtype)
            if not np.array_equal(np.isfinite(narrow), np.isfinite(values[name])):
                raise ArgumentError(
                    f"{operation}: {name} holds {values[name].dtype} values too large for {tensor.dtype}"
                )
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
