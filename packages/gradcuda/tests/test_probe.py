"""Every reason why the backend cannot run, with made-up drivers; no GPU is needed or touched."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcuda import probe
from gradcuda.probe import Device, has_code, reason, visible

HOPPER = Device("NVIDIA H200", "GPU-aaaa-1", (9, 0))
PASCAL = Device("NVIDIA P100", "GPU-bbbb-2", (6, 0))


class Driver:
    """libcuda.so.1 that supports a version of CUDA."""

    def __init__(self, version: int) -> None:
        self.version = version

    def cuDriverGetVersion(self, target: Any) -> int:
        target._obj.value = self.version
        return 0


class Management:
    """libnvidia-ml.so.1 that knows some devices."""

    def __init__(self, devices: list[Device]) -> None:
        self.devices = devices
        self.open = 0

    def nvmlInit_v2(self) -> int:
        self.open += 1
        return 0

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, target: Any) -> int:
        target._obj.value = len(self.devices)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, target: Any) -> int:
        target._obj.value = index.value + 1
        return 0

    def nvmlDeviceGetName(self, handle: ctypes.c_void_p, target: Any, size: ctypes.c_uint) -> int:
        target.value = self._at(handle).name.encode()
        return 0

    def nvmlDeviceGetUUID(self, handle: ctypes.c_void_p, target: Any, size: ctypes.c_uint) -> int:
        target.value = self._at(handle).uuid.encode()
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, handle: ctypes.c_void_p, major: Any, minor: Any) -> int:
        major._obj.value, minor._obj.value = self._at(handle).capability
        return 0

    def _at(self, handle: ctypes.c_void_p) -> Device:
        assert handle.value is not None
        return self.devices[handle.value - 1]


class Machine:
    """What the loader finds; a missing library is an OSError, as with ctypes.CDLL."""

    def __init__(self, driver: int | None = 13000, devices: list[Device] | None = None, cublas: bool = True) -> None:
        self.management = Management([HOPPER] if devices is None else devices)
        self.libraries = {"libnvidia-ml.so.1": self.management, **({"libcublas.so.13": object()} if cublas else {})}
        if driver is not None:
            self.libraries["libcuda.so.1"] = Driver(driver)

    def __call__(self, name: str) -> Any:
        if name not in self.libraries:
            raise OSError(f"{name}: cannot open shared object file")
        return self.libraries[name]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(probe, "candidates", lambda names: [])
    monkeypatch.setattr(probe, "is_loaded", lambda name: False)


def test_all_is_well() -> None:
    machine = Machine()
    assert reason(machine) == ""
    assert machine.management.open == 0


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        (Machine(driver=None), "no NVIDIA driver (libcuda.so.1 was not found)"),
        (Machine(driver=0), "no NVIDIA driver is running"),
        (Machine(driver=12080), "the NVIDIA driver is too old: it supports CUDA 12.8, 13.0 is needed"),
        (Machine(devices=[]), "no NVIDIA device"),
        (Machine(devices=[PASCAL]), "no code for compute capability 6.0 (NVIDIA P100): built for "),
        (Machine(cublas=False), "cuBLAS was not found (libcublas.so.13): pip install nvidia-cublas"),
    ],
    ids=["driver", "stopped", "old", "device", "capability", "cublas"],
)
def test_each_reason(machine: Machine, text: str) -> None:
    assert reason(machine).startswith(text)
    assert "\n" not in reason(machine)


def test_one_fitting_device_is_enough() -> None:
    assert reason(Machine(devices=[PASCAL, HOPPER])) == ""


def test_hidden_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert reason(Machine()) == "no NVIDIA device (CUDA_VISIBLE_DEVICES='')"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert reason(Machine(devices=[HOPPER, PASCAL])).startswith("no code for compute capability 6.0")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere(platform: str) -> None:
    assert reason(Machine(), platform) == f"CUDA is supported on Linux only, this is {platform}"


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        (None, [HOPPER, PASCAL]),
        ("", []),
        ("-1", []),
        ("1", [PASCAL]),
        ("1,0", [PASCAL, HOPPER]),
        ("0,7,1", [HOPPER]),
        ("GPU-bbbb", [PASCAL]),
        ("GPU-cccc", []),
        ("MIG-x", [HOPPER, PASCAL]),
    ],
)
def test_visible(monkeypatch: pytest.MonkeyPatch, setting: str | None, found: list[Device]) -> None:
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    assert visible([HOPPER, PASCAL]) == found
    assert visible(None) is None


@pytest.mark.parametrize(
    ("capability", "built", "runs"),
    [
        ((7, 5), ["75-real", "80-real", "90"], True),
        ((8, 9), ["75-real", "80-real", "90"], True),
        ((9, 0), ["75-real", "80-real", "90"], True),
        ((12, 0), ["75-real", "80-real", "90"], True),  # PTX
        ((7, 0), ["75-real", "80-real", "90"], False),
        ((8, 0), ["86-real"], False),
        ((10, 0), ["90-real"], False),
        ((9, 0), ["75-virtual"], True),
        ((6, 1), ["native"], True),
    ],
)
def test_has_code(capability: tuple[int, int], built: list[str], runs: bool) -> None:
    assert has_code(capability, built) is runs


def test_importing_touches_no_gpu() -> None:
    """No library of NVIDIA's is in the process after an import and a listing without a driver."""
    code = (
        "import gradcuda._ext, gradcore; gradcore.list_backends(); "
        "print([l for l in open('/proc/self/maps') if 'libcublas' in l or 'libcudart' in l])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_is_loaded() -> None:
    from gradcuda.libraries import candidates, is_loaded

    assert is_loaded("libc.so.6")
    assert not is_loaded("libnothing.so.1")
    assert all(Path(path).is_file() for path in candidates(("cu13/lib/libcublas.so.13",)))
