"""capture: the same bits as an eager loop, what a step may return, and runs that cross epochs."""

import weakref
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Batches, Parameter, Tensor, nn
from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.registry import register_backend
from gradcore.errors import ArgumentError, BackendMismatch, ShapeError


@pytest.fixture(autouse=True)
def current(backend: Any) -> None:
    """Every test on each backend."""


class Run:
    """A network with dropout and batch norm, its optimizer, its data, and one step."""

    def __init__(self) -> None:
        gradcore.manual_seed(3)
        rng = np.random.default_rng(0)
        self.batches = Batches(rng.standard_normal((22, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, 22), 8, seed=1)
        self.net = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(32, 3)
        )
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = gradcore.optim.Adam(self.net.parameters(), lr=0.01)

    def step(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = self.criterion(self.net(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def test_the_same_bits_as_an_eager_loop() -> None:
    """20 steps over several epochs of 3 batches, the last of 6 rows; the rate changes on the way."""
    eager, captured = Run(), Run()
    losses = []
    for step in range(20):
        if step == 11:
            eager.optimizer.lr = 0.002
        losses.append(eager.step(*eager.batches.next()).item())
    loop = gradcore.capture(captured.step, captured.batches)
    first = loop.run(11)
    captured.optimizer.lr = 0.002
    second = loop.run(9)
    assert first.dtype == np.float32
    assert first.shape == (11,)
    assert [*first.tolist(), *second.tolist()] == losses
    np.testing.assert_equal(captured.net.state_dict(), eager.net.state_dict())
    np.testing.assert_equal(captured.optimizer.state_dict(), eager.optimizer.state_dict())
    assert captured.batches.state_dict() == eager.batches.state_dict()


def test_cutting_a_run_into_pieces_changes_nothing() -> None:
    whole, pieces = Run(), Run()
    expected = gradcore.capture(whole.step, whole.batches).run(10)
    loop = gradcore.capture(pieces.step, pieces.batches)
    found = [loop.run(n) for n in (1, 0, 4, 2, 3)]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_evaluation_in_between() -> None:
    """Another batch size between two runs (case 59's kind) does not disturb the training."""
    plain, disturbed = Run(), Run()
    expected = gradcore.capture(plain.step, plain.batches).run(6)
    loop = gradcore.capture(disturbed.step, disturbed.batches)
    first = loop.run(3)
    disturbed.net.eval()
    with gradcore.no_grad():
        disturbed.net(np.zeros((5, 1, 6, 6), np.float32))
    disturbed.net.train()
    np.testing.assert_array_equal(np.concatenate([first, loop.run(3)]), expected)


def batches() -> Batches:
    return Batches(np.arange(6, dtype=np.float32).reshape(6, 1), np.arange(6), 2, shuffle=False)


def test_a_tuple_of_numbers() -> None:
    """Each with its own type and shape of one number."""

    def step(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return images.sum(), labels.argmax(), images[:1]

    sums, places, firsts = gradcore.capture(step, batches()).run(4)
    assert sums.tolist() == [1.0, 5.0, 9.0, 1.0]
    assert places.tolist() == [1, 1, 1, 1]
    assert places.dtype == np.int64
    assert firsts.tolist() == [0.0, 2.0, 4.0, 0.0]
    (only,) = gradcore.capture(lambda x, y: (x.sum(),), batches()).run(1)
    assert only.tolist() == [1.0]


def test_no_steps() -> None:
    data = batches()
    result = gradcore.capture(lambda x, y: x.sum(), data).run(0)
    assert result.shape == (0,)
    assert result.dtype == np.float32
    assert data.state_dict() == batches().state_dict()


def test_a_result_that_changes_later() -> None:
    """A step may return a parameter or a buffer; what is kept is the value of that step."""
    weight, mean = Parameter([0.0]), nn.Buffer(np.array(0.0, np.float32))

    def step(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weight.copy_(weight + 1.0)
        mean.copy_(mean + 2.0)
        return weight, mean, weight.detach()

    weights, means, views = gradcore.capture(step, batches()).run(3)
    assert weights.tolist() == views.tolist() == [1.0, 2.0, 3.0]
    assert means.tolist() == [2.0, 4.0, 6.0]


def test_results_keep_no_graph_alive() -> None:
    """Case 31: 1000 steps must not hold 1000 graphs until run returns."""
    alive: list[Any] = []

    def step(images: Tensor, labels: Tensor) -> Tensor:
        hidden = images * Parameter([2.0])
        assert sum(ref() is not None for ref in alive) == 0
        alive.append(weakref.ref(hidden))
        return hidden.sum()

    gradcore.capture(step, batches(), graph=False).run(20)
    assert len(alive) == 20


@pytest.mark.parametrize("result", [None, 1.5, np.float32(2.0), [1.0], "loss", (), (1.0,)])
def test_what_is_no_tensor(result: Any) -> None:
    with pytest.raises(ShapeError, match=r"capture: the step must return one number as a tensor .*, got "):
        gradcore.capture(lambda x, y: result, batches()).run(1)


def test_more_than_one_number() -> None:
    with pytest.raises(ShapeError, match=r"one number.*got shape \(2, 1\)"):
        gradcore.capture(lambda x, y: (x.sum(), x), batches()).run(1)


def test_results_of_changing_kind() -> None:
    kinds = iter([Tensor(1.0), (Tensor(1.0),), (Tensor(1.0), Tensor(2.0))] * 2)
    loop = gradcore.capture(lambda x, y: next(kinds), batches(), graph=False)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"capture: .* the same kind of result"):
            loop.run(2)
        loop.run(1)


@pytest.mark.parametrize("steps", [-1, 1.5, True, "3", None])
def test_the_number_of_steps_is_checked(steps: Any) -> None:
    with pytest.raises(ArgumentError, match="capture: the number of steps must be an integer of at least 0"):
        gradcore.capture(lambda x, y: x.sum(), batches()).run(steps)
    assert gradcore.capture(lambda x, y: x.sum(), batches()).run(np.int64(2)).shape == (2,)


def test_a_result_from_elsewhere() -> None:
    class Elsewhere(NumpyBackend):
        name = "elsewhere"

    with register_backend("elsewhere", lambda name: Elsewhere()):
        loop = gradcore.capture(lambda x, y: Tensor(1.0, backend="elsewhere"), batches())
        with pytest.raises(BackendMismatch, match=r"capture: the batches live on .*'elsewhere'"):
            loop.run(1)


def test_an_error_inside_the_step_comes_out_as_it_is() -> None:
    def step(images: Tensor, labels: Tensor) -> Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gradcore.capture(step, batches()).run(3)
