"""Names to backends, among broken, slow, double and greedy neighbours."""

import itertools
import re
import threading
import time
import warnings

import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.table import BackendTable, BackendWarning
from gradcore.errors import ArgumentError, BackendUnavailable

BROKEN = {
    "missing library": (
        "raise ImportError('libtoy.so.1: cannot open\\nshared object')",
        "libtoy.so.1: cannot open shared",
    ),
    "missing module": ("import no_such_module_at_all", "ModuleNotFoundError"),
    "syntax error": ("def broken(:\n", "SyntaxError"),
    "arbitrary error": ("1 / 0", "ZeroDivisionError"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "bare exception": ("raise BaseException", "BaseException"),
}


def row(table: BackendTable, name: str):
    [found] = [row for row in table.rows() if row.name == name]
    return found


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_between_good_ones(site, kind: str, order: tuple[str, ...]) -> None:
    source, reason = BROKEN[kind]
    for name in order:
        site.install(name, source if name == "b" else None)
    table = BackendTable(site.path)
    with pytest.warns(BackendWarning) as caught:
        rows = {row.name: row for row in [*table.rows(), *table.rows()]}  # the second listing does not warn again
    assert [name for name, row in rows.items() if row.available] == ["numpy", "a", "c"]
    assert reason in rows["b"].reason
    assert rows["b"].reason.startswith("broken: ")
    assert [str(w.message) for w in caught] == [f"backend 'b' (dist-b 1.0) is {rows['b'].reason}"]
    for good in ("a", "c", "numpy"):
        assert table.get(good).name == good
    with pytest.raises(BackendUnavailable, match=r"backend 'b' \(dist-b 1.0\) is broken"):
        table.get("b")


def test_only_what_is_asked_for_is_loaded(site) -> None:
    site.install("quick")
    site.install("slow", "import time\ntime.sleep(5)\n")
    site.install("bad", "1 / 0\n")
    table = BackendTable(site.path)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.get("quick").name == "quick"
        assert table.get("numpy").name == "numpy"
    assert time.perf_counter() - start < 4
    assert not site.loaded("dist-slow")
    assert not site.loaded("dist-bad")


@pytest.mark.parametrize("order", [("alpha", "beta"), ("beta", "alpha")], ids=str)
def test_two_distributions_of_one_name(site, order: tuple[str, str]) -> None:
    for who in order:
        site.install("twin", distribution=f"dist-{who}", priority=99)
    site.install("zeta")
    table = BackendTable(site.path)
    with pytest.raises(BackendUnavailable, match=r"claimed by 2 distributions: dist-alpha 1.0 and dist-beta 1.0"):
        table.get("twin")
    with pytest.warns(BackendWarning, match="'twin' is claimed by 2"):
        twin = row(table, "twin")
    assert (twin.available, twin.distribution) == (False, "dist-alpha 1.0 and dist-beta 1.0")
    assert table.get("zeta").name == "zeta"
    assert table.get("auto").name == "numpy"
    assert not site.loaded("dist-alpha")
    assert not site.loaded("dist-beta")


def test_one_distribution_seen_twice_is_no_conflict(site) -> None:
    site.install("toy")
    site.metadata("dist-toy", "[gradcore.backends]\ntoy = plugin_dist_toy\n", kind="egg-info")
    table = BackendTable(site.path)
    assert table.get("toy").name == "toy"
    assert row(table, "toy").distribution == "dist-toy 1.0"


def test_numpy_cannot_be_taken_over(site) -> None:
    site.install("numpy", priority=99)
    site.install("sly", says="numpy", priority=99)  # another entry name, but says that it is numpy
    table = BackendTable(site.path)
    with pytest.warns(BackendWarning) as caught:
        rows = table.rows()
    assert [(row.name, row.distribution, row.available) for row in rows] == [
        ("numpy", "built in", True),
        ("sly", "dist-sly 1.0", False),
    ]
    assert "dist-numpy 1.0 tries to replace the built-in backend 'numpy': ignored" in [str(w.message) for w in caught]
    assert type(table.get("numpy")) is NumpyBackend
    assert not site.loaded("dist-numpy")
    with pytest.raises(ArgumentError, match="'numpy' is built in"):
        table.register("numpy", lambda name: NumpyBackend())


def test_unknown_name_tells_all(site) -> None:
    site.install("cuda", available=False, reason="no NVIDIA driver", priority=30)
    site.install("ref", priority=20)
    with pytest.raises(BackendUnavailable) as caught:
        BackendTable(site.path).get("cdua")
    assert str(caught.value) == (
        "no backend 'cdua' (did you mean 'cuda'?). Available: ref, numpy. Not available: cuda (no NVIDIA driver)"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ref", "no backend 'ref'. Available: numpy. To install it: pip install gradref"),
        ("cuda:1", "no backend 'cuda:1'. Available: numpy. To install it: pip install gradcuda"),
        ("CUDA", "no backend 'CUDA' (did you mean 'cuda'?). Available: numpy. To install it: pip install gradcuda"),
        ("numpi", "no backend 'numpi' (did you mean 'numpy'?). Available: numpy"),
        ("", "no backend ''. Available: numpy"),
        ("auto:1", "no backend 'auto:1'. Available: numpy"),
    ],
)
def test_unknown_name_hints(site, name: str, text: str) -> None:
    with pytest.raises(BackendUnavailable, match=f"^{re.escape(text)}$"):
        BackendTable(site.path).get(name)


def test_not_available_is_one_line_with_the_reason(site) -> None:
    site.install("toy", available=False, reason="no toy box\nhere", priority=99)
    table = BackendTable(site.path)
    with pytest.raises(BackendUnavailable, match=r"^backend 'toy' is not available: no toy box here$"):
        table.get("toy")
    assert row(table, "toy").reason == "no toy box here"
    backend, why = table.choose("auto")
    assert backend.name == "numpy"
    assert why == "auto: highest priority (10) of those available; toy is not available (no toy box here)"


def test_auto_goes_on_when_the_first_cannot_start(site) -> None:
    site.install("low", priority=50)
    site.install("high", priority=60)
    path = site.folder / "plugin_dist_high.py"
    path.write_text(path.read_text().replace("return Toy(name)", "raise RuntimeError('device is busy')"))
    table = BackendTable(site.path)
    with pytest.warns(BackendWarning, match="device is busy; going on without it"):
        backend, why = table.choose("auto")
    assert backend.name == "low"
    assert "(50)" in why
    assert "RuntimeError: device is busy" in why
    with pytest.raises(BackendUnavailable, match="device is busy"):
        table.get("high")


def test_one_instance_for_each_name(site) -> None:
    site.install("toy", priority=99)
    table = BackendTable(site.path)
    assert table.get("toy") is table.get("toy") is table.get("auto")
    assert table.get("toy:1") is table.get("toy:1")
    assert table.get("toy:1") is not table.get("toy")
    assert table.get("toy:1").name == "toy:1"


def test_threads_get_one_instance() -> None:
    table = BackendTable([])
    made = []

    def slow(name: str) -> NumpyBackend:
        time.sleep(0.02)
        made.append(NumpyBackend())
        made[-1].name = name
        return made[-1]

    table.register("toy", slow)
    start = threading.Barrier(8)
    got = []

    def ask() -> None:
        start.wait()
        got.append(table.get("toy"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert {id(one) for one in got} == {id(made[0])}


def test_a_backend_may_lean_on_another() -> None:
    table = BackendTable([])

    def leaning(name: str) -> NumpyBackend:
        table.get("numpy")
        backend = NumpyBackend()
        backend.name = name
        return backend

    table.register("toy", leaning)
    assert table.get("toy").name == "toy"


def test_installed_while_running(site) -> None:
    table = BackendTable(site.path)
    with pytest.raises(BackendUnavailable):
        table.get("late")
    site.install("late")
    assert table.get("late").name == "late"


def test_register_replace_undo(site) -> None:
    site.install("taken")
    table = BackendTable(site.path)

    def toy(name: str) -> NumpyBackend:
        backend = NumpyBackend()
        backend.name = name
        return backend

    first = table.register("toy", toy)
    old, device = table.get("toy"), table.get("toy:1")
    second = table.register("toy", toy)  # a notebook cell run again
    assert table.get("toy") is not old
    assert table.get("toy:1") is not device
    first.undo()  # no longer its own
    assert row(table, "toy").distribution == "registered by hand"
    with second:
        assert table.get("toy").name == "toy"
    for name in ("toy", "toy:1"):
        with pytest.raises(BackendUnavailable, match="no backend"):
            table.get(name)
    with pytest.raises(ArgumentError, match=r"'taken' belongs to dist-taken 1\.0"):
        table.register("taken", toy)
    with pytest.raises(ArgumentError, match="has no gradcore hooks and is no function"):
        table.register("toy", object())


@pytest.mark.parametrize("name", ["auto", "toy:1", "", "two words"])
def test_register_refuses_odd_names_at_once(name: str) -> None:
    table = BackendTable([])
    with pytest.raises(BackendUnavailable, match="cannot be a backend's name"):
        table.register(name, lambda name: NumpyBackend())
    assert [row.name for row in table.rows()] == ["numpy"]


def test_strict_listing_raises(site) -> None:
    site.install("bad", "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        BackendTable(site.path).rows(strict=True)
