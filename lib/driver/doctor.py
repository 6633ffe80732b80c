"""doctor, setup, clean, --version: what is there, what is missing, and what to do."""
import os
import pathlib
import re
import shutil
import sys

from . import build, packages, peer, shell, sysroot
from .shell import ROOT, Failure, say

DATA = "/usr/share/datasets/fashion-mnist"
IMAGES = "train-images-idx3-ubyte.gz"


def version():
    project = re.search(r"project\(gradus VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    return f"Gradus {project.group(1)} ({shell.revision()})"


def first_line(command):
    return shell.output_of(command).split("\n")[0]


def package_lines():
    """(found, name, what was found or what to do) for each package of learn and test."""
    if sysroot.root():
        return [(True, "libraries", f"of GRADUS_SYSROOT, in {sysroot.root()}")]
    if not shutil.which("apt-get"):
        return []
    missing = set(packages.missing(packages.TEST))
    lines = []
    for name in packages.TEST:
        found = name not in missing
        text = shell.output_of(["dpkg-query", "-W", "-f=${Version}", name]) if found else ""
        need = "learn and test" if name in packages.LEARN else "test"
        lines.append((found, name, text or ("on the PATH" if found else f"./gradus setup (for {need})")))
    return lines


def cuda_lines():
    nvcc, driver = build.find_nvcc(), build.has_driver()
    release = re.search(r"release ([\d.]+)", shell.output_of([nvcc, "--version"])) if nvcc else None
    return [(None, "CUDA compiler", f"{nvcc}, {release.group(1)}" if release else
             "none: lessons run on the CPU (./gradus setup --cuda installs one)"),
            (None, "NVIDIA driver", "loaded" if driver else "none: no GPU can be used")]


def doctor(_):
    compiler = first_line(["c++", "--version"]) or first_line(["g++", "--version"])
    space = shutil.disk_usage(ROOT).free / 2**30
    data = pathlib.Path(os.environ.get("GRADUS_DATA") or DATA) / IMAGES
    lines = [
        (sys.version_info >= (3, 9), "Python", sys.version.split()[0]),
        (bool(compiler), "C++ compiler", compiler or "none: ./gradus setup"),
        (bool(first_line(["cmake", "--version"])), "CMake", first_line(["cmake", "--version"]) or "none: ./gradus setup"),
        *package_lines(),
        (data.exists(), "Fashion-MNIST", str(data.parent) if data.exists() else
         "none: ./gradus setup, or lesson 04 with --data DIR"),
        (space > 3, "free disk space", f"{space:.0f} GiB (3 are enough)"),
        (None, "cores, memory", f"{shell.jobs()} compilers at once, {shell.memory_gib():.0f} GiB"),
        *cuda_lines(),
    ]
    say(version())
    for found, name, text in lines:
        say(f"{ {True: 'ok', False: 'MISSING', None: 'info'}[found]:<8}{name:<24}{text}")
    if not shutil.which("apt-get"):
        say(packages.ELSEWHERE)
    missing = [name for found, name, _ in lines if found is False]
    say("Whether a GPU can be used here, and if not, why: ./gradus learn 01")
    say(f"missing: {', '.join(missing)}" if missing else "Nothing is missing.")
    return 1 if missing else 0


def setup(options):
    wanted = list(packages.TEST)
    for chosen, names in ((options.dev, packages.DEV), (options.report, packages.REPORT),
                          (options.cuda or options.peer, packages.VENV)):
        wanted += names if chosen else []
    if not packages.ensure(wanted, "./gradus setup"):
        say(packages.ELSEWHERE)
    if options.cuda:
        setup_cuda()
    if options.peer:
        peer.setup_torch()
    say("Set up. Next: ./gradus learn --quick, or ./gradus test")
    return 0


def setup_cuda():
    """A CUDA toolkit in build/cuda-venv, from NVIDIA's Python wheels: no root, no system-wide change."""
    if build.find_nvcc():
        say(f"CUDA compiler: {build.find_nvcc()}")
        return
    say("Fetching a CUDA toolkit into build/cuda-venv: about 2.4 GB, 1 to 10 minutes.")
    wheels = ["cuda-toolkit[nvcc,cudart,cublas,cccl,cupti,nvrtc,crt,nvvm]", "nvidia-cudnn-cu13", "nvidia-nccl-cu13"]
    if shell.run([sys.executable, "-m", "venv", build.CUDA_VENV]) != 0 or \
            shell.run([build.CUDA_VENV / "bin" / "pip", "install", "-q", *wheels]) != 0:
        shutil.rmtree(build.CUDA_VENV, ignore_errors=True)
        raise Failure("setup --cuda: pip could not fetch the toolkit; its message is above.")
    for toolkit in build.CUDA_VENV.glob("lib/python3*/site-packages/nvidia/cu*"):
        link_libraries(toolkit)


def link_libraries(toolkit):
    """The wheels have libx.so.13 only and no lib64; without them CMake silently takes another toolkit's files."""
    if not (toolkit / "lib64").exists():
        (toolkit / "lib64").symlink_to("lib")
    for library in (toolkit / "lib").glob("lib*.so.*"):
        plain = library.with_name(library.name.split(".so.")[0] + ".so")
        if not plain.exists():
            plain.symlink_to(library.name)


def clean(_):
    if not build.BUILD.exists():
        say("Nothing to clean.")
        return 0
    size = sum(path.lstat().st_size for path in build.BUILD.rglob("*") if not path.is_dir())
    shutil.rmtree(build.BUILD)
    say(f"Removed build/ ({size / 2**20:.0f} MiB). Results and packages stay.")
    return 0
