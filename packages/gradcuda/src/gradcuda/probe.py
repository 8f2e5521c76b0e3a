"""Can this machine run gradcuda? Answered without a CUDA context, so that the process may still fork afterwards.

CUDA's own functions would start the driver for good (a fork then breaks it), so this asks libcuda for its version,
which needs no start, and NVML, the library behind nvidia-smi, for the devices. `reason()` is the whole interface.
The final word has csrc/context.cu, when the backend is created.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradcuda.libraries import CUBLAS, candidates, is_loaded

Capability = tuple[int, int]


@dataclass(frozen=True)
class Device:
    name: str
    uuid: str
    capability: Capability


def reason(load: Callable[[str], Any] = ctypes.CDLL, platform: str = sys.platform) -> str:
    """Why the backend cannot run here, in one line; empty if it can. load: opens a shared library by name."""
    if not platform.startswith("linux"):
        return f"CUDA is supported on Linux only, this is {platform}"
    try:
        from gradcuda import _ext
    except ImportError as error:
        return f"its compiled part cannot be loaded: {error}"
    return (
        _driver_reason(load, _ext.CUDA_VERSION)
        or _device_reason(visible(_devices(load)), _ext.ARCHITECTURES.split(","))
        or _cublas_reason(load)
    )


def _driver_reason(load: Callable[[str], Any], built_with: int) -> str:
    version = ctypes.c_int(0)
    try:
        load("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return "no NVIDIA driver (libcuda.so.1 was not found)"
    needed = built_with // 1000 * 1000  # any release of the same major version will do
    if version.value == 0:
        return "no NVIDIA driver is running"
    if version.value < needed:
        return f"the NVIDIA driver is too old: it supports CUDA {_dotted(version.value)}, {_dotted(needed)} is needed"
    return ""


def _device_reason(devices: Sequence[Device] | None, architectures: Sequence[str]) -> str:
    if devices is None:
        return ""  # nobody to ask: the backend's creation will tell
    if not devices:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        return "no NVIDIA device" + ("" if hidden is None else f" (CUDA_VISIBLE_DEVICES={hidden!r})")
    if any(has_code(device.capability, architectures) for device in devices):
        return ""
    first = devices[0]
    major, minor = first.capability
    return f"no code for compute capability {major}.{minor} ({first.name}): built for {', '.join(architectures)}"


def _cublas_reason(load: Callable[[str], Any]) -> str:
    if candidates(CUBLAS) or is_loaded("libcublas.so.13"):
        return ""
    try:
        load("libcublas.so.13")
    except OSError:
        return "cuBLAS was not found (libcublas.so.13): pip install nvidia-cublas"
    return ""


def has_code(capability: Capability, architectures: Sequence[str]) -> bool:
    """Whether a build for these CMake architectures ("75-real", "90", "90-virtual") runs on that device.

    Machine code serves its own major version from its minor version on; PTX serves everything newer.
    """
    for entry in architectures:
        digits, _, kind = entry.partition("-")
        if not digits.isdigit():
            return True  # "native", "all-major", "90a": not for us to judge
        built = divmod(int(digits), 10)
        if kind != "virtual" and built[0] == capability[0] and built[1] <= capability[1]:
            return True
        if kind != "real" and built <= capability:
            return True
    return False


def visible(devices: Sequence[Device] | None) -> Sequence[Device] | None:
    """Those that CUDA_VISIBLE_DEVICES leaves, in its order; it ends at the first entry that does not exist."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if devices is None or chosen is None:
        return devices
    found = []
    for entry in chosen.split(","):
        word = entry.strip()
        if word.startswith("MIG-"):
            return devices  # parts of a device; which one does not matter here
        if word.isdigit():
            match = [device for i, device in enumerate(devices) if i == int(word)]
        else:
            match = [device for device in devices if word and device.uuid.startswith(word)]
        if not match:
            break
        found.append(match[0])
    return found


def _devices(load: Callable[[str], Any]) -> list[Device] | None:
    """All devices by NVML; without NVML, none if the driver lists none, else None: unknown."""
    try:
        nvml = load("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0:
            raise OSError
    except OSError:
        listed = Path("/proc/driver/nvidia/gpus")
        return [] if listed.is_dir() and not any(listed.iterdir()) else None
    try:
        return _ask_nvml(nvml)
    finally:
        nvml.nvmlShutdown()


def _ask_nvml(nvml: Any) -> list[Device] | None:
    count = ctypes.c_uint(0)
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return None
    found = []
    for i in range(count.value):
        handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
        failed = (
            nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(i), ctypes.byref(handle))
            or nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(96))
            or nvml.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(96))
            or nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
        )
        if failed:
            return None
        found.append(Device(name.value.decode(), uuid.value.decode(), (major.value, minor.value)))
    return found


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
