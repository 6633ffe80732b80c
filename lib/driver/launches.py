"""Runs benchmark programs, each in several launches, keeps every finished launch, and goes on where it was stopped."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from . import build, google_benchmark, results, shell
from .shell import ROOT, Failure, say

# A launch has a memory layout and a mood of its own: samples come from several, or noise looks like a difference.
FULL = {"launches": 3, "repetitions": 3, "interleaved": True, "quick": False}
QUICK = {"launches": 1, "repetitions": 1, "interleaved": False, "quick": True}


def on_cores(threads):
    """What a child does first: keeps to as many cores, since the library uses all that it may."""
    return (lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])) if threads else None


class Progress:
    """How far the whole is, and how long it will still take."""

    def __init__(self, total):
        self.total, self.done, self.start, self.said = max(1, total), 0, time.monotonic(), 0

    def left(self, done):
        """Words for the time that remains if what is left is like what was done."""
        return f", about {shell.duration((time.monotonic() - self.start) * (self.total - done) / done)} left" if done else ""

    def show(self, what, finished, cases, repetitions):
        """Repetitions take turns at random, so of n the share s of a launch's time has finished s^n of its cases."""
        done = self.done + cases * (finished / cases) ** (1 / repetitions)
        line = f"[{100 * done / self.total:3.0f} %] {what}: {finished} of {cases} cases{self.left(done)}"
        if sys.stdout.isatty():
            print(f"\r{line:<{shell.columns() - 1}.{shell.columns() - 1}}", end="" if finished < cases else "\n", flush=True)
        elif finished == cases or time.monotonic() - self.said >= 15:
            self.said = time.monotonic()
            say(line)


class Program:
    """One benchmark program: its cases, what was measured of it so far, and where that is kept."""

    def __init__(self, stem, name, folder, options, flags):
        self.stem, self.path = stem, build.BUILD / "release" / "benchmarks" / name
        self.out, self.unfinished = folder / f"{stem}.json", folder / f"{stem}.unfinished.json"
        self.protocol = QUICK if options.quick else FULL
        self.threads, self.flags = options.threads, flags
        self.revision = shell.revision()
        listed = shell.output_of([self.path, "--benchmark_list_tests"]).splitlines()
        self.all = len(listed)
        self.raw = {google_benchmark.parse_name(raw)["name"]: raw for raw in listed if wanted(raw, options)}
        self.report = self.kept() if options.resume else None
        if not options.resume:
            self.unfinished.unlink(missing_ok=True)

    def arguments(self):
        """What is the same in every launch, and so is part of the record."""
        chosen = [f"--threads {self.threads}"] if self.threads else []
        p = self.protocol
        return chosen + ["--benchmark_min_time=0.02"] * p["quick"] + [f"--benchmark_repetitions={p['repetitions']}"] + \
            ["--benchmark_enable_random_interleaving=true"] * p["interleaved"]

    def kept(self):
        """The report of an earlier command that was the same as this one; None where there is none."""
        for path in (self.unfinished, self.out):
            if not path.exists():
                continue
            report = results.load(path)
            now = results.suite(None, self.revision)  # outside of git nothing is known, then or now
            same = (report["suite"]["revision"], report["suite"]["dirty"], report["run"]["arguments"]) == (
                now["revision"], now["dirty"], self.arguments())
            if same:
                return report
            if path == self.unfinished:
                raise Failure(f"--resume: {path.relative_to(ROOT)} was measured with another revision or other arguments; "
                              "measure it anew, without --resume", 2)
        return None

    def missing(self, launch):
        """The cases of which launch number `launch`, from 0, is still to be measured."""
        had = {case["name"]: case for case in self.report["cases"]} if self.report else {}
        return [name for name in self.raw
                if name not in had or (had[name]["status"] == "measured" and len(had[name]["launches"]) <= launch)]

    def work(self):
        """How many cases of how many launches are to be measured."""
        return sum(len(self.missing(launch)) for launch in range(self.protocol["launches"]))

    def command(self, names, out):
        words = [self.path, *self.arguments()[bool(self.threads):], f"--benchmark_out={out}", "--benchmark_out_format=json"]
        return words if len(names) == self.all else [*words, f"--benchmark_filter=^({'|'.join(quoted(self.raw[n]) for n in names)})$"]

    def add(self, google, environment):
        if self.report is None:
            run = {**self.protocol, "arguments": self.arguments(), "finished": False}
            self.report = results.new_report(google["context"], environment, run, self.revision, self.flags)
        results.add_launch(self.report, google, self.protocol["repetitions"])
        results.write(self.report, self.unfinished)

    def finish(self):
        self.report["run"]["finished"] = True
        results.write(self.report, self.out)
        self.unfinished.unlink(missing_ok=True)


def quoted(name):
    """A name for Google Benchmark's regular expressions."""
    return re.sub(r"[][.*+?^$|(){}\\]", lambda found: "\\" + found[0], name)


def wanted(raw, options):
    """Whether a case is of the device and threads that were asked for."""
    case = google_benchmark.parse_name(raw)
    threads = case["parameters"].get("threads") or options.threads  # 0: a device that has none
    device = {"cuda:0": ("cuda", "cuda:0"), "cuda": ("cuda", "cuda:0")}.get(options.device, (options.device,))
    return (options.device == "auto" or case["device"] in device) and (not options.threads or threads == options.threads)


def measure(stems, folder, options, flags):
    """Measures (result's name, program) in rounds, a launch of each program in each, so that an hour's mood of the machine does
    not fall on one of them. Returns the names of those that failed."""
    programs = [Program(stem, name, folder, options, flags) for stem, name in stems]
    for program in programs:
        if not program.raw:
            say(f"{program.stem}: has no case " + ("that fits --device and --threads" if program.all else "at all"))
    failed = [program.stem for program in programs if not program.all]
    programs = [program for program in programs if program.raw]
    progress = Progress(sum(program.work() for program in programs))
    for number in range(max((program.protocol["launches"] for program in programs), default=0)):
        for program in programs:
            if program.stem not in failed and not run_round(program, number, progress):
                failed.append(program.stem)
    return failed


def run_round(program, number, progress):
    """One launch of a program, and after the last one its results. False where it ended with an error or a case failed."""
    names = program.missing(number)
    if names and not run_launch(program, number, names, progress):
        say(f"{program.stem}: ended with an error; what it had measured is in {program.unfinished.relative_to(ROOT)}"
            if program.report else f"{program.stem}: ended with an error")
        return False
    if number + 1 < program.protocol["launches"]:
        return True
    if program.report["run"]["finished"] and not names:
        say(f"{program.stem}: is there already")
    else:
        program.finish()
        table(program.report)
        say(f"results: {program.out.relative_to(ROOT)}")
    return all(case["status"] != "failed" for case in program.report["cases"])


def run_launch(program, number, names, progress):
    """Runs the program once. Where it is interrupted, what it had finished is kept before the interruption goes on."""
    what = f"{program.stem}, launch {number + 1} of {program.protocol['launches']}"
    environment = json.loads(shell.output_of([program.path, "--environment"]) or "null")  # the load before, not after
    with tempfile.TemporaryDirectory() as temporary:
        out = os.path.join(temporary, "out.json")
        command = list(map(str, program.command(names, out)))
        try:
            status = follow(command, program, names, lambda finished: progress.show(
                what, finished, len(names), program.protocol["repetitions"]))
        except KeyboardInterrupt:
            google = google_benchmark.parse_cut(text_in(out))
            if google:
                program.add(google, environment)
            raise
        if status != 0:
            return False
        program.add(google_benchmark.parse(text_in(out), program.path.name), environment)
        progress.done += len(names)
    return True


def text_in(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def follow(command, program, names, show):
    """Runs a benchmark and calls show(number of cases that are done) as it prints them. Returns its exit status."""
    left = {program.raw[name] for name in names}
    with tempfile.TemporaryFile("w+", errors="replace") as errors:  # its preamble is in the results
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace",
                                   preexec_fn=on_cores(program.threads))
        try:
            for line in process.stdout:
                name = line.split(" ")[0].strip()
                if name in left:
                    left.discard(name)
                    show(len(names) - len(left))
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
        if status != 0:
            errors.seek(0)
            say(f"{program.path.name}: exit status {status}\n{errors.read()}")
        return status


def table(report):
    """Prints each case's median and quartiles, or why there is none."""
    width = max((len(case["name"]) for case in report["cases"]), default=0)
    for case in report["cases"]:
        if case["median_s"] is None:
            say(f"{case['name']:<{width}}  {case['status']}: {case['reason']}")
        else:
            low, high = map(shell.seconds, case["quartiles_s"])
            say(f"{case['name']:<{width}}  {shell.seconds(case['median_s']):>10}  [{low}, {high}]")
