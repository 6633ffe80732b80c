"""Configuring and building with CMake's presets, in build/<preset>."""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil

from . import packages, shell, sysroot
from .shell import ROOT, Failure, say

BUILD = ROOT / "build"
CUDA_VENV = BUILD / "cuda-venv"


def has_driver():
    """True where an NVIDIA driver is loaded."""
    return pathlib.Path("/proc/driver/nvidia/version").exists() or bool(shell.output_of(["nvidia-smi", "-L"]))


def find_nvcc():
    """The path of nvcc: $CUDACXX, setup --cuda's, the PATH's, or the usual folder's; "" where there is none."""
    named = shutil.which(os.environ.get("CUDACXX", ""))
    own = sorted(CUDA_VENV.glob("lib/python3*/site-packages/nvidia/cu*/bin/nvcc"))
    usual = "/usr/local/cuda/bin/nvcc"
    return named or (str(own[-1]) if own else shutil.which("nvcc") or (usual if os.path.exists(usual) else ""))


def cache(preset):
    """CMakeCache.txt as a dictionary; empty where the preset was not configured."""
    path = BUILD / preset / "CMakeCache.txt"
    if not path.exists():
        return {}
    return dict(re.findall(r"^([\w-]+):\w+=(.*)$", path.read_text(), re.MULTILINE))


def options_for(parts, cuda):
    """CMake options that switch on `parts` of LESSONS, TESTS, BENCHMARKS. Parts once on stay on."""
    options = {}
    for part in ("LESSONS", "TESTS", "BENCHMARKS"):
        if part in parts:
            options[f"GRADUS_BUILD_{part}"] = "ON"
    options["GRADUS_CUDA"] = os.environ.get("GRADUS_CUDA") or cuda
    nvcc = find_nvcc()
    if nvcc and options["GRADUS_CUDA"] != "OFF":
        options["CMAKE_CUDA_COMPILER"] = nvcc
        options["CUDAToolkit_ROOT"] = str(pathlib.Path(nvcc).parents[1])
    for name in ("GRADUS_WERROR", "GRADUS_CUDA_ARCHS"):
        if name in os.environ:
            options[name] = os.environ[name]
    options["GRADUS_SYSROOT"] = str(sysroot.root() or "")
    return options


@contextlib.contextmanager
def alone(preset):
    """Keeps other ./gradus commands out of build/<preset>: two builds at once take files from each other."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f"{preset}.lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another ./gradus builds in build/{preset}; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def configure(preset, parts, cuda="OFF"):
    """Runs CMake where something is new; explains what CMake looks for where it fails."""
    known = cache(preset)
    options = options_for(parts, cuda)
    if not known:
        for part in ("LESSONS", "TESTS", "BENCHMARKS"):
            options.setdefault(f"GRADUS_BUILD_{part}", "OFF")
    elif (BUILD / preset / "build.ninja").exists() and all(known.get(k, "") == v for k, v in options.items()):
        return
    if not shutil.which("cmake"):
        raise Failure("CMake is not installed.\n" + packages.ELSEWHERE)
    command = ["cmake", "--preset", preset, *(f"-D{k}={v}" for k, v in options.items())]
    with alone(preset):
        status = shell.run(command)
    if status != 0:
        if not shutil.which("apt-get"):
            say(packages.ELSEWHERE)
        raise Failure(f"CMake could not configure build/{preset}; its message is above. ./gradus doctor says what "
                      "is missing; ./gradus clean forgets earlier settings.")


def build(preset, targets=()):
    """Builds `targets`, or everything."""
    wanted = ["--target", *targets] if targets else []
    with alone(preset):
        status = shell.run(["cmake", "--build", "--preset", preset, "--parallel", shell.jobs(), *wanted])
    if status != 0:
        raise Failure(f"The build in build/{preset} failed; the compiler's message is above.")


def ctest(preset, arguments=(), env=None):
    """Runs ctest in build/<preset>; True where all passed."""
    command = ["ctest", "--test-dir", BUILD / preset, "--output-on-failure", "--no-tests=error", "--parallel",
               shell.jobs(), *arguments]
    return shell.run(command, env={**os.environ, **(env or {})}) == 0
