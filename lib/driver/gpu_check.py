"""gpu-check: builds for this machine's GPU, runs all tests, the sanitizers of CUDA, the lessons and the benchmarks there, and
writes one report and one archive. docs/howto/gpu_check.md says how to use it."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sys

from . import build, gpu, gpu_report, lessons, packages, registers, results, shell
from .shell import ROOT, Failure, say
from .stages import FAILED, PASSED, SKIPPED, Clock, Piece, State, limited, run_stage, tail

STAGES = ("build", "test", "sanitize", "bench")
LIMIT = 9  # minutes of a call with --stage
NOT_FINISHED = 75  # exit status: the same command goes on
NO_GPU = lessons.SKIPPED
TESTS_AT_ONCE = 8  # of one GPU: each test is a process with a context of its own
TESTS_A_PIECE = 40  # of compute-sanitizer, which is slow

SOURCES = ("CMakeLists.txt", "lib", "kernels", "lessons", "benchmarks", "tests")


def source_id():
    """What the sources are, with git or without."""
    whole = hashlib.sha256()
    for name in SOURCES:
        paths = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*"))
        for path in paths:
            if path.is_file() and "__pycache__" not in path.parts:
                whole.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


class Check:
    """One call of the command."""

    def __init__(self, options):
        self.rehearse = options.rehearse
        self.out = pathlib.Path(options.out or build.BUILD / ("rehearsal" if self.rehearse else "gpu-check")).absolute()
        self.gpu = gpu.ask()
        self.source = source_id()
        if options.anew:
            shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True, exist_ok=True)
        self.logs = self.out / "logs"
        self.state = State(self.out, self.source)
        self.clock = Clock()
        self.save = f"{'rehearsal' if self.rehearse else 'gpu-check'}-{self.source}"

    def stage(self, name):
        """Runs a stage; False where it is not finished. Clocks and throttle reasons are noted before and after."""
        pieces = PIECES[name](self)
        before = gpu.clocks()
        finished = run_stage(name, pieces, self.state, self.clock, keep=name != "build")
        self.state.data["clocks"].append({"stage": name, "before": before, "after": gpu.clocks()})
        self.state.data.setdefault("stages", {})[name] = "finished" if finished else "not finished"
        self.state.write()
        return finished


def gpu_check(options):
    check_options(options)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # what `timeout` sends
    found = gpu.ask()
    if found["why"] and not options.rehearse:
        say(f"No GPU can be used here: {found['why']}.\n  hint: {found['remedy']}\n"
            "./gradus gpu-check --rehearse runs all of it that needs none.")
        return NO_GPU
    check = Check(options)
    stages = [options.stage] if options.stage else STAGES
    if options.stage not in (None, "build"):
        need_build(check)
    finished = True
    try:
        for stage in stages:
            check.clock = Clock(options.minutes or (LIMIT if options.stage else None))
            finished = check.stage(stage)
            if not finished or (stage == "build" and gpu_report.failed(check, "build")):
                break
    finally:
        archive = gpu_report.write(check)
    say(f"report: {check.out / 'report.md'}\nto send: {archive}")
    if not finished:
        say(f"Not finished. To go on:\n  {again(options)}")
        return NOT_FINISHED
    bad = gpu_report.failed(check)
    say(f"gpu-check{' --rehearse' if check.rehearse else ''}: " + (f"FAILED: {', '.join(bad)}" if bad else "passed"))
    return 1 if bad else 0


def check_options(options):
    if options.minutes is not None and not options.minutes > 0:
        raise Failure(f"--minutes: expected more than 0, got {options.minutes:g}", 2)


def again(options):
    words = ["./gradus", "gpu-check"]
    words += ["--out", options.out] if options.out else []
    words += ["--stage", options.stage] if options.stage else []
    words += ["--minutes", f"{options.minutes:g}"] if options.minutes else []
    return " ".join([*words, *(["--rehearse"] if options.rehearse else [])])


def need_build(check):
    if not check.state.done("build", "build") or gpu_report.failed(check, "build"):
        raise Failure("gpu-check: these sources are not built yet: ./gradus gpu-check --stage build"
                      + " --rehearse" * check.rehearse, 2)


# build

def build_pieces(check):
    return [Piece("configure", lambda: configure(check)), Piece("build", lambda: compile_all(check), resumable=True),
            Piece("registers", lambda: record_registers(check)), Piece("environment", lambda: environment(check))]


def configure(check):
    if not check.rehearse:
        os.environ.setdefault("GRADUS_CUDA_ARCHS", gpu.architectures(check.gpu["devices"]))
    nvcc = build.find_nvcc()
    if not nvcc and not check.rehearse:
        return FAILED, "there is no CUDA compiler: ./gradus setup --cuda installs one, or CUDACXX names it"
    packages.ensure(packages.TEST, "./gradus gpu-check")
    build.configure("release", ["LESSONS", "TESTS", "BENCHMARKS"], "ON" if nvcc else "OFF")
    known = build.cache("release")
    archs = f", for {known.get('GRADUS_CUDA_ARCHS')}" if nvcc else ""
    return PASSED, f"Release, CUDA: {nvcc or 'no compiler, so none'}{archs}"


def compile_all(check):
    """Ninja goes on where it was stopped."""
    log = check.logs / "build.log"
    status = limited(["cmake", "--build", "--preset", "release", "--parallel", shell.jobs()], log, check.clock,
                     append=check.state.begun("build", "build"))
    if status == 0:
        return PASSED, ""
    say(tail(log, 40))
    return FAILED, f"the build failed: {log}"


def record_registers(check):
    if build.cache("release").get("GRADUS_CUDA") == "OFF":
        return SKIPPED, "no CUDA kernel was compiled"
    record = registers.gather(build.BUILD / "release")
    (check.out / "registers.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    found = registers.problems(record)
    return (FAILED if found else PASSED), "; ".join([registers.summary(record), *found])


def environment(check):
    """What the library itself says of machine and build."""
    programs = sorted((build.BUILD / "release" / "benchmarks").glob("01_*_bench"))
    text = shell.output_of([programs[0], "--environment"]) if programs else ""
    if not text:
        return FAILED, "the benchmark of lesson 01 does not say its --environment"
    (check.out / "environment.json").write_text(text + "\n", encoding="utf-8")
    return PASSED, ""


# test

def test_pieces(check):
    pieces = [Piece("ctest", lambda: ctest(check), resumable=True)]
    for lesson in lessons.all_lessons().values():
        if lesson[:2] <= "04":
            pieces += [piece for program in lessons.programs_of(lesson) for piece in lesson_pieces(check, program)]
    return [*pieces, Piece("NCCL", lambda: nccl(check))]


CTEST_LINE = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (.+?) \.\.+\s*(.*?)\s+([\d.]+) sec", re.MULTILINE)


def ctest(check):
    """All tests; ctest -F goes on where it was stopped."""
    log = check.logs / "ctest.log"
    on = check.state.begun("test", "ctest") and (build.BUILD / "release/Testing/Temporary/CTestCheckpoint.txt").exists()
    devices = max(1, len(check.gpu["devices"]))
    at_once = min(shell.jobs(), TESTS_AT_ONCE * devices) if not check.gpu["why"] else shell.jobs()
    status = limited(["ctest", "--test-dir", build.BUILD / "release", "--output-on-failure", "--no-tests=error", "--parallel",
                      at_once, *(["-F"] if on else [])], log, check.clock, append=on)
    text = log.read_text(errors="replace")
    (check.out / "tests.json").write_text(json.dumps(tests_in(text), indent=1) + "\n", encoding="utf-8")
    return ctest_result(text, status)


def tests_in(text):
    """{name: (word, seconds, output of one that failed)} of ctest's output; of a test that was run twice, the later."""
    found = list(CTEST_LINE.finditer(text))
    tests = {}
    for one, following in zip(found, [*found[1:], None]):
        word = one[2].split("***")[-1].rstrip(":").strip() or "unknown"
        output = text[one.end():following.start() if following else len(text)] if word not in ("Passed", "Skipped") else ""
        tests[one[1]] = {"result": word, "seconds": float(one[3]), "output": output.strip()[-3000:]}
    return tests


def ctest_result(text, status):
    tests = tests_in(text)
    words = [test["result"] for test in tests.values()]
    passed, skipped = words.count("Passed"), words.count("Skipped")
    cuda = [name for name, test in tests.items() if re.search("cuda", name, re.IGNORECASE) and test["result"] == "Passed"]
    emulated = sum(name.startswith("cuda_on_host.") for name in cuda)
    note = (f"{passed} passed ({len(cuda) - emulated} of them name cuda), {skipped} skipped, "
            f"{len(words) - passed - skipped} failed")
    if not tests:
        return FAILED, f"ctest ended with status {status} and ran no test: {tail_text(text)}"
    bad = [name for name, test in tests.items() if test["result"] not in ("Passed", "Skipped")]
    return (FAILED, f"{note}: {', '.join(bad[:20])}{' …' if bad[20:] else ''}") if bad else (PASSED, note)


def tail_text(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def lesson_pieces(check, program):
    if not check.rehearse:
        return [Piece(f"{program} cuda", lambda: lesson(check, program, "cuda"))]
    pieces = [Piece(f"{program} {device}", lambda device=device: lesson(check, program, device, "--quick"))
              for device in ("cpu", "sim")]
    if check.gpu["why"]:
        pieces.append(Piece(f"{program} cuda is refused", lambda: refused(check, program)))
    return pieces


def lesson(check, program, device, *more):
    log = check.logs / f"{program}.{device}.log"
    status = limited([build.BUILD / "release" / "lessons" / program, "--device", device, *more], log, check.clock)
    if status == lessons.SKIPPED:
        return SKIPPED, tail(log, 1)
    return (PASSED, "") if status == 0 else (FAILED, f"exit status {status}: {tail(log, 1)}")


def refused(check, program):
    """Without a GPU a program says in one sentence why, and what to do. One that only looks, as lesson 01 does, runs."""
    log = check.logs / f"{program}.refused.log"
    status = limited([build.BUILD / "release" / "lessons" / program, "--device", "cuda", "--quick"], log, check.clock)
    text = log.read_text(errors="replace")
    error = re.search(r"^error \[E-[\w-]+\]: .+\n  hint: .+", text, re.MULTILINE)
    if status == lessons.SKIPPED:
        return SKIPPED, tail(log, 1)
    if status == 0:
        return (PASSED, "it runs without") if re.search(r"E-CUDA-\w+", text) else (FAILED, "it ran, and said nothing")
    return (PASSED, error[0].replace("\n ", ";")) if error and status > 0 else (FAILED, f"exit status {status}: {tail(log, 1)}")


def nccl(check):
    count = len(check.gpu["devices"])
    if count < 2:
        return SKIPPED, f"{count} GPU{'s' * (count != 1)}: collectives need 2"
    return SKIPPED, f"{count} GPUs, but this version has no collectives"


# sanitize

TOOLS = ("memcheck", "racecheck")
SANITIZED = ("runtime_tests", "ops_tests", "optim_tests")
# These break the device on purpose, which memcheck would report.
BREAKS_DEVICE = re.compile(r"error|fault|sticky|illegal|trap|out_of_range|AddressContract|LaunchBlocking", re.IGNORECASE)


def sanitize_pieces(check):
    if check.rehearse and check.gpu["why"]:
        return [Piece(tool, lambda: (SKIPPED, f"no GPU: {check.gpu['why']}")) for tool in TOOLS]
    sanitizer = find_sanitizer()
    if not sanitizer:
        why = "compute-sanitizer was not found; it is part of the CUDA toolkit (package cuda-sanitizer)"
        return [Piece(tool, lambda: (SKIPPED, why)) for tool in TOOLS]
    pieces = []
    for tool in TOOLS:
        for program in SANITIZED:
            names = [name for name in cuda_tests(program) if not BREAKS_DEVICE.search(name)]
            parts = [names[at:at + TESTS_A_PIECE] for at in range(0, len(names), TESTS_A_PIECE)]
            pieces += [Piece(f"{tool} {program} {number} of {len(parts)}",
                             lambda tool=tool, program=program, part=part, number=number:
                             sanitize(check, sanitizer, tool, program, part, number))
                       for number, part in enumerate(parts, 1)]
    return pieces or [Piece("tests", lambda: (FAILED, "no test names cuda"))]


def find_sanitizer():
    nvcc = build.find_nvcc()
    beside = pathlib.Path(nvcc).resolve().parent / "compute-sanitizer" if nvcc else None
    return shutil.which("compute-sanitizer") or (str(beside) if beside and beside.exists() else None)


def cuda_tests(program):
    """The tests of a program that name cuda."""
    text = shell.output_of([build.BUILD / "release" / "tests" / program, "--gtest_list_tests", "--gtest_filter=*cuda*:*Cuda*"])
    suite, names = "", []
    for line in text.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith(" "):
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return names


def sanitize(check, sanitizer, tool, program, names, number):
    log = check.logs / f"{tool}.{program}.{number}.log"
    status = limited([sanitizer, "--tool", tool, "--error-exitcode", "99", build.BUILD / "release" / "tests" / program,
                      "--gtest_filter=" + ":".join(names)], log, check.clock)
    return sanitizer_result(tool, status, log.read_text(errors="replace"), len(names))


def sanitizer_result(tool, status, text, count):
    """What a run came to: where the tool made no summary and no test ran, it refused."""
    summary = re.search(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (.*)$", text, re.MULTILINE)
    ran = re.search(r"^\[  (PASSED|FAILED)  \] ", text, re.MULTILINE)
    if not summary and not ran:
        said = [line for line in text.splitlines() if line.startswith("=====")] or [tail_text(text)]
        return SKIPPED, f"compute-sanitizer refuses: {said[-1].strip('= ')}"
    if status == 0 and summary:
        return PASSED, f"{count} tests, {summary[1]}"
    return FAILED, f"exit status {status}, {summary[1] if summary else 'no summary'}"


# bench

def bench_pieces(check):
    if check.rehearse:
        return [Piece("benchmarks of the CPU, once", lambda: bench(check, "--device", "cpu", "--quick"), resumable=True)]
    return [Piece("benchmarks on cuda", lambda: bench(check, "--device", "cuda"), resumable=True),
            Piece("benchmarks of cpu and sim", lambda: bench(check), resumable=True),
            Piece("PyTorch", peer)]


def bench(check, *more):
    """./gradus bench, which goes on where it was stopped; its results are copied, whatever they are."""
    log = check.logs / "bench.log"
    on = check.state.begun("bench", " ".join(more))
    folder = ROOT / "results" / results.machine() / check.save
    try:
        status = limited([sys.executable, "-B", ROOT / "lib" / "driver", "bench", "--save", check.save, "--resume", *more], log,
                         check.clock, {"GRADUS_CUDA": build.cache("release").get("GRADUS_CUDA", "")}, append=on)
    finally:
        if folder.exists():
            shutil.copytree(folder, check.out / "results", dirs_exist_ok=True)
    if status == 0:
        return PASSED, ""
    return FAILED, tail(log, 1)


def peer():
    """PyTorch on the GPU is not measured yet; what is said is whether it could be."""
    ask = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.is_available()]))"
    text = shell.output_of(["python3", "-c", ask])
    if not text:
        return SKIPPED, "python3 has no torch"
    version, cuda, usable = json.loads(text.splitlines()[-1])
    return SKIPPED, (f"PyTorch {version} is here (CUDA {cuda}, {'a' if usable else 'no'} GPU for it); this version has no "
                     "peer that measures it on a GPU")


PIECES = {"build": build_pieces, "test": test_pieces, "sanitize": sanitize_pieces, "bench": bench_pieces}
