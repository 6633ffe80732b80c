"""What gpu-check builds, tests and measures, piece by piece. Each piece returns what came of it and a note."""
import contextlib
import json
import os
import re
import shutil
import sys

from . import build, gpu, lessons, packages, registers, results, shell
from .shell import ROOT, say
from .stages import FAILED, PASSED, SKIPPED, OutOfTime, Piece, limited, tail

TESTS_AT_ONCE = 8  # on one GPU: each test is a process with a context of its own


def build_pieces(check):
    return [Piece("configure", lambda: configure(check), needed=True),
            Piece("build", lambda: compile_all(check), resumable=True, needed=True),
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


def test_pieces(check):
    pieces = [Piece("ctest", lambda: ctest(check), resumable=True)]
    for lesson in lessons.all_lessons().values():
        if lesson[:2] <= "04":
            pieces += [piece for program in lessons.programs_of(lesson) for piece in lesson_pieces(check, program)]
    return [*pieces, Piece("NCCL", lambda: nccl(check))]


GOOD = ("Passed", "Skipped")
CTEST_LINE = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (.+?) \.\.+\s*(.*?)\s+([\d.]+) sec", re.MULTILINE)


def ctest(check):
    """All tests; ctest -F goes on where it was stopped. What fails beside others, which use memory, gets a chance alone."""
    log = check.logs / "ctest.log"
    on = check.state.begun("test", "ctest") and (build.BUILD / "release/Testing/Temporary/CTestCheckpoint.txt").exists()
    at_once = shell.jobs() if check.gpu["why"] else min(shell.jobs(), TESTS_AT_ONCE * len(check.gpu["devices"]))
    command = ["ctest", "--test-dir", build.BUILD / "release", "--output-on-failure", "--no-tests=error", "--parallel"]
    status = limited([*command, at_once, *(["-F"] if on else [])], log, check.clock, append=on)
    tests = tests_in(log.read_text(errors="replace"))
    if not tests:
        return FAILED, f"ctest ended with status {status} and ran no test: {tail(log, 1)}"
    failed = [name for name, test in tests.items() if test["result"] not in GOOD]
    if 0 < len(failed) <= 40 and at_once > 1:
        again = check.logs / "ctest_alone.log"
        with contextlib.suppress(OutOfTime):
            limited([*command, 1, "-R", f"^({'|'.join(map(re.escape, failed))})$"], again, check.clock)
        tests.update({name: {**test, "alone": True} for name, test in tests_in(again.read_text(errors="replace")).items()})
    (check.out / "tests.json").write_text(json.dumps(tests, indent=1) + "\n", encoding="utf-8")
    return ctest_result(tests, check.gpu["why"] is None)


def tests_in(text):
    """{name: (word, seconds, output of one that failed)} of ctest's output; of a test that was run twice, the later."""
    found = list(CTEST_LINE.finditer(text))
    tests = {}
    for one, following in zip(found, [*found[1:], None]):
        word = one[2].split("***")[-1].rstrip(":").strip() or "unknown"
        output = text[one.end():following.start() if following else len(text)] if word not in GOOD else ""
        tests[one[1]] = {"result": word, "seconds": float(one[3]), "output": output.strip()[-3000:]}
    return tests


def ctest_result(tests, has_gpu):
    """(status, counts and the names of those that failed); with a GPU some test must have run on it."""
    def named(choose):
        return [name for name, test in tests.items() if choose(test)]

    bad, alone = named(lambda test: test["result"] not in GOOD), named(lambda test: "alone" in test and test["result"] in GOOD)
    passed = named(lambda test: test["result"] == "Passed")
    on_cuda = sum(bool(gpu.TEST.search(name)) for name in passed)
    emulated = sum(name.startswith("cuda_on_host.") for name in passed)  # each a program of many
    note = (f"{len(passed)} passed, {on_cuda} of them on cuda, {emulated} groups on an emulated one; "
            f"{len(tests) - len(passed) - len(bad)} skipped; {len(bad)} failed")
    note += f": {', '.join(bad[:20])}{' …' * (len(bad) > 20)}" if bad else ""
    note += f"; failed beside others and passed alone: {', '.join(alone)}" if alone else ""
    if has_gpu and not on_cuda:
        return FAILED, note + "; no test ran on cuda"
    return (FAILED if bad else PASSED), note


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
    error = re.search(r"^(error \[E-[\w-]+\]|blocking E-[\w-]+): .+\n  hint: .+", text, re.MULTILINE)
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


def bench_pieces(check):
    if check.rehearse:
        return [Piece("benchmarks of the CPU, once", lambda: bench(check, "--device", "cpu", "--quick"), resumable=True)]
    return [Piece("benchmarks on cuda", lambda: bench(check, "--device", "cuda"), resumable=True),
            Piece("benchmarks of cpu and sim", lambda: bench(check), resumable=True),
            Piece("PyTorch", lambda: peer(check))]


def bench(check, *more, env=None):
    """./gradus bench, which goes on where it was stopped; its results are copied, whatever they are."""
    log = check.logs / "bench.log"
    on = check.state.begun("bench", " ".join(more))
    folder = ROOT / "results" / results.machine() / check.save
    try:
        status = limited([sys.executable, "-B", ROOT / "lib" / "driver", "bench", "--save", check.save, "--resume", *more], log,
                         check.clock, {"GRADUS_CUDA": build.cache("release").get("GRADUS_CUDA", ""), **(env or {})}, append=on)
    finally:
        if folder.exists():
            shutil.rmtree(check.out / "results", ignore_errors=True)  # other sources'
            shutil.copytree(folder, check.out / "results")
    if status == 0:
        return PASSED, ""
    return FAILED, tail(log, 1)


def peer(check):
    """PyTorch's train steps on the same GPU, where python3 has a PyTorch that can use it."""
    ask = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda, torch.cuda.is_available()]))"
    text = shell.output_of(["python3", "-c", ask])
    if not text:
        return SKIPPED, "python3 has no torch"
    version, cuda, usable = json.loads(text.splitlines()[-1])
    if not usable:
        return SKIPPED, f"PyTorch {version} (CUDA {cuda}) finds no GPU that it can use"
    status, note = bench(check, "--peer", "torch", "--device", "cuda", "cnn_step", "simple_net_step", "small_net_step",
                         env={"GRADUS_TORCH_PYTHON": "python3"})
    return status, note or f"PyTorch {version}"
