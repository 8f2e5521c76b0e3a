"""Every example in a docstring of gradcore, run on the installed package."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gradcore


def modules() -> list[str]:
    """All modules but the conformance suite, which is for pytest to collect."""
    found = pkgutil.walk_packages(gradcore.__path__, "gradcore.", onerror=lambda name: None)
    return ["gradcore", *sorted(module.name for module in found if ".suite" not in module.name)]


@pytest.mark.parametrize("name", modules())
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write a file
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0, "the examples above, under 'Captured stdout', do not give what they promise"
