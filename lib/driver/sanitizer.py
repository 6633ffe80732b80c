"""gpu-check's pieces with compute-sanitizer: memcheck and racecheck over the tests that run kernels on cuda."""
import functools
import pathlib
import re
import shutil

from . import build, gpu, shell
from .stages import FAILED, PASSED, SKIPPED, Piece, limited

TOOLS = ("memcheck", "racecheck")
SANITIZED = ("ops_tests", "optim_tests")
# These break the device on purpose, which memcheck would report. (The device contract of runtime_tests is left out too: its
# kernels of one thread wait for the host, which a tool that waits for each kernel turns into a circle.)
BREAKS_DEVICE = re.compile(r"error|fault|sticky|illegal|trap|out_of_range", re.IGNORECASE)

REFUSES = re.compile(r"^=+ .*(not supported|Internal Sanitizer Error|Unable to|Failed to|ermission|before first instrumented).*$", re.MULTILINE)
TESTS_A_PIECE = 40  # a test takes seconds under it


def pieces(check):
    if check.rehearse and check.gpu["why"]:
        return [Piece(tool, lambda: (SKIPPED, f"no GPU: {check.gpu['why']}")) for tool in TOOLS]
    if not find_sanitizer():
        why = "compute-sanitizer was not found; it is part of the CUDA toolkit (package cuda-sanitizer)"
        return [Piece(tool, lambda: (SKIPPED, why)) for tool in TOOLS]
    found = []
    for tool in TOOLS:
        for program in SANITIZED:
            names = [name for name in tests_of(program) if gpu.TEST.search(name) and not BREAKS_DEVICE.search(name)]
            parts = [names[at:at + TESTS_A_PIECE] for at in range(0, len(names), TESTS_A_PIECE)]
            for number, part in enumerate(parts, 1):
                found.append(Piece(f"{tool} {program} {number} of {len(parts)}",
                                   functools.partial(sanitize, check, tool, program, part, number)))
    return found or [Piece("tests", lambda: (FAILED, "no test runs on cuda"))]


def find_sanitizer():
    nvcc = build.find_nvcc()
    beside = pathlib.Path(nvcc).resolve().parent / "compute-sanitizer" if nvcc else None
    return shutil.which("compute-sanitizer") or (str(beside) if beside and beside.exists() else None)


def tests_of(program):
    """The names of a program's tests."""
    text = shell.output_of([build.BUILD / "release" / "tests" / program, "--gtest_list_tests"])
    suite, names = "", []
    for line in text.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith(" "):
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return names


def sanitize(check, tool, program, names, number):
    log = check.logs / f"{tool}.{program}.{number}.log"
    # Or the end of a tensor would be the middle of a cached segment. Training steps count what the cache saves.
    alone = {"GRADUS_NO_MEMORY_CACHING": "1"} if program == "ops_tests" else {}
    # Calls that CUDA refuses are not errors: the vendor libraries probe so, and what ours come to the tests say.
    status = limited([find_sanitizer(), "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "99",
                      build.BUILD / "release" / "tests" / program, "--gtest_filter=" + ":".join(names)], log, check.clock,
                     alone)
    return outcome(status, log.read_text(errors="replace"), len(names))


def outcome(status, text, count):
    """What a run came to. Without a summary the tool did not work: it refused this GPU, or the program was killed."""
    summary = re.search(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (.*)$", text, re.MULTILINE)
    if summary:
        return (PASSED if status == 0 else FAILED), f"{count} tests, exit status {status}, {summary[1]}"
    refusal = REFUSES.search(text)
    if refusal or "[ RUN " not in text:
        said = refusal[0] if refusal else (text.strip().splitlines() or ["it said nothing"])[-1]
        return SKIPPED, f"compute-sanitizer refuses: {said.strip('= ')}"
    return FAILED, f"exit status {status}, no summary"
