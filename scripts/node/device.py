"""The GPUs of this machine, from the driver itself."""

import ctypes
import json
import subprocess
import sys


def devices(timeout=60):
    """A list of {"name", "architecture"}, the architecture as CMake names it ("90"), and why it is empty where it is.

    Asked in a process of its own: a driver that hangs or crashes costs that one.
    """
    try:
        asked = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [], f"the driver did not answer within {timeout} s"
    try:
        told = json.loads(asked.stdout)
    except ValueError:
        return [], f"asking the driver ended with code {asked.returncode}: {asked.stderr.strip()[-300:]}"
    return told["devices"], told["reason"]


def driver():
    """The driver and the devices in one line, from nvidia-smi; empty if it prints nothing."""
    try:
        told = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version,name,memory.total", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return "; ".join(told.stdout.strip().splitlines())


def ask():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as failure:
        return [], f"there is no NVIDIA driver ({failure})"
    status = cuda.cuInit(0)
    if status != 0:
        return [], f"the driver answered {status} to cuInit"
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return [], "the driver knows no device"
    return [described(cuda, index) for index in range(count.value)], ""


def described(cuda, index):
    handle = ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(handle), index)
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, 256, handle)
    # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
    digits = []
    for attribute in (75, 76):
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
        digits.append(str(value.value))
    return {"name": name.value.decode(errors="replace"), "architecture": "".join(digits)}


if __name__ == "__main__":
    found, why = ask()
    print(json.dumps({"devices": found, "reason": why}))
