"""Which backend is current: setter, context, variable, thread."""

import threading

import pytest

from gradcore.backend import choose_backend, get_backend, list_backends, register_backend, registry, use_backend
from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ArgumentError, BackendUnavailable


class Toy(NumpyBackend):
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture(autouse=True)
def fresh(site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of the throw-away distributions only, and a thread that has chosen nothing."""
    monkeypatch.setattr(registry, "_table", registry.BackendTable(site.path))
    monkeypatch.setattr(registry, "_thread", registry._Thread())
    site.install("toy", priority=99)
    site.install("other")


def test_default_and_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_backend() == (get_backend("numpy"), "the default")
    monkeypatch.setenv("GRADCORE_BACKEND", "toy")
    assert choose_backend() == (get_backend("toy"), "GRADCORE_BACKEND=toy")
    assert get_backend() is get_backend("toy")
    monkeypatch.setenv("GRADCORE_BACKEND", "auto")
    assert choose_backend() == (get_backend("toy"), "GRADCORE_BACKEND=auto: highest priority (99) of those available")
    monkeypatch.setenv("GRADCORE_BACKEND", "")
    assert get_backend().name == "numpy"
    monkeypatch.setenv("GRADCORE_BACKEND", "toi")
    with pytest.raises(BackendUnavailable, match=r"^GRADCORE_BACKEND=toi: no backend 'toi' \(did you mean 'toy'\?\)"):
        get_backend()


def test_names_and_objects() -> None:
    backend = Toy("mine")
    assert get_backend(backend) is backend
    assert choose_backend(backend) == (backend, "given as an object")
    assert choose_backend("toy")[1] == "asked for by name"
    for wrong in (3, 2.5, NumpyBackend, object(), ["numpy"]):
        with pytest.raises(ArgumentError, match="get_backend: expected a backend's name or a Backend"):
            get_backend(wrong)  # type: ignore[arg-type]


def test_setter_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    use_backend("toy")
    monkeypatch.setenv("GRADCORE_BACKEND", "other")  # the explicit choice is stronger
    assert get_backend().name == "toy"
    assert choose_backend()[1] == "set by use_backend (asked for by name)"
    use_backend("other")
    assert get_backend().name == "other"


def test_context_restores() -> None:
    use_backend("other")
    with use_backend("toy") as toy:
        assert get_backend() is toy is get_backend("toy")
        with use_backend("numpy"):
            assert get_backend().name == "numpy"
        with use_backend("toy:1"):
            assert get_backend().name == "toy:1"
        assert get_backend() is toy
        use_backend("numpy")  # a setter inside lasts to the end of the block
        assert get_backend().name == "numpy"
    assert get_backend().name == "other"


def test_context_restores_after_an_error_and_twice() -> None:
    switch = use_backend(Toy("mine"))
    for _ in range(2):
        with pytest.raises(LookupError, match="mine"), switch:
            raise LookupError(get_backend().name)
        assert get_backend().name == "numpy"


def test_failed_choice_changes_nothing() -> None:
    use_backend("toy")
    with pytest.raises(BackendUnavailable):
        use_backend("tok")
    assert get_backend().name == "toy"


def test_threads_choose_for_themselves() -> None:
    seen: dict[str, str] = {}
    inside, done = threading.Event(), threading.Event()

    def work() -> None:
        seen["start"] = get_backend().name
        with use_backend("other"):
            inside.set()
            done.wait(10)
            seen["with"] = get_backend().name

    use_backend("toy")
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    assert get_backend().name == "toy"
    done.set()
    thread.join()
    assert seen == {"start": "numpy", "with": "other"}


def test_listing_and_registering() -> None:
    assert [(row.name, row.priority) for row in list_backends()] == [("toy", 99), ("numpy", 10), ("other", 1)]
    with register_backend("extra", Toy):
        assert [row.name for row in list_backends()][-1] == "extra"
        assert get_backend("extra").name == "extra"
    assert "extra" not in [row.name for row in list_backends()]


def test_strict_by_argument(site) -> None:
    site.install("bad", "1 / 0\n")
    for ask in (lambda: get_backend("bad", strict=True), lambda: list_backends(strict=True)):
        with pytest.raises(ZeroDivisionError):
            ask()
