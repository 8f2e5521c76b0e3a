"""The engine: walks the tape from an output back to the tensors that want a gradient, and applies each rule once.

The tape is made of nodes. A Function is a node with `inputs`, the nodes of its operands (None for a constant); a
Leaf is the end of a path, where a gradient is kept. No node refers to its own output tensor, so a graph is freed by
reference counting alone. Nothing here recurses: nodes are sorted by creation number, which is a topological order.

Next: ops/elementwise.py, the rules; nn/layer.py, which replays a part of the tape.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcore.errors import BackendMismatch, DTypeError, GraphError, ShapeError

if TYPE_CHECKING:
    from gradcore.backend.base import BaseBackend
    from gradcore.backend.protocol import Array
    from gradcore.function import Function
    from gradcore.tensor import Tensor


class _Mode(threading.local):
    recording = True

    def __init__(self) -> None:
        self.before: list[bool] = []


mode = _Mode()
_accumulating = threading.Lock()  # threads whose graphs share a leaf must not lose gradients


class _RecordingSet(contextlib.ContextDecorator):
    """Sets whether operations are recorded, in this thread, and restores it whatever happens inside."""

    _value: bool

    def __enter__(self) -> None:
        mode.before.append(mode.recording)  # the thread's, not ours: threads share one decorator
        mode.recording = self._value

    def __exit__(self, *exception: object) -> None:
        mode.recording = mode.before.pop()


class no_grad(_RecordingSet):
    """Context or decorator: operations inside leave no tape.

    >>> import gradcore
    >>> w = gradcore.tensor([2.0], requires_grad=True)
    >>> with gradcore.no_grad():
    ...     y = w * 3.0
    >>> y.requires_grad
    False
    """

    _value = False


class enable_grad(_RecordingSet):
    """Context or decorator: operations inside are recorded, also within `no_grad`."""

    _value = True


class Leaf:
    """Where the gradient of a parameter (or of any tensor that wants one) is kept. Refers to no tensor."""

    __slots__ = ("backend", "dtype", "grad", "shape")
    inputs = ()

    def __init__(self, array: Array, backend: BaseBackend) -> None:
        self.backend = backend
        self.shape = array.shape
        self.dtype = array.dtype
        self.grad: Tensor | None = None


NOT_ARRAYS: set[Any] = {list, float, int}  # what a rule returns by mistake; tensor.py adds Tensor
Node = Any  # a Function or a Leaf; Function is imported by tensor.py only


def run(
    root: Node,
    grad: Array,
    *,
    borders: Iterable[Node] = (),
    targets: Iterable[Node] | None = None,
    retain_graph: bool = False,
) -> dict[Node, Array]:
    """Gradients of the leaves, of `targets` and of `borders`, given the gradient of root.

    borders: nodes that are not walked past (the inputs of a layer). targets: the only nodes wanted besides the
    borders; None wants every leaf. Returns {node: gradient}; writes nothing but the freed nodes.
    """
    borders = frozenset(borders)
    nodes, leaves = _collect(root, borders)
    useful = set(borders)
    useful.update(leaves if targets is None else targets)
    wanted = frozenset(useful)
    _mark_needs(nodes, useful)

    grads: dict[Node, Array] = {root: grad}
    for node in reversed(nodes):
        output_grad = grads.get(node) if node in wanted else grads.pop(node, None)
        if output_grad is not None and True in node.needs:
            if node.versions is not None and node.saved is not None:
                _check_versions(node)
            results = node.backward(output_grad)
            if results is None:
                raise GraphError(
                    f"{node!r}: backward returned None (a forgotten return?): return a gradient, or a tuple with None "
                    "for each operand that has none"
                )
            _distribute(node, results if results.__class__ is tuple else (results,), grads)
        if not retain_graph:
            node.free()
    return {node: value for node, value in grads.items() if node in wanted}


def accumulate(grads: dict[Node, Array]) -> None:
    """Add the gradients of the leaves to what they hold."""
    from gradcore.tensor import Tensor

    for leaf, array in grads.items():
        if leaf.__class__ is not Leaf:
            continue
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise DTypeError(
                f"backward: a gradient of {array.dtype} {array.shape} arrived at a tensor of {leaf.dtype} {leaf.shape}"
            )
        with _accumulating:
            if leaf.grad is not None:
                array = leaf.backend.add(leaf.grad._array, array)
            leaf.grad = Tensor._wrap(array, leaf.backend)


def start_gradient(operation: str, output: Any, grad: Any) -> Array:
    """The upstream gradient: ones for a single number, else what the caller gave, checked.

    output: a Tensor, or anything with its shape, dtype and backend.
    """
    if grad is None:
        if any(n != 1 for n in output.shape):
            raise ShapeError(
                f"{operation}: the output has shape {output.shape}, not one number: pass its gradient, or sum it first"
            )
        ones: Array = output.backend.full(output.shape, 1, output.dtype)
        return ones
    from gradcore.function import as_tensor

    given, grad = grad, as_tensor(grad, output)
    if grad.backend is not output.backend:
        raise BackendMismatch(
            f"{operation}: a gradient on backend {grad.backend.name!r} for an output on {output.backend.name!r}: "
            "move it with .to(name)"
        )
    if grad.shape != output.shape:
        raise ShapeError(f"{operation}: gradient of shape {grad.shape} for an output of shape {output.shape}")
    if grad.dtype != output.dtype:
        raise DTypeError(f"{operation}: gradient of {grad.dtype} for an output of {output.dtype}")
    array: Array = grad._array
    if grad is given and grad._version is not None:  # the caller may change it, and a leaf may keep it
        array = output.backend.astype(array, grad.dtype)
    return array


def grad(
    output: Tensor,
    inputs: Tensor | Sequence[Tensor],
    grad_output: Any = None,
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list[Any]:
    """Gradients of `output` with respect to `inputs`, a list; no `.grad` is touched. First order only.

    Raises GraphError for an input that is not part of the output's graph, unless allow_unused (then None).

    >>> import gradcore
    >>> x = gradcore.tensor([1.0, 2.0], requires_grad=True)
    >>> gradcore.grad((x * x).sum(), x)
    [Tensor([2., 4.])]
    """
    from gradcore.tensor import Tensor

    refuse_create_graph(create_graph)
    sources = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if output._node is None:
        raise GraphError("grad: the output has no graph: it was made from constants or inside no_grad")
    targets = [source._node for source in sources]
    start = start_gradient("grad", output, grad_output)
    wanted = [node for node in targets if node is not None]
    if not allow_unused:  # before the walk, which uses up the graph
        nodes, leaves = _collect(output._node, frozenset())
        reached = {*nodes, *leaves}
        for i, node in enumerate(targets):
            if node not in reached:
                raise GraphError(f"grad: input {i} is not part of the output's graph (allow_unused=True gives None)")
    found = run(output._node, start, targets=wanted, retain_graph=retain_graph)
    return [Tensor._wrap(found[n], s.backend) if n in found else None for n, s in zip(targets, sources, strict=True)]


def refuse_create_graph(create_graph: bool) -> None:
    """One text for what first-order autograd does not do."""
    if create_graph:
        raise GraphError("create_graph=True: gradients of gradients are not supported, gradcore is first order only")


def _collect(root: Node, borders: frozenset[Node]) -> tuple[list[Function], list[Leaf]]:
    """Functions between root and the borders in creation order, and the leaves at the ends."""
    nodes: list[Function] = []
    leaves: list[Leaf] = []
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        if node in borders:
            continue
        if node.__class__ is Leaf:
            leaves.append(node)
            continue
        inputs = node.inputs
        if inputs is None:
            raise GraphError(
                f"backward: the graph was already freed at {node!r} by an earlier backward: "
                "run the forward again, or pass retain_graph=True to the first backward"
            )
        nodes.append(node)
        for other in inputs:
            if other is not None and other not in seen:
                seen.add(other)
                stack.append(other)
    nodes.sort(key=lambda node: node.number)
    return nodes, leaves


def _mark_needs(nodes: list[Function], useful: set[Node]) -> None:
    """Ascending: which operands of each node lead to something wanted."""
    for node in nodes:
        node.needs = tuple([other in useful for other in node.inputs])
        if True in node.needs:
            useful.add(node)


def _distribute(node: Function, results: tuple[Any, ...], grads: dict[Node, Array]) -> None:
    """Hand each operand its gradient: summed back to its shape if it was broadcast, added to what is there."""
    inputs, backend = node.inputs, node.backend
    if len(results) != len(inputs):
        raise GraphError(f"{node!r}: backward returned {len(results)} gradients for {len(inputs)} operands")
    for i, other in enumerate(inputs):
        array = results[i]
        if array is None or not node.needs[i]:
            continue
        if array.__class__ in NOT_ARRAYS:
            raise GraphError(
                f"{node!r}: backward returned a {type(array).__name__}, expected a tuple of backend arrays and None"
            )
        if array.shape != node.shapes[i]:
            if not node.broadcasts:
                raise ShapeError(
                    f"{node!r}: backward returned shape {array.shape} for operand {i} of shape {node.shapes[i]}"
                )
            array = backend.sum_to(array, node.shapes[i])
        before = grads.get(other)
        grads[other] = array if before is None else backend.add(before, array)


def _check_versions(node: Function) -> None:
    for version, seen in node.versions:
        if version[0] != seen:
            raise GraphError(
                f"{node!r}: a tensor that backward needs was changed in place after the forward "
                "(copy_ or an optimizer step): run backward first, or the forward again"
            )
