"""bench: builds a lesson's benchmark in release mode and keeps its JSON under results/."""
import datetime
import hashlib
import json
import os
import platform
import socket

from . import build, packages, shell
from .lessons import chosen
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


def hide_host(path):
    """Replaces the host name in a results file."""
    report = json.loads(path.read_text())
    report["context"]["host_name"] = machine()
    path.write_text(json.dumps(report, indent=1) + "\n")


def bench(options):
    stems = {lesson[:2]: f"{lesson}_bench" for lesson in chosen(options.lessons)}
    stems = {number: stem for number, stem in stems.items() if (ROOT / "benchmarks" / f"{stem}.cpp").exists()}
    if not stems:
        raise Failure("bench: these lessons have no benchmark", 2)
    packages.ensure(packages.BENCH, "./gradus bench")
    build.configure("release", ["BENCHMARKS"], "AUTO" if build.has_driver() else "OFF")
    refuse_slow_builds(build.cache("release"))
    build.build("release", [f"bench_{number}" for number in stems])
    folder = ROOT / "results" / machine() / f"{datetime.date.today()}-{shell.revision()}"
    folder.mkdir(parents=True, exist_ok=True)
    failed = [stem for stem in stems.values() if not run_one(stem, folder, options.quick)]
    if failed:
        raise Failure(f"bench: {', '.join(failed)} failed")
    return 0


def run_one(stem, folder, quick):
    out = folder / f"{stem.removesuffix('_bench')}.json"
    partial = out.with_suffix(".partial")
    effort = (["--benchmark_min_time=0.02", "--benchmark_repetitions=1"] if quick else
              ["--benchmark_repetitions=9", "--benchmark_enable_random_interleaving=true"])
    command = [build.BUILD / "release" / "benchmarks" / stem, *effort,
               f"--benchmark_out={partial}", "--benchmark_out_format=json"]
    if shell.run(command) != 0:
        partial.unlink(missing_ok=True)
        return False
    hide_host(partial)
    os.replace(partial, out)
    say(f"results: {out.relative_to(ROOT)}")
    return True
