"""The plugin as its users meet it: listed, refused in one line with the reason, passed over by "auto"."""

import subprocess
import sys

import pytest

from gradcore.backend import choose_backend, get_backend, list_backends
from gradcore.errors import ArgumentError, BackendUnavailable
from gradcuda import __version__, plugin, probe

REASON = probe.reason()
absent = pytest.mark.skipif(not REASON, reason="a GPU is here")


def test_is_listed() -> None:
    [row] = [row for row in list_backends() if row.name == "cuda"]
    assert (row.priority, row.available, row.reason) == (30, not REASON, REASON)
    assert row.distribution == f"gradcuda {__version__}"


@absent
@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_asking_for_it_says_why(name: str) -> None:
    with pytest.raises(BackendUnavailable) as caught:
        get_backend(name)
    assert str(caught.value) == f"backend {name!r} is not available: {REASON}"
    with pytest.raises(BackendUnavailable):
        plugin.gradcore_create_backend(name)


@absent
def test_auto_passes_by_and_says_so() -> None:
    _, why = choose_backend("auto")
    assert f"cuda is not available ({REASON})" in why


@absent
def test_the_extension_itself_refuses_politely() -> None:
    from gradcuda import _ext

    with pytest.raises(BackendUnavailable, match=r"^CUDA finds no device: "):
        _ext.create_context(0, False, "auto", [], [])


def test_import_is_silent_and_light() -> None:
    code = "import sys, gradcuda.plugin; print(sorted({'torch', 'ctypes.util'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.gpu
def test_names_of_devices() -> None:
    assert get_backend("cuda") is get_backend("cuda:0")
    assert get_backend("cuda").name == "cuda:0"
    for name in ("cuda:99", "cuda:", "cuda:x"):
        with pytest.raises(BackendUnavailable, match=name):
            get_backend(name)


@pytest.mark.gpu
def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcuda import cuda_backend

    assert cuda_backend(precision="tf32").precision == "tf32"
    assert "direct" in cuda_backend(conv="direct").convolution
    monkeypatch.setenv("GRADCUDA_CONV", "unroll")
    assert cuda_backend().conv == "unroll"
    with pytest.raises(ArgumentError, match="conv: 'winograd' is not one of auto, direct"):
        cuda_backend(conv="winograd")
    monkeypatch.setenv("GRADCUDA_PRECISION", "half")
    with pytest.raises(ArgumentError, match="GRADCUDA_PRECISION: 'half'"):
        cuda_backend()
