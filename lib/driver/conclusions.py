"""What follows from a run's results as a whole, written into its files: shares of the ceilings, verdicts, speed-ups.

    python3 lib/driver/conclusions.py results/<machine>/<run>

draws them again from the samples that are there.
"""
import pathlib
import sys

if __package__ in (None, ""):  # run as a program
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    __package__ = "driver"  # noqa: A001
from . import ceilings, results, speedups, verdicts  # noqa: E402
from .shell import Failure, say  # noqa: E402


def benchmarks_in(folder):
    """{file: report} of a run's finished benchmarks."""
    paths = [path for path in sorted(folder.glob("*.json")) if not path.name.endswith((".lesson.json", ".unfinished.json"))]
    return {path: report for path in paths if (report := results.load(path))["kind"] == "benchmark"}


def conclude(folder):
    """Lessons 01 and 02 say what this machine can do; each case of the run is set in relation to it."""
    reports = benchmarks_in(folder)
    known = ceilings.limits(reports.get(folder / f"{stem}.json") for stem in ("01_env_check", "02_device_transfer"))
    for path, report in reports.items():
        draw(report, known)
        results.write(report, path)
    return reports


def draw(report, known):
    for case in report["cases"]:
        case["share_of_ceiling"] = ceilings.share(case, known, report["host"]["threads"])
        case["verdict"] = verdicts.verdict(case, known)
    report["speedups"] = speedups.speedups(report["cases"])
    verdict_of = {case["name"]: case["verdict"] for case in report["cases"]}
    for series in report["speedups"]:
        series["verdict"] = speedups.line(series, verdict_of)


def show(report):
    for series in report.get("speedups", []):
        say(f"{series['kind']}: {series['verdict']}")


if __name__ == "__main__":
    try:
        for concluded in conclude(pathlib.Path(sys.argv[1])).values():
            show(concluded)
    except Failure as failure:
        sys.exit(f"conclusions.py: {failure}")
