"""The examples in the docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import gradexamples

MODULES = [module.name for module in pkgutil.iter_modules(gradexamples.__path__) if module.name != "__main__"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"gradexamples.{name}"))
    assert result.failed == 0
