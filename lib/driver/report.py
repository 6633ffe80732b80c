"""report: one HTML page of a folder of results, with everything in it: no network, no scripts, no other files."""
import base64
import os
import pathlib

from . import plot, results, shell
from .page import page, table, tag
from .shell import ROOT, Failure, say

TITLE = "Gradus: what was measured"


def report(options):
    folder = pathlib.Path(options.results).resolve() if options.results else plot.newest()
    if not folder.is_dir():
        raise Failure(f"report: {options.results} is not a folder", 2)
    sources = [path for path in sorted(folder.glob("*.json")) if not path.name.endswith(".unfinished.json")]
    if not sources:
        raise Failure(f"report: {options.results or folder} holds no results: ./gradus bench measures this machine", 2)
    reports = {path: results.load(path) for path in sources}
    no_figures = draw(folder)
    out = pathlib.Path(options.out).resolve() if options.out else folder / "report.html"
    write(text_of(folder, reports, no_figures), out)
    say(f"report: {out.relative_to(ROOT) if out.is_relative_to(ROOT) else out}")
    return 0


def draw(folder):
    """Draws the figures anew. Why there are none, or ""."""
    try:
        python = shell.python_with("matplotlib", "python3-matplotlib", "the figures of a report")
    except Failure as failure:
        return str(failure)
    return "" if shell.run([python, "-B", ROOT / "plots" / "draw_all.py", folder]) == 0 else "Not every figure could be drawn."


def write(text, out):
    """Whole or not at all."""
    try:
        partial = out.with_name(out.name + ".partial")
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, out)
    except OSError as error:
        raise Failure(f"report: cannot write {out}: {error.strerror}", 2) from None


def text_of(folder, reports, no_figures=""):
    benchmarks = {path: one for path, one in reports.items() if one["kind"] == "benchmark"}
    lessons = {path: one for path, one in reports.items() if one["kind"] == "lesson"}
    names = [*(path.stem for path in benchmarks), *(["lessons"] if lessons else []), "left-out"]
    parts = [tag("header", tag("h1", TITLE), tag("p", shown(folder)), *([tag("p", no_figures, cls="note")] if no_figures else [])),
             tag("nav", *(tag("a", name, href=f"#{name}") for name in ["environment", *names])),
             environment(next(iter({**benchmarks, **lessons}.values())))]
    parts += [benchmark(path, one) for path, one in benchmarks.items()]
    if lessons:
        parts.append(tag("section", tag("h2", "What the lessons measured"), *map(lesson, lessons.values()), id="lessons"))
    return page(TITLE, *parts, left_out(reports))


def shown(folder):
    return folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else folder.name


def environment(one):
    """The first file's: they are of one run."""
    record = one["environment"] or {}
    facts = [("machine", one["machine"]), ("measured", one["started"]), ("Gradus", revision(one))]
    for part in ("host", "gradus", "peers"):
        values = record.get(part)
        facts += [(f"{part}: {key}", words(value)) for key, value in (values or {}).items()] if isinstance(values, dict) else []
    facts += [(f"build: {key}", words(value)) for key, value in one.get("build", {}).items()]
    devices = [(words(device.get("device")), words(device.get("name")))  # a simulated one says so in its name
               for device in record.get("devices") or [] if isinstance(device, dict)]
    return tag("section", tag("h2", "Environment"), table(["", ""], facts + devices), id="environment")


def revision(one):
    suite = one["suite"]
    return f"{words(suite['version'])} at {words(suite['revision'])}{' with changes' * bool(suite['dirty'])}"


def words(value):
    """A value of unknown kind in a cell."""
    if value is None:
        return "not recorded"
    if isinstance(value, dict):
        return ", ".join(f"{key} {words(one)}" for key, one in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def benchmark(path, one):
    marks = ["QUICK: no times to quote"] * one["run"]["quick"] + ["NOT FINISHED"] * (not one["run"]["finished"])
    marks += ["SIMULATED times say nothing about a GPU"] * any(case["simulated"] for case in one["cases"])
    run = one["run"]
    facts = f"{one['started']}, {revision(one)}; {run['launches']} launches of {run['repetitions']} samples"
    measured = [case for case in one["cases"] if case["median_s"]]
    body = [tag("h2", path.stem), tag("p", facts), *(tag("p", mark, cls="mark") for mark in marks), *figures(path)]
    if one.get("speedups"):
        rows = [(series["kind"], series["verdict"]) for series in one["speedups"]]
        body += [tag("h3", "Speed-ups and what bounds them"), table(["", "verdict"], rows)]
    if measured:
        head = ["case", "median", "quartiles", "samples", "of the ceiling", "peak memory", "check", "verdict"]
        body += [tag("h3", "Cases"), table(head, map(row, measured))]
    return tag("section", *body, id=path.stem)


def row(case):
    low, high = map(shell.seconds, case["quartiles_s"])
    shares = ", ".join(f"{kind} {limit['share']:.0%}" for kind, limit in (case["share_of_ceiling"] or {}).items())
    memory = f"{case['memory']['peak_bytes'] / 1e6:.3g} MB" if case["memory"] else ""
    count = sum(sample is not None for sample in case["samples_s"])
    return (case["name"], shell.seconds(case["median_s"]), f"{low} to {high}", count, shares, memory, case["check"] or "",
            case["verdict"] or "")


def figures(source):
    """The figures of a file, as pictures that lie in the page."""
    drawn = plot.output_of(source)
    for svg in sorted(drawn.parent.glob(f"{drawn.name}*.svg")):
        if svg.stem == drawn.name or svg.stem.startswith(drawn.name + "_"):
            data = base64.b64encode(svg.read_bytes()).decode()
            yield tag("figure", tag("img", src=f"data:image/svg+xml;base64,{data}", alt=f"{svg.stem}: the cases below, drawn"),
                      tag("figcaption", svg.stem))


def lesson(one):
    if one["status"] == "skipped":
        return tag("div")
    rows = [(name, ", ".join(map(words, values))) for name, values in one["results"].items()]
    return tag("div", tag("h3", one["program"]), tag("p", f"{one['started']}, {revision(one)}"), table(["what", "values"], rows))


def left_out(reports):
    """What was skipped or failed, and values that are no numbers, with the reasons."""
    rows = []
    for path, one in reports.items():
        if one["kind"] == "lesson":
            rows += [(path.stem, one["program"], "skipped", one["reason"] or "")] if one["status"] == "skipped" else []
            continue
        for case in one["cases"]:
            if case["status"] != "measured":
                rows.append((path.stem, case["name"], case["status"], case["reason"] or ""))
            rows += [(path.stem, case["name"], f"no number: {place}", value) for place, value in case["invalid"].items()]
    body = table(["file", "case", "what", "why"], rows) if rows else tag("p", "Nothing.")
    return tag("section", tag("h2", "Left out, and why"), body, id="left-out")
