"""One plugin, whatever it does: found without being imported, guarded when called, its error told in one line."""

import re
from types import SimpleNamespace

import pytest

from gradcore.backend import BackendInfo, hookimpl
from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.plugins import Plugin, PluginBroken, find_plugins, is_strict
from gradcore.errors import BackendUnavailable

INFO = BackendInfo("toy", priority=1, available=True)


def plugin(info: object = INFO, create: object = None) -> Plugin:
    """A plugin whose hooks return what is given, or raise it."""

    def answer(result: object) -> object:
        if isinstance(result, BaseException):
            raise result
        return result

    hooks = SimpleNamespace(
        gradcore_backend_info=hookimpl(lambda: answer(info)),
        gradcore_create_backend=hookimpl(lambda name: answer(create)),
    )
    return Plugin("toy", "dist-toy 1.0", lambda: hooks)


def named(name: str) -> NumpyBackend:
    backend = NumpyBackend()
    backend.name = name
    return backend


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (None, "returned None, expected BackendInfo"),
        ({"name": "toy"}, "returned an object of type dict, expected BackendInfo"),
        (BackendInfo("numpy", priority=99, available=True), "BackendInfo.name is 'numpy', the entry point's name"),
        (OSError("no\nsuch  file"), "OSError: no such file"),
        (SystemExit(1), "SystemExit: 1"),
    ],
)
def test_bad_info(info: object, reason: str) -> None:
    with pytest.raises(PluginBroken, match=re.escape("backend 'toy' (dist-toy 1.0) is broken")) as caught:
        plugin(info).info()
    assert reason in caught.value.reason
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("created", "reason"),
    [
        (None, "returned None, expected a Backend"),
        (3, "returned an object of type int"),
        (NumpyBackend, "returned an object of type type"),
        (NumpyBackend(), "the backend's name is 'numpy', asked for was 'toy': set its `name`"),
        (MemoryError(), "MemoryError"),
        (SystemExit(), "SystemExit"),
    ],
)
def test_bad_create(created: object, reason: str) -> None:
    with pytest.raises(PluginBroken, match=re.escape(reason)):
        plugin(create=created).create("toy")


def test_names_of_devices() -> None:
    assert plugin(create=named("toy:0")).create("toy").name == "toy:0"
    assert plugin(create=named("toy:1")).create("toy:1").name == "toy:1"
    for wrong in ("toy", "toy:0", "toy:11"):
        with pytest.raises(PluginBroken, match="asked for was 'toy:1'"):
            plugin(create=named(wrong)).create("toy:1")


def test_a_reason_of_the_plugins_own_passes_through() -> None:
    with pytest.raises(BackendUnavailable, match=r"^no device 7$"):
        plugin(create=BackendUnavailable("no device 7")).create("toy:7")


def test_interrupt_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        plugin(KeyboardInterrupt()).info()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = 1\n", "has no gradcore_backend_info marked with @gradcore.backend.hookimpl"),
        ("def gradcore_backend_info(): ...\n", "has no gradcore_backend_info marked"),  # the marker was forgotten
        ("from gradcore.backend import *\n@hookimpl\ndef gradcore_backend_info(): ...\n", "no gradcore_create_backend"),
        (
            "from gradcore.backend import *\n@hookimpl\ndef gradcore_create_backend(name, device): ...\n",
            "Argument(s) {'device'} are declared in the hookimpl but can not be found in the hookspec",
        ),
        ("from gradcore.backend import *\n@hookimpl\ndef gradcore_creat_backend(name): ...\n", "unknown hook"),
    ],
)
def test_hooks_that_do_not_fit(site, source: str, reason: str) -> None:
    site.install("toy", source)
    [(_, found)] = find_plugins(site.path)
    with pytest.raises(PluginBroken, match=re.escape(reason)):
        found.info()


def test_a_broken_import_is_tried_once(site) -> None:
    site.install("toy", "import os\nos.environ['TOY'] = os.environ.get('TOY', '') + 'x'\n1 / 0\n")
    [(_, found)] = find_plugins(site.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY", "")
        import os

        for ask in (found.info, lambda: found.create("toy")):
            with pytest.raises(PluginBroken, match="ZeroDivisionError"):
                ask()
        assert os.environ["TOY"] == "x"


def test_strict_raises_the_plugins_own_error(site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("toy", "1 / 0\n")
    [(_, found)] = find_plugins(site.path)
    with pytest.raises(PluginBroken):
        found.info()
    with pytest.raises(ZeroDivisionError) as caught:
        found.info(strict=True)
    assert caught.traceback[-1].path.name == "plugin_dist_toy.py"
    monkeypatch.setenv("GRADCORE_STRICT_PLUGINS", "1")
    with pytest.raises(ZeroDivisionError):
        found.info()


def test_strict_still_wraps_exit() -> None:
    with pytest.raises(PluginBroken, match="SystemExit: 3") as caught:
        plugin(SystemExit(3)).info(strict=True)
    assert isinstance(caught.value.__cause__, SystemExit)


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_strict_variable(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("GRADCORE_STRICT_PLUGINS", value)
    assert is_strict() is expected


def test_finding_imports_nothing(site) -> None:
    site.install("toy")
    [(key, found)] = find_plugins(site.path)
    assert (key, found.name, found.distribution) == ("dist-toy:toy", "toy", "dist-toy 1.0")
    assert not site.loaded("dist-toy")


def test_the_same_distribution_twice_has_one_key(site) -> None:
    site.install("toy")
    site.metadata("dist-toy", "[gradcore.backends]\ntoy = plugin_dist_toy\n", kind="egg-info")
    keys = [key for key, _ in find_plugins(site.path)]
    assert len(keys) == 2
    assert set(keys) == {"dist-toy:toy"}


def test_damaged_metadata_hides_nobody(site) -> None:
    site.install("toy")
    site.metadata("dist-damaged", "[gradcore.backends]\nno equals sign\n")
    site.metadata("dist-empty", "")
    (site.folder / "nameless-1.0.dist-info").mkdir()
    (site.folder / "nameless-1.0.dist-info" / "entry_points.txt").write_bytes(b"[gradcore.backends]\nx = \xff\xfe\n")
    found = {one.name: one for _, one in find_plugins(site.path)}
    assert found["toy"].info().available
    with pytest.raises(PluginBroken):
        found["dist-damaged"].info()


@pytest.mark.parametrize("name", ["auto", "cuda:1", "two words"])
def test_reserved_names(site, name: str) -> None:
    site.metadata("dist-odd", f"[gradcore.backends]\n{name} = json\n")
    [(_, found)] = find_plugins(site.path)
    with pytest.raises(PluginBroken, match="cannot be a backend's name"):
        found.info()
