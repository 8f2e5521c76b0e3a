"""BackendInfo refuses what a listing could not print; the manager refuses hooks that do not fit."""

from types import SimpleNamespace

import pluggy
import pytest

from gradcore.backend import BackendInfo, hookimpl
from gradcore.backend.hookspec import manager_for


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 7},
        {"priority": "high"},
        {"priority": True},
        {"available": "yes"},
        {"reason": None},
        {"capabilities": "Conv2dOps"},
        {"capabilities": ["Conv2dOps"]},
        {"capabilities": (int,)},
    ],
)
def test_info_refuses_wrong_types(wrong: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=f"BackendInfo: {next(iter(wrong))}"):
        BackendInfo(**{"name": "toy", "priority": 1, "available": True, **wrong})  # type: ignore[arg-type]


def test_info_wants_a_reason_when_not_available() -> None:
    with pytest.raises(ValueError, match="'toy' is not available and gives no reason"):
        BackendInfo("toy", priority=1, available=False)


def test_info_is_frozen() -> None:
    with pytest.raises(AttributeError):
        BackendInfo("toy", priority=1, available=True).priority = 2  # type: ignore[misc]


def test_manager_takes_any_object_with_the_hooks() -> None:
    info = BackendInfo("toy", priority=1, available=True)
    manager = manager_for(SimpleNamespace(gradcore_backend_info=hookimpl(lambda: info)), "toy")
    assert manager.hook.gradcore_backend_info() is info


def test_manager_refuses_a_misspelt_hook() -> None:
    with pytest.raises(pluggy.PluginValidationError, match="gradcore_create_backnd"):
        manager_for(SimpleNamespace(gradcore_create_backnd=hookimpl(lambda name: None)), "toy")
