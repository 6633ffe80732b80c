"""bench --peer torch: the same work here and in PyTorch, taking turns in one run.

Both sides are programs that live through the run (worker.py) and idle while the other is timed, on the same cores. Before a case
is timed, both have computed the same numbers from the same weights and data; where they differ, it fails.
"""
import datetime
import json
import math
import os
import pathlib
import sys

from . import build, conclusions, google_benchmark, launches, peer_cases, results, shell
from .shell import ROOT, Failure, say
from .worker import Worker

VENV = build.BUILD / "torch-venv"
OURS = "gradus"
FULL, QUICK = (9, 0.1), (1, 0.01)  # samples, and the least seconds of one


def torch_python():
    """The Python that has PyTorch: $GRADUS_TORCH_PYTHON, or setup --peer torch's."""
    named = os.environ.get("GRADUS_TORCH_PYTHON")
    python = named or VENV / "bin" / "python"
    if shell.output_of([python, "-c", "import torch, numpy; print('yes')"]) != "yes":
        where = f"GRADUS_TORCH_PYTHON={named} has no torch and numpy" if named else "PyTorch is not installed for it"
        raise Failure(f"bench --peer torch: {where}. ./gradus setup --peer torch fetches it (5.4 GB), into build/torch-venv.", 2)
    return python


def setup_torch():
    """PyTorch in build/torch-venv: nothing else needs it."""
    if shell.output_of([VENV / "bin" / "python", "-c", "import torch, numpy; print(torch.__version__)"]):
        return
    say("Fetching PyTorch into build/torch-venv: about 5.4 GB on disk, 2 to 10 minutes.")
    if shell.run([sys.executable, "-m", "venv", VENV]) != 0 or \
            shell.run([VENV / "bin" / "pip", "install", "-q", "torch", "numpy"]) != 0:
        raise Failure("setup --peer torch: pip could not fetch PyTorch; its message is above. The same command tries again.")


def check_names(names):
    known = sorted({case.name for case in peer_cases.CASES})
    for name in names:
        if name not in known:
            raise Failure(f"bench --peer: no case '{name}'; there are {', '.join(known)}", 2)


def our_program():
    return build.BUILD / "release" / "benchmarks" / "peer_worker"


def workers(threads, device):
    commands = {OURS: [our_program(), device, threads],
                "torch": [torch_python(), ROOT / "benchmarks" / "peers" / "torch_worker.py", device, threads]}
    return {name: Worker(name, command, threads) for name, command in commands.items()}


def compare(options, folder, flags):
    """Measures every case with one thread and with all, and writes what is finished after each case. Returns the names of those
    that failed. A side that ends at a case fails it, and is started anew for the next."""
    cases = peer_cases.chosen(options.lessons, options.quick)
    device = "cpu" if options.device == "auto" else options.device
    counts = [options.threads] if options.threads else sorted({1, len(os.sched_getaffinity(0))}) if device == "cpu" else [1]
    run = Run(folder, options, flags, len(cases) * len(counts))
    for threads in counts:
        left = cases
        while left:
            sides = workers(threads, device)
            with sides[OURS], sides["torch"]:
                run.about({name: side.ask({"do": "about"}) for name, side in sides.items()})
                left = run.measure_until_one_ends(left, threads, sides)
    return run.finish()


class Run:
    """The results so far, and where they are kept."""

    def __init__(self, folder, options, flags, total):
        self.out, self.unfinished = folder / "peer_torch.json", folder / "peer_torch.unfinished.json"
        self.samples, self.least = QUICK if options.quick else FULL
        self.quick, self.device = options.quick, "cpu" if options.device == "auto" else options.device
        self.progress = launches.Progress(total)
        self.report = self.kept(options) or self.new_report(options, flags)

    def kept(self, options):
        """What an earlier command had finished, where it was the same as this one."""
        if not options.resume or not self.unfinished.exists():
            return None
        report = results.load(self.unfinished)
        now = results.suite(None, shell.revision())
        if (report["suite"]["revision"], report["suite"]["dirty"], report["run"]["quick"]) != (
                now["revision"], now["dirty"], options.quick):
            raise Failure(f"--resume: {self.unfinished.relative_to(ROOT)} was measured with another revision or other arguments; "
                          "measure it anew, without --resume", 2)
        return report

    def new_report(self, options, flags):
        environment = json.loads(shell.output_of([our_program(), "--environment"]) or "{}")
        context = {"executable": "peer_torch", "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                   "num_cpus": os.cpu_count(), "gradus_build_type": build.cache("release").get("CMAKE_BUILD_TYPE"),
                   "gradus_version": environment.get("gradus", {}).get("version")}
        run = {"arguments": ["--quick"] * options.quick, "repetitions": self.samples, "launches": 1, "interleaved": True,
               "quick": options.quick, "finished": False}
        report = results.new_report(context, environment, run, shell.revision(), flags)
        report["host"]["load"].append(os.getloadavg()[0])
        return report

    def about(self, sides):
        """Keeps what the sides say of themselves. Times of another PyTorch do not go on with these."""
        peers = {name: {key: value for key, value in about.items() if key != "threads"} for name, about in sides.items()}
        had = self.report["environment"].setdefault("peers", peers)
        if had != peers:
            raise Failure(f"--resume: {self.unfinished.relative_to(ROOT)} was measured with {had}, and here are {peers}; "
                          "measure it anew, without --resume", 2)

    def measure_until_one_ends(self, cases, threads, sides):
        """Returns the cases that are left where a side ended: all after the one that failed by it."""
        for at, case in enumerate(cases):
            if not self.measure(case, threads, sides):
                return cases[at + 1:]
        return []

    def measure(self, case, threads, sides):
        """One case, all its ways in turn; nothing where it is there already. False where a side ended at it."""
        place = f"threads:{threads}" if self.device == "cpu" else self.device.replace(":", "")
        ways = {f"{case.title}/{place}/by:{way}": (way, sides[OURS if way == OURS else "torch"])
                for way in [OURS, *peer_cases.variants(case, self.quick)]}
        had, ended = {one["name"] for one in self.report["cases"]}, False
        if not had.issuperset(ways):
            try:
                found = measure_case(case, ways, self.samples, self.least)
            except Failure as failure:
                found = [google_benchmark.new_case(name, "failed", str(failure)) for name in ways]
                ended = True
            self.report["cases"] = [one for one in self.report["cases"] if one["name"] not in ways] + found
            results.write(self.report, self.unfinished)
            show(case.title, threads, found)
        self.progress.show(f"{case.title}, {threads} thread{'s' * (threads > 1)}", 1, 1, 1)
        self.progress.done += 1
        return not ended

    def finish(self):
        self.report["run"]["finished"] = True
        results.write(self.report, self.out)
        self.unfinished.unlink(missing_ok=True)
        say(f"results: {self.out.relative_to(ROOT)}")
        return [case["name"] for case in self.report["cases"] if case["status"] == "failed"]


def measure_case(case, ways, samples, least):
    """The cases of a results file, one for each way."""
    if case.needs and not arithmetic(case.needs):
        why = f"this processor has no {case.needs} arithmetic: other ways take minutes"
        return [google_benchmark.new_case(name, "skipped", why) for name in ways]
    found, ready = {}, {}
    for name, (way, side) in ways.items():
        found[name] = google_benchmark.new_case(name)
        answer = side.ask({"do": "prepare", "id": name, "case": case.name, "variant": way, "parameters": case.parameters})
        trouble = answer.get("error") or differs(case, answer.get("check"), ready)
        if trouble:
            unusable(found[name], way, trouble)
        else:
            ready[name] = answer["check"]
    if any(f"by:{OURS}" in name for name in ready):
        take_turns(found, {name: ways[name][1] for name in ready}, samples, least)
    for side in {id(side): side for _, side in ways.values()}.values():
        side.ask({"do": "forget"})
    for one in found.values():
        google_benchmark.summarize(one)
    return list(found.values())


def arithmetic(dtype):
    """Whether the processor computes in `dtype` itself."""
    units = {"bfloat16": {"avx512_bf16", "amx_bf16", "bf16"}}.get(dtype, set())
    return bool(units & set(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()))


def unusable(case, way, trouble):
    """Of PyTorch's ways, one that does not run here (a compiler that is missing) is left out; a wrong number is a fault."""
    wrong = trouble.startswith("wrong")
    failed = wrong or way in (OURS, "eager")
    case.update(status="failed" if failed else "skipped", reason=trouble, check="failed" if wrong else None)


def differs(case, numbers, ready):
    """What is wrong with the numbers of a side beside those of the first one; "" where nothing is."""
    if not isinstance(numbers, list) or not numbers:
        return "wrong: it gave no numbers to check"
    for expected in list(ready.values())[:1]:
        pairs = list(zip(expected, numbers, strict=False))
        if len(expected) != len(numbers) or not all(math.isclose(a, b, rel_tol=case.tolerance) for a, b in pairs):
            return f"wrong: {OURS} got {expected}, this {numbers}; they may differ by {case.tolerance:g} of it"
    return ""


def take_turns(found, sides, samples, least):
    """Samples of all ways, one of each in a round, every second round the other way about."""
    calls = {name: calls_for(side, name, least) for name, side in sides.items()}
    for at in range(samples):
        for name in list(sides)[::-1 if at % 2 else 1]:
            seconds = seconds_of(sides[name], name, calls[name]) / calls[name]
            google_benchmark.put(found[name], "samples_s", found[name]["samples_s"], seconds)
    for name in sides:
        found[name].update(launches=[samples], check="passed")


def seconds_of(side, name, calls):
    answer = side.ask({"do": "time", "id": name, "calls": calls})
    if "seconds" not in answer:
        raise Failure(f"{side.name}: could not time {name}: {answer.get('error', answer)}")
    return answer["seconds"]


def calls_for(side, name, least):
    """Warms up, and finds how many calls last `least` seconds."""
    calls = 1
    if seconds_of(side, name, 1) > 5 * least:
        return 1  # long enough, warm or not
    while (seconds := seconds_of(side, name, calls)) < least and calls < 10**7:
        calls = max(calls + 1, min(calls * 10, math.ceil(1.2 * calls * least / max(seconds, 1e-9))))
    return calls


def show(title, threads, found):
    times = {one["parameters"]["by"]: one["median_s"] for one in found}
    rivals = {way: seconds for way, seconds in times.items() if way != OURS and seconds}
    if times[OURS] and rivals:
        best = min(rivals, key=rivals.get)
        say(f"{title}, {threads} thread{'s' * (threads > 1)}: {shell.seconds(times[OURS])}, PyTorch {best} "
            f"{shell.seconds(rivals[best])}: {rivals[best] / times[OURS]:.2f} times as fast")
    for one in found:
        if one["reason"]:
            say(f"{one['name']}: {one['status']}: {one['reason']}")


def bench(options, folder, flags):
    failed = compare(options, folder, flags)
    conclusions.conclude(folder)
    if failed:
        raise Failure(f"bench --peer torch: {', '.join(failed)} failed")
    return 0
