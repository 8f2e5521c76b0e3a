"""no_grad and enable_grad: nested, after exceptions, as decorators, in threads."""

import threading

import pytest

from gradcore import Function, enable_grad, nn, no_grad, tensor

pytestmark = pytest.mark.usefixtures("backend")


class Failing(Function):
    """Raises in its backward."""

    def forward(self, x):
        return self.backend.multiply(x, 1.0)

    def backward(self, grad):
        raise KeyboardInterrupt


def recording() -> bool:
    return (tensor([1.0], requires_grad=True) * 2.0).requires_grad


def test_no_grad_ends_after_an_exception() -> None:
    """Case 29."""
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), no_grad():
            raise error
        assert recording()
    with pytest.raises(KeyboardInterrupt):
        Failing()(tensor([1.0], requires_grad=True)).sum().backward()
    assert recording()


def test_nesting() -> None:
    """Case 29."""
    seen = [recording()]
    with no_grad():
        seen.append(recording())
        with enable_grad():
            seen.append(recording())
            with no_grad():
                seen.append(recording())
            seen.append(recording())
        seen.append(recording())
    seen.append(recording())
    assert seen == [True, False, True, False, True, False, True]


def test_one_object_entered_twice() -> None:
    off = no_grad()
    with off:
        with off:
            assert not recording()
        assert not recording()
    assert recording()


def test_as_decorators() -> None:
    @no_grad()
    def off(depth: int) -> list[bool]:
        return [recording()] + (on(depth - 1) if depth else [])

    @enable_grad()
    def on(depth: int) -> list[bool]:
        return [recording()] + (off(depth - 1) if depth else [])

    assert off(3) == [False, True, False, True]
    assert recording()


def test_a_parameter_made_inside_no_grad() -> None:
    """Case 29."""
    with no_grad():
        w = nn.Parameter([1.0])
        x = tensor([1.0], requires_grad=True)
    (w * x).sum().backward()
    assert (w.grad.tolist(), x.grad.tolist()) == ([1.0], [1.0])


def test_modes_are_of_one_thread() -> None:
    """Case 29's kind: two threads in one decorated function; the first to enter is the first to leave."""
    entered = [threading.Event(), threading.Event()]
    left = threading.Event()
    seen: dict[str, bool] = {}

    @no_grad()
    def inside(me: int, wait_for: threading.Event) -> None:
        entered[me].set()
        wait_for.wait(10)

    def first() -> None:
        inside(0, entered[1])
        seen["first, after"] = recording()
        left.set()

    def second() -> None:
        entered[0].wait(10)
        seen["second, before"] = recording()
        with no_grad():
            inside(1, left)
            seen["second, inside"] = recording()
        seen["second, after"] = recording()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == {"first, after": True, "second, before": True, "second, inside": False, "second, after": True}
