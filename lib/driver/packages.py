"""The packages that each command needs: says what is missing, then installs it with apt."""
import os
import re
import shlex
import shutil
import sys

from . import shell
from .shell import Failure, say

# ocl-icd-opencl-dev: Debian 12's CMake package of oneDNN looks for OpenCL.
LEARN = ["g++", "cmake", "ninja-build", "libdnnl-dev", "ocl-icd-opencl-dev", "libgloo-dev", "libfmt-dev",
         "libcli11-dev", "nlohmann-json3-dev", "zlib1g-dev", "dataset-fashion-mnist"]
BENCH = [*LEARN, "libbenchmark-dev"]
TEST = [*BENCH, "libgtest-dev", "libgmock-dev"]
DEV = ["chromium", "clang", "clang-format", "clang-tidy", "ccache"]
REPORT = ["python3-matplotlib", "python3-scipy", "libbenchmark-tools"]
VENV = ["python3-venv"]

# A program on the PATH is good enough, wherever it came from.
PROGRAMS = {"g++": "g++", "cmake": "cmake", "ninja-build": "ninja", "clang": "clang", "ccache": "ccache",
            "clang-format": "clang-format", "clang-tidy": "clang-tidy"}

ELSEWHERE = """\
This system has no apt-get, so ./gradus installs nothing. CMake looks for:
  what                       usual package names (Fedora / Arch / Homebrew / conda-forge)
  C++20 compiler             gcc-c++ 12 or newer, clang 14 or newer
  CMake 3.25, Ninja          cmake ninja-build / cmake ninja
  oneDNN 2.6 or newer        onednn-devel / onednn / onednn / onednn        (CMake package dnnl)
  Gloo                       - / - / - / libgloo                            (CMake package Gloo)
  fmt                        fmt-devel / fmt                                (CMake package fmt)
  CLI11                      cli11-devel / cli11                            (CMake package CLI11)
  nlohmann-json              json-devel / nlohmann-json / nlohmann_json     (CMake package nlohmann_json)
  zlib                       zlib-devel / zlib                              (CMake module ZLIB)
  tests: GoogleTest          gtest-devel gmock-devel / gtest / googletest   (CMake module GTest)
  tests: Google Benchmark    google-benchmark-devel / benchmark / google-benchmark
  data: Fashion-MNIST        four IDX files, https://github.com/zalandoresearch/fashion-mnist; --data DIR"""

APT_OPTIONS = ["-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0"]


def missing(packages):
    """Those of `packages` that are not installed, in order."""
    wanted = [name for name in packages if not (name in PROGRAMS and shutil.which(PROGRAMS[name]))]
    if not wanted:
        return []
    query = ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n"]
    present = set()
    for name in wanted:  # one by one: dpkg-query fails as a whole where one name is unknown
        if shell.output_of([*query, name]).split("\n")[0].endswith(" installed"):
            present.add(name)
    return [name for name in wanted if name not in present]


def size_of(packages):
    """(download, disk) as apt words them; ("", "") where apt does not know the packages or has no lists."""
    text = shell.output_of(["apt-get", "--print-uris", *APT_OPTIONS, "install", *packages])
    size = r"([\d.,]+ ?\w?B)"  # the second pattern of each is that of apt 3
    download = re.search(f"Need to get {size}|Download size: {size}", text)
    disk = re.search(f"operation, {size} of additional|Space needed: {size}", text)
    return tuple(next(filter(None, found.groups())) if found else "" for found in (download, disk))


def minutes_for(download):
    """About how long downloading and unpacking takes, at 5 MB/s."""
    number, _, unit = download.partition(" ")
    megabytes = float(number.replace(",", "")) * {"kB": 1e-3, "MB": 1, "GB": 1e3}.get(unit, 0)
    return max(1, round(megabytes / 5 / 60 + megabytes / 150))


def apt_prefix():
    """What to write before apt-get to be allowed to install; None where nothing helps without asking."""
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    if sys.stdin.isatty() and not os.environ.get("CI"):
        return ["sudo"]  # may ask for the password
    return ["sudo", "-n"] if shell.output_of(["sudo", "-n", "echo", "yes"]) == "yes" else None


def by_hand(names):
    install = "apt-get install " + shlex.join([*APT_OPTIONS[:2], *names])
    return Failure("Installing packages needs root. Run:\n"
                   f"  sudo sh -c 'apt-get update && {install}'\nand then this command again.")


def say_size(names):
    """Says what an installation costs; False where apt has no lists of these packages yet."""
    download, disk = size_of(names)
    if download:
        say(f"With what they depend on: {download} to download, {disk or 'little'} on the disk, "
            f"about {minutes_for(download)} min.")
    return bool(download)


def install(names):
    """Installs with apt as root or with sudo; a Failure names the command where neither is possible."""
    prefix = apt_prefix()
    sized = say_size(names)
    if prefix is None:
        raise by_hand(names)
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    if not sized:
        say("apt has no list of them yet; fetching it.")
        shell.run([*apt, "update", "-qq"])
        say_size(names)
    command = [*apt, "install", "-qq", *APT_OPTIONS, *names]
    if shell.run(command) == 0:
        return
    say("That failed; perhaps apt's lists are old. Once more, with new ones.")
    if shell.run([*apt, "update", "-qq"]) != 0 or shell.run(command) != 0:
        raise Failure(f"apt-get could not install {' '.join(names)}; its messages are above.")


def ensure(wanted, purpose):
    """Installs what is missing, after saying what, how large and how long. False on a system without apt."""
    if os.environ.get("GRADUS_SYSROOT"):
        return True  # the libraries are in that folder, and nothing is to be downloaded
    if not shutil.which("apt-get"):
        return False
    names = missing(wanted)
    if names:
        say(f"{purpose} needs {len(names)} more package{'s' * (len(names) > 1)}: {' '.join(names)}")
        install(names)
    return True
