"""The report of gpu-check, as JSON and to read, and the archive of all that it left."""
import datetime
import json
import os
import tarfile

from . import build, doctor, results, shell
from .stages import FAILED

ARCHIVE = "gradus-gpu-check.tar.gz"


def failed(check, stage=None):
    """The pieces that failed, of one stage or of all."""
    return [key for key, piece in check.state.data["pieces"].items()
            if piece["status"] == FAILED and (stage is None or key.startswith(f"{stage}/"))]


def write(check):
    """Writes report.json, report.md and the archive; returns the archive's path."""
    report = gather(check)
    (check.out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (check.out / "report.md").write_text("\n".join(lines(report)) + "\n", encoding="utf-8")
    archive = check.out / ARCHIVE
    partial = archive.with_suffix(".partial")
    with tarfile.open(partial, "w:gz") as tar:
        for path in sorted(check.out.iterdir()):
            if path not in (archive, partial) and path.name != "lock":
                tar.add(path, f"gpu-check/{path.name}")
    os.replace(partial, archive)
    return archive


def gather(check):
    nvcc = build.find_nvcc()
    tests = check.out / "tests.json"
    return {
        "version": doctor.version(), "source": check.source, "rehearsal": check.rehearse,
        "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": results.machine(), "cores": len(os.sched_getaffinity(0)), "memory_gib": round(shell.memory_gib()),
        "compiler": doctor.first_line(["c++", "--version"]), "cmake": doctor.first_line(["cmake", "--version"]),
        "nvcc": shell.output_of([nvcc, "--version"]).split("\n")[-1] if nvcc else None,
        "gpu": check.gpu, "clocks": check.state.data["clocks"], "stages": check.state.data.get("stages", {}),
        "pieces": check.state.data["pieces"],
        "failed_tests": {name: test for name, test in (json.loads(tests.read_text()) if tests.exists() else {}).items()
                         if test["result"] not in ("Passed", "Skipped")},
        "cases": cases(check.out / "results"),
    }


def cases(folder):
    """The benchmarks' cases in short."""
    found = []
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        for case in report.get("cases", []):
            found.append({"program": path.stem, "quick": report["run"]["quick"],
                          **{key: case[key] for key in ("name", "device", "status", "reason", "median_s", "share_of_ceiling", "check")}})
    return found


def verdict(report):
    bad = [key for key, piece in report["pieces"].items() if piece["status"] == FAILED]
    if bad:
        return f"FAILED: {', '.join(bad)}"
    left = [stage for stage in ("build", "test", "sanitize", "bench") if report["stages"].get(stage) != "finished"]
    return f"not finished: {', '.join(left)}" if left else "passed"


def lines(report):
    """The report to read, line by line."""
    yield f"# {'Rehearsal of gpu-check (no GPU was used)' if report['rehearsal'] else 'gpu-check'}: {verdict(report)}"
    yield ""
    yield f"{report['version']}, sources {report['source']}, {report['written']}  "
    yield f"machine {report['machine']}, {report['cores']} cores, {report['memory_gib']} GiB  "
    yield f"{report['compiler']}; {report['cmake']}; nvcc: {report['nvcc'] or 'none'}"
    yield ""
    yield from gpu_lines(report)
    yield from piece_lines(report)
    yield from failure_lines(report)
    yield from case_lines(report)


def gpu_lines(report):
    yield "## GPU"
    yield ""
    if report["gpu"]["why"]:
        yield f"None: {report['gpu']['why']}."
    for index, device in enumerate(report["gpu"]["devices"]):
        yield f"cuda:{index}: {device['name']}, capability {device['capability'][0]}.{device['capability'][1]}"
    yield ""
    rows = [(entry["stage"], moment, row) for entry in report["clocks"] for moment in ("before", "after") for row in entry[moment]]
    if not rows:
        yield "nvidia-smi said nothing of clocks and throttling."
    else:
        yield "| stage | when | driver | SM clock (of) | memory clock | power | temperature | throttled by |"
        yield "|---|---|---|---|---|---|---|---|"
    for stage, moment, row in rows:
        value = {key: row.get(key, "?") for key in ("driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.draw",
                                                    "temperature.gpu")}
        yield (f"| {stage} | {moment} | {value['driver_version']} | {value['clocks.sm']} ({value['clocks.max.sm']}) | "
               f"{value['clocks.mem']} | {value['power.draw']} | {value['temperature.gpu']} | {', '.join(row['throttled_by']) or 'nothing'} |")
    yield ""


def piece_lines(report):
    yield "## What was run"
    yield ""
    yield "| stage | piece | result | time | |"
    yield "|---|---|---|---|---|"
    for key, piece in report["pieces"].items():
        stage, name = key.split("/", 1)
        stale = "" if piece["source"] == report["source"] else f" (of other sources, {piece['source']})"
        yield f"| {stage} | {name} | {piece['status']}{stale} | {shell.duration(piece['seconds'])} | {cell(piece['note'])} |"
    yield ""


def failure_lines(report):
    if not report["failed_tests"]:
        return
    yield "## Tests that failed"
    yield ""
    for name, test in report["failed_tests"].items():
        yield f"### {name}: {test['result']}"
        yield ""
        yield from ("    " + line for line in test["output"].splitlines()[-40:])
        yield ""


def case_lines(report):
    """Times on cuda; of a rehearsal, that the cases ran."""
    if not report["cases"]:
        return
    chosen = [case for case in report["cases"] if case["device"].startswith("cuda")]
    others = len(report["cases"]) - len(chosen)
    yield f"## Benchmarks on cuda ({others} cases of other devices are in results/)"
    yield ""
    if any(case["quick"] for case in report["cases"]):
        yield "Brief passes: they show that it runs, and are no times to quote."
        yield ""
    if not chosen:
        return
    yield "| benchmark | case | median | of memory's ceiling | of the matrix product's |"
    yield "|---|---|---|---|---|"
    for case in chosen:
        shares = case["share_of_ceiling"] or {}
        percent = [f"{100 * shares[kind]['share']:.0f} %" if kind in shares else "" for kind in ("memory", "compute")]
        time = shell.seconds(case["median_s"]) if case["median_s"] else f"{case['status']}: {cell(case['reason'] or '')}"
        yield f"| {case['program']} | {case['name']} | {time} | {percent[0]} | {percent[1]} |"
    yield ""


def cell(text):
    """Text for a cell of a table."""
    return " ".join(text.replace("|", "/").split())[:1000]
