"""Results files: their form (results/schema.json), how they are made of Google Benchmark's output, written and read.

    python3 lib/driver/results.py FILE...

checks files, and rewrites in our form those that are still as Google Benchmark wrote them.
"""
import hashlib
import json
import math
import os
import pathlib
import platform
import re
import socket
import sys

if __package__ in (None, ""):  # run as a program
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    __package__ = "driver"  # noqa: A001
from . import google_benchmark, schema, shell  # noqa: E402
from .shell import ROOT, Failure, say  # noqa: E402

NAME = "gradus-results-1"
SCHEMA = ROOT / "results" / "schema.json"


# Of /proc/cpuinfo, what a processor is; its clock and its bugs do not make it another one.
IDENTITY = re.compile(r"^(?:vendor_id|cpu family|model|model name|stepping|CPU (?:implementer|architecture|variant|part))\s*:.*$",
                      re.MULTILINE)


def processor():
    """What the first processor says of itself; "" where the system does not tell."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(IDENTITY.findall(text.split("\n\n")[0]))


def machine():
    """A name for this machine that does not give its host name away. Another processor is another machine: virtual ones often
    have the same name and not the same speed."""
    what = f"{socket.gethostname()}\n{os.cpu_count()}\n{processor()}"
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    return f"{platform.system().lower()}-{platform.machine()}-{digest}"


def suite(version, revision):
    """revision: as shell.revision() words it, or None."""
    known = revision not in (None, "unknown")
    return {"version": version, "revision": revision.removesuffix("-dirty") if known else None,
            "dirty": revision.endswith("-dirty") if known else None}


def new_report(context, environment, run, revision=None, flags=None, name=None):
    """A file without cases, from Google Benchmark's context and the program's --environment record (or None)."""
    record = environment or {}
    build, host = record.get("gradus", {}), record.get("host", {})
    seed = context.get("gradus_seed")
    return {
        "schema": NAME, "kind": "benchmark",
        "program": pathlib.PurePath(context["executable"]).name, "machine": name or machine(), "started": context["date"],
        "suite": suite(context.get("gradus_version"), revision),
        "build": {"type": context.get("gradus_build_type"), "sanitizer": build.get("sanitizer"),
                  "compiler": build.get("compiler"), "flags": flags},
        "host": {"cores": context.get("num_cpus"), "mhz": context.get("mhz_per_cpu"),
                 "frequency_scaling": context.get("cpu_scaling_enabled"), "governor": host.get("governor"),
                 "caches": context.get("caches", []), "load": [],
                 "threads": int(context["gradus_threads"]) if "gradus_threads" in context else None},
        "environment": environment,
        "run": {"arguments": [], "seed": int(seed) if seed else None, "repetitions": 1, "launches": 1, "interleaved": None,
                "quick": False, "finished": True, **run},
        "cases": [], "speedups": [],
    }


def add_launch(report, launch, repetitions=1):
    """Adds what one launch of the program wrote."""
    cases = {case["name"]: case for case in report["cases"]}
    google_benchmark.add_launch(cases, launch, repetitions)
    report["cases"] = sorted(cases.values(), key=lambda case: natural(case["name"]))
    report["host"]["load"].append((launch["context"].get("load_avg") or [None])[0])
    for case in report["cases"]:
        google_benchmark.summarize(case)


def natural(name):
    """A key that sorts n:8 before n:64."""
    return [(not piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in re.split(r"(\d+)", name)]


def convert(google, environment=None, revision=None, name=None):
    """A whole file of Google Benchmark, written by one launch."""
    repetitions = max(map(len, google_benchmark.rows_of(google).values()), default=1)
    report = new_report(google["context"], environment or google["context"].get("environment"),
                        {"repetitions": repetitions}, revision, name=name)
    add_launch(report, google)
    return report


def text_of(report):
    """JSON with each list of numbers on one line."""
    text = json.dumps(report, indent=1, allow_nan=False, ensure_ascii=False)
    return re.sub(r"\[\s+((?:[-\d.e+]+|null)(?:,\s+(?:[-\d.e+]+|null))*)\s+\]",
                  lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text) + "\n"


def check(report, source):
    """Raises a Failure unless the report is as the schema says, and its numbers are numbers."""
    found = schema.errors(report, json.loads(SCHEMA.read_text(encoding="utf-8")))
    if found:
        more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
        raise Failure(f"{source}: is not a results file of the form {NAME}: {found[0]}{more}", 2)
    if not all(map(finite, numbers(report))):
        raise Failure(f"{source}: holds a number that is not finite, or beyond what a double holds", 2)
    for case in report.get("cases", []):
        if case["median_s"] is not None and case["quartiles_s"] is None:
            raise Failure(f"{source}: {case['name'][:60]!r} has a median without quartiles", 2)


def finite(number):
    try:
        return math.isfinite(number)  # 1e999 is JSON, and infinite
    except OverflowError:  # so is an integer of 400 digits
        return False


def write(report, path):
    """Writes a checked file whole or not at all."""
    check(report, path)
    partial = path.with_suffix(".partial")
    partial.write_text(text_of(report), encoding="utf-8")
    os.replace(partial, path)


def strict(word):
    raise ValueError(f"{word} is not JSON")


def load(path):
    """A checked results file; a Failure (status 2) says what is wrong with it."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"), parse_constant=strict)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", 2) from None
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path}: is not JSON (cut off, perhaps): {error}", 2) from None
    check(report, path)
    return report


def numbers(value):
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, (int, float)):
        yield value
    elif not isinstance(value, (str, type(None))):
        for item in value:
            yield from numbers(item)


def main(paths):
    for path in map(pathlib.Path, paths):
        raw = path.read_text(encoding="utf-8")
        if '"benchmarks":' in raw and NAME not in raw:
            google = google_benchmark.parse(raw, path)
            write(convert(google, name=path.resolve().parents[1].name), path)
            say(f"{path}: converted")
        load(path)
        say(f"{path}: {NAME}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failure as failure:
        sys.exit(f"results.py: {failure}")
