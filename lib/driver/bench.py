"""bench: runs a lesson's benchmark and its programs in release mode, and keeps what they measured under results/."""
import datetime
import hashlib
import json
import os
import platform
import socket
import subprocess

from . import build, packages, shell
from .lessons import SKIPPED, chosen, programs_of
from .shell import ROOT, Failure, say


def machine():
    """A name for this machine that does not give its host name away."""
    digest = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
    return f"{platform.system().lower()}-{platform.machine()}-{digest}"


def refuse_slow_builds(known):
    """Times of a debug or sanitizer build mean nothing."""
    kind, sanitizer = known.get("CMAKE_BUILD_TYPE"), known.get("GRADUS_SANITIZE")
    if kind != "Release" or sanitizer:
        raise Failure(f"bench: build/release is a {kind} build{' with ' + sanitizer if sanitizer else ''}; "
                      "benchmarks need Release without a sanitizer. ./gradus clean, then again.")


def complete(path, environment):
    """Adds what machine and build are to a results file, and takes the host name out."""
    report = json.loads(path.read_text())
    report["context"]["host_name"] = machine()
    report["context"]["environment"] = environment
    path.write_text(json.dumps(report, indent=1) + "\n")


def bench(options):
    lessons = chosen(options.lessons)
    stems = [f"{lesson}_bench" for lesson in lessons if (ROOT / "benchmarks" / f"{lesson}_bench.cpp").exists()]
    packages.ensure(packages.BENCH, "./gradus bench")
    build.configure("release", ["BENCHMARKS", "LESSONS"], "AUTO" if build.has_driver() else "OFF")
    refuse_slow_builds(build.cache("release"))
    build.build("release", [f"bench_{stem[:2]}" for stem in stems] + [f"lesson_{lesson[:2]}" for lesson in lessons])
    folder = ROOT / "results" / machine() / f"{datetime.date.today()}-{shell.revision()}"
    folder.mkdir(parents=True, exist_ok=True)
    failed = [stem for stem in stems if not run_benchmark(stem, folder, options.quick)]
    failed += [program for lesson in lessons for program in programs_of(lesson)
               if not run_lesson(program, folder, options.quick)]
    if failed:
        raise Failure(f"bench: {', '.join(failed)} failed")
    return 0


def keep(partial, out):
    os.replace(partial, out)
    say(f"results: {out.relative_to(ROOT)}")


def run_benchmark(stem, folder, quick):
    out = folder / f"{stem.removesuffix('_bench')}.json"
    partial = out.with_suffix(".partial")
    effort = (["--benchmark_min_time=0.02", "--benchmark_repetitions=1"] if quick else
              ["--benchmark_repetitions=9", "--benchmark_enable_random_interleaving=true"])
    program = build.BUILD / "release" / "benchmarks" / stem
    environment = json.loads(shell.output_of([program, "--environment"]) or "null")  # the load before, not after
    command = [program, *effort, f"--benchmark_out={partial}", "--benchmark_out_format=json"]
    if shell.run(command) != 0:
        partial.unlink(missing_ok=True)
        return False
    complete(partial, environment)
    keep(partial, out)
    return True


def run_lesson(program, folder, quick):
    """Keeps the line that a lesson's --json prints at the end: its numbers, and what the tutorials' claims came to."""
    command = [build.BUILD / "release" / "lessons" / program, "--json", *(["--quick"] if quick else [])]
    say("$ " + " ".join(map(str, command)))
    process = subprocess.run(list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode == SKIPPED:
        say(f"{program}: skipped")
        return True
    if process.returncode != 0:
        return False
    report = {"machine": machine(), "date": str(datetime.date.today()), "revision": shell.revision(),
              **json.loads(process.stdout.splitlines()[-1])}
    out = folder / f"{program}.lesson.json"
    partial = out.with_suffix(".partial")
    partial.write_text(json.dumps(report, indent=1) + "\n")
    keep(partial, out)
    return True
