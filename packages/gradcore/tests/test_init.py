"""The package's surface: every name that is promised exists, and importing it is light."""

import importlib
import json
import subprocess
import sys

import pytest

import gradcore


@pytest.mark.parametrize("module", ["gradcore", "gradcore.nn", "gradcore.ops", "gradcore.optim", "gradcore.backend"])
def test_all_names_exist_and_are_documented(module: str) -> None:
    found = importlib.import_module(module)
    assert found.__doc__
    assert len(set(found.__all__)) == len(found.__all__)
    for name in found.__all__:
        thing = getattr(found, name)
        if isinstance(thing, type) or callable(thing):
            assert thing.__doc__, f"{module}.{name} says nothing about itself"


def test_importing_loads_no_heavy_neighbour() -> None:
    """No PyTorch, no file format, no random generators, no plugin before they are asked for."""
    code = "import sys, json, gradcore; print(json.dumps(list(sys.modules)))"
    paths = json.dumps(sys.path)
    code = f"import sys; sys.path[:] = {paths}; {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"torch", "safetensors", "matplotlib", "numpy.random", "gradref", "gradcuda", "typer"}
    assert done.stderr == ""


def test_version() -> None:
    assert gradcore.__version__.count(".") == 2
