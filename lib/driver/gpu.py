"""The GPUs of this machine as its driver and nvidia-smi tell them; needs no build."""
import json
import os
import re
import sys

from . import shell

# What the doctor says (lib/gradus/runtime/diagnosis.cpp), for which a build is needed: the same words.
NO_DRIVER = "libcuda.so.1, the NVIDIA driver's library, was not found"
BROKEN_DRIVER = "the NVIDIA driver's library is there but cannot be loaded: "
NO_DEVICE = "the driver is there, but it finds no device"
INIT = "cuInit fails with error "
HIDDEN = "no device is visible, and CUDA_VISIBLE_DEVICES='{}' is set"
REMEDY = {
    NO_DRIVER: "without an NVIDIA GPU nothing is amiss: use cpu or sim. With one, install its driver; a container must be "
               "started with the GPU (docker run --gpus all)",
    BROKEN_DRIVER: "reinstall the driver; a file on LD_LIBRARY_PATH hides the driver's own",
    NO_DEVICE: "nvidia-smi and lspci tell whether the system sees a GPU; a container must be started with it "
               "(docker run --gpus all)",
    INIT: "see what nvidia-smi says; restarting the machine, or loading the module nvidia-uvm, often helps",
    HIDDEN: "unset CUDA_VISIBLE_DEVICES, or list indices from 0 as nvidia-smi -L shows them; it is read when the program starts",
}

# Asks the driver's library, in a process of its own: loading a broken one may end it.
ASK = """
import ctypes, json
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print(json.dumps({"load": str(error)})); raise SystemExit
status = cuda.cuInit(0)
count = ctypes.c_int(0)
version = ctypes.c_int(0)
cuda.cuDriverGetVersion(ctypes.byref(version))
if status == 0:
    status = cuda.cuDeviceGetCount(ctypes.byref(count))
devices = []
for index in range(count.value):
    device, name, major, minor = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, 255, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    devices.append({"name": name.value.decode(), "capability": [major.value, minor.value]})
print(json.dumps({"status": status, "version": version.value, "devices": devices}))
"""

# The name of a test that runs on cuda: "Streams.order/cuda", "arithmetic/OpTest.forward/add_cuda", "Agreement.sums/cuda_7".
TEST = re.compile(r"/(\w+_)?cuda(_\d+)?$")

CLOCKS = ("driver_version", "name", "compute_cap", "pstate", "temperature.gpu", "power.draw", "power.limit", "clocks.sm",
          "clocks.mem", "clocks.max.sm", "clocks.max.mem", "clocks_throttle_reasons.active", "memory.total", "memory.used",
          "utilization.gpu", "persistence_mode", "ecc.mode.current", "mig.mode.current")
THROTTLE = {0x1: "idle", 0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
            0x20: "thermal (software)", 0x40: "thermal (hardware)", 0x80: "power brake", 0x100: "display clock"}


def ask():
    """What the driver says: {"devices": [{"name", "capability"}], "version", "why", "remedy"}; why is None where a GPU can be used."""
    text = shell.output_of([sys.executable, "-c", ASK])
    try:
        said = json.loads(text)
    except ValueError:
        said = {"load": "the loader ends the process"}
    why, remedy = reason(said)
    return {"devices": said.get("devices", []), "version": said.get("version"), "why": why, "remedy": remedy}


def reason(said):
    """(why no GPU can be used, what to do), or (None, None)."""
    if "load" in said:
        absent = "No such file" in said["load"]
        return (NO_DRIVER, REMEDY[NO_DRIVER]) if absent else (BROKEN_DRIVER + said["load"], REMEDY[BROKEN_DRIVER])
    if said["status"] not in (0, 100):  # 100: CUDA_ERROR_NO_DEVICE
        return f"{INIT}{said['status']}", REMEDY[INIT]
    if not said["devices"]:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        return (HIDDEN.format(hidden), REMEDY[HIDDEN]) if hidden is not None else (NO_DEVICE, REMEDY[NO_DEVICE])
    return None, None


def architectures(devices):
    """GRADUS_CUDA_ARCHS for these devices: "90-real", or "80-real;90-real"."""
    numbers = sorted({10 * major + minor for major, minor in (device["capability"] for device in devices)})
    return ";".join(f"{number}-real" for number in numbers)


def clocks():
    """One dictionary a GPU of what nvidia-smi says now; empty where it is not there."""
    rows = query(CLOCKS)
    if rows is None:  # it refuses all where it does not know one: one by one
        columns = {field: query([field]) for field in CLOCKS} if shell.output_of(["nvidia-smi", "-L"]) else {}
        known = {field: rows for field, rows in columns.items() if rows}
        count = max(map(len, known.values()), default=0)
        rows = [{field: rows[index][field] for field, rows in known.items() if index < len(rows)} for index in range(count)]
    for row in rows:
        row["throttled_by"] = throttle_reasons(row.get("clocks_throttle_reasons.active", ""))
    return rows


def query(fields):
    """[{field: text}] by GPU; None where nvidia-smi is not there or does not know a field."""
    text = shell.output_of(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"])
    if not text:
        return None
    return [dict(zip(fields, map(str.strip, line.split(",")))) for line in text.splitlines()]


def throttle_reasons(mask):
    """["power cap"] of 0x4; [] where nothing holds the clocks back."""
    if not re.fullmatch(r"0x[0-9a-fA-F]+", mask):
        return []
    return [text for bit, text in THROTTLE.items() if int(mask, 16) & bit]
