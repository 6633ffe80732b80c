"""bench: runs benchmarks and lessons in release mode, and keeps what they measured under results/."""
import datetime
import json
import os
import re
import subprocess

from . import build, conclusions, launches, packages, peer, results, shell
from .lessons import DEVICE, SKIPPED, chosen, programs_of
from .shell import ROOT, Failure, say


def refuse_slow_builds(known):
    """Times of a debug or sanitizer build mean nothing."""
    kind, sanitizer = known.get("CMAKE_BUILD_TYPE"), known.get("GRADUS_SANITIZE")
    if kind != "Release" or sanitizer:
        raise Failure(f"bench: build/release is a {kind} build{' with ' + sanitizer if sanitizer else ''}; "
                      "benchmarks need Release without a sanitizer. ./gradus clean, then again.")


def flags_of(known):
    """The compiler's flags as CMake knows them."""
    native = "-march=native" if known.get("GRADUS_NATIVE") == "ON" else ""
    return " ".join(filter(None, (known.get("CMAKE_CXX_FLAGS"), known.get("CMAKE_CXX_FLAGS_RELEASE"), native))) or None


def split_names(names):
    """(lessons, ops benchmarks) that were asked for: all without names; "ops" is all of the ops."""
    every = sorted(path.stem.removesuffix("_bench") for path in (ROOT / "benchmarks" / "ops").glob("*_bench.cpp"))
    asked = [name for name in names if name == "ops" or name.startswith("ops_")]
    unknown = [name for name in asked if name != "ops" and name.removeprefix("ops_") not in every]
    if unknown:
        raise Failure(f"no benchmark '{unknown[0]}'; there are {', '.join('ops_' + name for name in every)}", 2)
    ops = every if "ops" in asked or not names else [name for name in every if f"ops_{name}" in asked]
    others = [name for name in names if name not in asked]
    return chosen(others) if others or not names else [], ops


def folder_for(name):
    if name and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise Failure(f"--save: '{name}' is no name for a folder: letters, digits, '.', '-', '_'", 2)
    return ROOT / "results" / results.machine() / (name or f"{datetime.date.today()}-{shell.revision()}")


def check_options(options):
    if not DEVICE.fullmatch(options.device):
        raise Failure(f"--device: expected auto, cpu, sim, sim:N, cuda or cuda:N, got '{options.device}'", 2)
    cores = len(os.sched_getaffinity(0))
    if options.threads is not None and not 1 <= options.threads <= cores:
        raise Failure(f"--threads: expected 1 to {cores}, as many as there are cores, got {options.threads}", 2)


def warn_if_busy():
    """Before the build, which is a load of its own."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores / 2:
        say(f"Note: the load is {load:.1f} on {cores} cores; other programs compute here, and times will not be repeatable.")


def bench(options):
    check_options(options)
    warn_if_busy()
    return beside_torch(options) if options.peer else measure(options)


def make(targets):
    packages.ensure(packages.BENCH, "./gradus bench")
    build.configure("release", ["BENCHMARKS", "LESSONS"], "AUTO" if build.has_driver() else "OFF")
    refuse_slow_builds(build.cache("release"))
    build.build("release", targets)


def measure(options):
    lessons, ops = split_names(options.lessons)
    folder = folder_for(options.save)
    stems = [lesson for lesson in lessons if (ROOT / "benchmarks" / f"{lesson}_bench.cpp").exists()]
    make([f"bench_{stem[:2]}" for stem in stems] + [f"bench_ops_{name}" for name in ops]
         + [f"lesson_{lesson[:2]}" for lesson in lessons])
    folder.mkdir(parents=True, exist_ok=True)
    programs = [(stem, f"{stem}_bench") for stem in stems] + [(f"ops_{name}", f"{name}_bench") for name in ops]
    try:
        failed = launches.measure(programs, folder, options, flags_of(build.cache("release")))
        failed += [program for lesson in lessons for program in programs_of(lesson)
                   if not run_lesson(program, folder, options)]
        for report in conclusions.conclude(folder).values():
            conclusions.show(report)
    except KeyboardInterrupt:
        say(how_to_go_on(options, folder))
        raise
    if failed:
        raise Failure(f"bench: {', '.join(failed)} failed")
    return 0


def beside_torch(options):
    peer.torch_python()  # before anything is built
    peer.check_names(options.lessons)
    if options.lessons and options.save == "reference":
        raise Failure("bench --peer torch --save reference: the reference holds every case, and this would leave it with some; "
                      "name no case, or --save another name", 2)
    folder = folder_for(options.save)
    make(["peer_worker"])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return peer.bench(options, folder, flags_of(build.cache("release")))
    except KeyboardInterrupt:
        say(how_to_go_on(options, folder))
        raise


def how_to_go_on(options, folder):
    return f"\nWhat was finished is kept in {folder.relative_to(ROOT)}. To go on:\n  {again(options, folder)}"


def again(options, folder):
    """The command that goes on where this one stopped."""
    words = ["./gradus", "bench", *options.lessons]
    words += ["--device", options.device] if options.device != "auto" else []
    words += ["--threads", str(options.threads)] if options.threads is not None else []
    words += ["--quick"] if options.quick else []
    words += ["--peer", options.peer] if options.peer else []
    return " ".join([*words, "--save", folder.name, "--resume"])


def run_lesson(program, folder, options):
    """Keeps the line that a lesson's --json prints at the end: its numbers, and what the tutorials' claims came to."""
    out = folder / f"{program}.lesson.json"
    if options.resume and out.exists() and results.load(out)["suite"] == results.suite(version(), shell.revision()):
        say(f"{program}: is there already")
        return True
    arguments = ["--json", *(["--quick"] if options.quick else []),
                 *(["--device", options.device] if options.device != "auto" else [])]
    command = [build.BUILD / "release" / "lessons" / program, *arguments]
    say("$ " + " ".join(map(str, command)))
    started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    process = subprocess.run(list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
                             preexec_fn=launches.on_cores(options.threads))
    if process.returncode not in (0, SKIPPED):
        return False
    lines = process.stdout.strip().splitlines() or [""]
    skipped = process.returncode == SKIPPED
    try:
        line = {} if skipped else json.loads(lines[-1])
        report = {"schema": results.NAME, "kind": "lesson", "program": program, "machine": results.machine(),
                  "started": started, "suite": results.suite(version(), shell.revision()),
                  "environment": line.get("environment"), "run": {"arguments": arguments, "seed": line.get("seed")},
                  "status": "skipped" if skipped else "measured",
                  "reason": (lines[-1] or "it did not say why") if skipped else None, "results": line.get("results", {})}
        results.write(report, out)
    except (ValueError, AttributeError) as error:
        raise Failure(f"{program} --json: its last line is not its results: {error}") from None
    say(f"{program}: skipped: {report['reason']}" if skipped else f"results: {out.relative_to(ROOT)}")
    return True


def version():
    return re.search(r"project\(gradus VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
