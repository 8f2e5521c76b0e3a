"""The exceptions: one base, and the built-in that a Python programmer would catch."""

import pickle

import pytest

import gradcore
from gradcore import errors

BUILT_IN = {
    errors.ShapeError: ValueError,
    errors.DTypeError: TypeError,
    errors.ArgumentError: ValueError,
    errors.GraphError: RuntimeError,
    errors.BackendMismatch: TypeError,
    errors.BackendUnavailable: RuntimeError,
    errors.NotSupported: AttributeError,
    errors.CheckpointError: OSError,
}


def test_every_class_is_listed_here() -> None:
    """A new one must be caught by GradcoreError and by a built-in."""
    classes = {c for c in vars(errors).values() if isinstance(c, type)} - {errors.GradcoreError}
    assert classes == set(BUILT_IN)


@pytest.mark.parametrize("kind", BUILT_IN)
def test_how_it_is_caught(kind: type[errors.GradcoreError]) -> None:
    for catch in (gradcore.GradcoreError, BUILT_IN[kind]):
        with pytest.raises(catch, match=r"^matmul: got 3$"):
            raise kind("matmul: got 3")
    assert str(pickle.loads(pickle.dumps(kind("a: b")))) == "a: b"
    assert kind.__doc__


def test_real_errors() -> None:
    """As a user meets them."""
    with pytest.raises(ValueError, match="matmul"):
        gradcore.tensor([[1.0]]) @ gradcore.tensor([[1.0], [2.0]])
    with pytest.raises(TypeError, match="float64"):
        gradcore.tensor([1.0]) + gradcore.tensor([1.0], dtype="float64")
    with pytest.raises(RuntimeError, match="backward"):
        gradcore.tensor(1.0).backward()
    with pytest.raises(OSError, match=r"none.ckpt"):
        gradcore.load_checkpoint("none.ckpt", model=gradcore.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="no backend 'cudda'"):
        gradcore.get_backend("cudda")
