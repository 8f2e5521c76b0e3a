"""The placeholder as its users meet it: listed with a reason, refused in one line, passed over by "auto"."""

import subprocess
import sys

import pytest

from gradcore.backend import choose_backend, get_backend, list_backends
from gradcore.errors import BackendUnavailable
from gradcuda import __version__, plugin

LINE = "is not available: not built yet: the CUDA kernels come with a later version"


def test_is_listed_with_the_reason() -> None:
    [row] = [row for row in list_backends() if row.name == "cuda"]
    assert (row.priority, row.available, row.reason, row.capabilities) == (30, False, plugin.REASON, ())
    assert row.distribution == f"gradcuda {__version__}"


@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_asking_for_it_says_why(name: str) -> None:
    with pytest.raises(BackendUnavailable, match=f"^backend '{name}' {LINE}$"):
        get_backend(name)
    with pytest.raises(BackendUnavailable, match=f"^backend '{name}' {LINE}$"):
        plugin.gradcore_create_backend(name)


def test_auto_passes_by_and_says_so() -> None:
    _, why = choose_backend("auto")
    assert f"cuda is not available ({plugin.REASON})" in why


def test_import_is_silent_and_light() -> None:
    code = "import sys, gradcuda.plugin; print(sorted({'torch', 'ctypes.util'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
