"""gpu-check: builds for this machine's GPU, runs all tests, the sanitizers of CUDA, the lessons and the benchmarks there, and
writes one report and one archive. docs/howto/gpu_check.md says how to use it."""
import fcntl
import hashlib
import pathlib
import shutil
import signal

from . import build, gpu, gpu_pieces, gpu_report, lessons, sanitizer
from .shell import ROOT, Failure, say
from .stages import Clock, State, run_stage

STAGES = {"build": gpu_pieces.build_pieces, "test": gpu_pieces.test_pieces, "sanitize": sanitizer.pieces, "bench": gpu_pieces.bench_pieces}
LIMIT = 9  # minutes of a call with --stage
NOT_FINISHED = 75  # exit status: the same command goes on
NO_GPU = lessons.SKIPPED
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
        self.lock = open(self.out / "lock", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the process ends
        except OSError:
            raise Failure(f"another gpu-check is at work in {self.out}") from None
        self.logs = self.out / "logs"
        self.state = State(self.out, self.source)
        self.clock = Clock()
        self.save = f"{'rehearsal' if self.rehearse else 'gpu-check'}-{self.source}"

    def stage(self, name):
        """Runs a stage; False where it is not finished. Clocks and throttle reasons are noted before and after."""
        pieces = STAGES[name](self)
        before = gpu.clocks()
        finished = run_stage(name, pieces, self.state, self.clock, keep=name != "build")
        self.state.data["clocks"].append({"stage": name, "before": before, "after": gpu.clocks()})
        self.state.data.setdefault("stages", {})[name] = "finished" if finished else "not finished"
        self.state.write()
        return finished


def stop(*_):
    """SIGTERM, which `timeout` sends, ends it as Ctrl-C does."""
    raise KeyboardInterrupt


def gpu_check(options):
    check_options(options)
    signal.signal(signal.SIGTERM, stop)
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
