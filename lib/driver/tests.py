"""test: builds everything and runs ctest; with --sanitizers, under AddressSanitizer and ThreadSanitizer."""
import re
import time

from . import build, packages, shell
from .shell import Failure, say

# ThreadSanitizer runs what has threads of its own: (programs, ctest arguments).
THREADED = [
    (["data_tests", "kernels_tests", "runtime_tests"], ["-L", "^unit.(data|kernels|runtime)$"]),
    (["base_tests"], ["-L", "^unit.base$", "-R", "Parallel|Stats|Log"]),
    # Where a rank leaves early, a thread of Gloo 0.5's wakes who waits for a buffer after that may have gone
    # (UnboundBuffer::signalException): those tests are asan's alone.
    (["distributed_tests"], ["-L", "^unit.distributed$", "-R", "Collectives|Ddp|Store", "-E", "Faults|Unused|without_it"]),
    (["backends_tests"], ["-L", "^unit.backends$", "-R", "Sim|Race"]),  # oneDNN's own threads are hidden from it
]


def targets_for(label):
    """What a label needs; everything where that is not known."""
    lesson = re.fullmatch(r"\^?lesson(\d\d)\$?", label or "")
    return [f"lesson_{lesson.group(1)}", f"bench_{lesson.group(1)}"] if lesson else []


def test(options):
    packages.ensure(packages.TEST, "./gradus test")
    start = time.monotonic()
    passed = sanitizers() if options.sanitizers else release(options.label)
    took = shell.duration(time.monotonic() - start)
    say(f"./gradus test{' --sanitizers' if options.sanitizers else ''}: {'passed' if passed else 'FAILED'}, {took}")
    return 0 if passed else 1


def release(label):
    if not build.cache("release").get("GRADUS_BUILD_TESTS") == "ON":
        say("The first build takes about 8 minutes on 2 cores.")
    build.configure("release", ["LESSONS", "TESTS", "BENCHMARKS"], "AUTO")
    build.build("release", targets_for(label))
    return build.ctest("release", ["-L", label] if label else [])


def sanitizers():
    """All unit tests under asan (with ubsan), the threaded ones under tsan. Both run, whatever the first finds.

    Where CUDA's headers are, asan sees the CUDA backend too, compiled for the CPU.
    """
    say("This builds the library twice more: about 15 minutes on 2 cores.")
    build.configure("asan", ["TESTS"], "HOST" if build.find_nvcc() else "OFF")
    build.build("asan")
    passed = [build.ctest("asan", ["-L", "unit|cuda_on_host"], {"UBSAN_OPTIONS": "print_stacktrace=1"})]
    build.configure("tsan", ["TESTS"])
    build.build("tsan", [target for targets, _ in THREADED for target in targets])
    for _, arguments in THREADED:
        passed.append(build.ctest("tsan", arguments, {"TSAN_OPTIONS": "halt_on_error=1 second_deadlock_stack=1"}))
    return all(passed)


def check_label(label, sanitized):
    if label and sanitized:
        raise Failure("test: -L and --sanitizers do not go together; the sanitizers have their own choice of tests", 2)
