"""report: one HTML page of a folder of results, with everything in it: no network, no scripts, no other files."""
import base64
import os
import pathlib
import subprocess
import tempfile
import urllib.parse

from . import plot, results, shell
from .page import page, scroll, table, tag
from .report_environment import environment, revision, words
from .shell import ROOT, Failure, say

TITLE = "Gradus: what was measured"
UNFINISHED = ".unfinished.json"


def report(options):
    folder = pathlib.Path(options.results).resolve() if options.results else plot.newest("report")
    if not folder.is_dir():
        raise Failure(f"report: {options.results} is not a folder", 2)
    out = pathlib.Path(options.out).resolve() if options.out else folder / "report.html"
    if out.is_dir():
        raise Failure(f"report: {options.out} is a folder; --out names the file to write", 2)
    sources = [path for path in sorted(folder.glob("*.json")) if not path.name.endswith(UNFINISHED)]
    if not sources:
        raise Failure(f"report: {options.results or folder} holds no results: ./gradus bench measures this machine", 2)
    reports = {path: results.load(path) for path in sources}
    with tempfile.TemporaryDirectory() as drawn:  # plots/ stays as it is, and no old figure gets onto the page
        no_figures = draw(folder, pathlib.Path(drawn))
        write(text_of(folder, reports, pathlib.Path(drawn), no_figures), out)
    say(f"report: {out.relative_to(ROOT) if out.is_relative_to(ROOT) else out}")
    return 0


def draw(folder, into):
    """Draws the figures. Why there are none, or ""."""
    try:
        python = shell.python_with("matplotlib", "python3-matplotlib", "a page with figures")
    except Failure as failure:
        return f"No figures: {failure}"
    drawn = shell.run([python, "-B", ROOT / "plots" / "draw_all.py", folder, into], stdout=subprocess.DEVNULL)
    return "" if drawn == 0 else "Not every figure could be drawn: ./gradus plot says why."


def write(text, out):
    """Whole or not at all."""
    partial = out.with_name(out.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, out)
    except OSError as error:
        raise Failure(f"report: cannot write {out}: {error.strerror}; --out FILE writes it elsewhere", 2) from None


def text_of(folder, reports, drawn, no_figures=""):
    """drawn: the folder with the figures."""
    benchmarks = {path: one for path, one in reports.items() if one["kind"] == "benchmark"}
    lessons = [one for one in reports.values() if one["kind"] == "lesson" and one["status"] == "measured"]
    pictures = figures(drawn, [path.stem for path in benchmarks])
    others = pictures.pop("", [])
    links = [("environment", "environment"), *((path.stem, anchor(path)) for path in benchmarks),
             *([("lessons", "lessons")] if lessons or others else []), ("left out", "left-out")]
    notes = [tag("p", no_figures, cls="note")] * bool(no_figures)
    parts = [tag("header", tag("h1", TITLE), tag("p", shown(folder)), *notes),
             tag("nav", *(tag("a", name, href=f"#{place}") for name, place in links), aria_label="Contents"),
             tag("section", tag("h2", "Environment"), environment(reports), id="environment")]
    parts += [benchmark(path, one, pictures.get(path.stem, [])) for path, one in benchmarks.items()]
    if lessons or others:
        parts.append(tag("section", tag("h2", "What the lessons measured"), *others, *map(lesson, lessons), id="lessons"))
    return page(TITLE, *parts, left_out(folder, reports))


def anchor(path):
    """An id that no other section has, without spaces."""
    return "of-" + urllib.parse.quote(path.stem.encode("utf-8", "surrogateescape"), safe="")


def shown(folder):
    return folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else folder.name


def benchmark(path, one, pictures):
    run = one["run"]
    facts = f"{one['started']}, {revision(one)}; launches: {run['launches']}, samples in each: {run['repetitions']}"
    body = [tag("h2", path.stem), tag("p", facts), *(tag("p", mark, cls="mark") for mark in marks(one)), *pictures]
    if one.get("speedups"):
        body += [tag("h3", "Speed-ups and what bounds them"), table(["", "verdict"], speedups(one))]
    measured = [case for case in one["cases"] if case["status"] == "measured"]
    if measured:
        head = ["case", "what", "median", "quartiles", "samples", "of the ceiling", "peak memory", "check", "verdict"]
        body += [tag("h3", "Cases"), table(head, map(row, measured), cls="short")]
    return tag("section", *body, id=anchor(path))


def speedups(one):
    simulated = {case["name"] for case in one["cases"] if case["simulated"]}
    for series in one["speedups"]:
        cases = {name for point in series["points"] for name in (point["case"], point["over"])}
        yield series["kind"], marked(series["verdict"], cases & simulated)


def marks(one):
    """What a reader must not miss."""
    if one["run"]["quick"]:
        yield "QUICK: no times to quote"
    if not one["run"]["finished"]:
        yield "NOT FINISHED"
    if one["build"]["type"] not in ("Release", None):
        yield f"{one['build']['type']} BUILD: no times to quote"
    if any(case["simulated"] for case in one["cases"]):
        yield "SIMULATED times say nothing about a GPU"


def marked(text, simulated):
    return f"{text} SIMULATED" if simulated and "SIMULATED" not in text else text


def row(case):
    count = sum(sample is not None for sample in case["samples_s"])
    time, spread = "no number", ""
    if case["median_s"] is not None:
        time, spread = shell.seconds(case["median_s"]), " to ".join(map(shell.seconds, case["quartiles_s"]))
    shares = ", ".join(f"{kind} {percent(limit['share'])}" for kind, limit in (case["share_of_ceiling"] or {}).items())
    memory = megabytes(case["memory"]["peak_bytes"]) if case["memory"] else ""
    return (case["name"], case.get("label", ""), marked(time, case["simulated"] and "SIMULATED" not in case["name"]), spread, count,
            shares, memory, case["check"] or "", case["verdict"] or "")


def megabytes(size):
    return f"{size / 1e6:.3g} MB" if size < 1e9 else f"{size / 1e9:.3g} GB"


def percent(share):
    return f"{share:.0%}" if share < 100 else f"{100 * share:.3g}%"  # no line of 300 digits


def figures(drawn, stems):
    """{stem of the benchmark: its figures}; "": of none. They are pictures: what stands in them is text, and runs nothing."""
    found = {}
    for svg in sorted(drawn.glob("*.svg")):
        owners = [stem for stem in stems if f"{svg.stem}_".startswith(f"{stem}_")]
        found.setdefault(max(owners, key=len, default=""), []).append(picture(svg))
    return found


def picture(svg):
    data = base64.b64encode(svg.read_bytes()).decode()
    image = tag("img", src=f"data:image/svg+xml;base64,{data}", alt=f"{svg.stem}: what the tables give, drawn")
    return tag("figure", scroll(image), tag("figcaption", svg.stem))


def lesson(one):
    rows = [(name, ", ".join(map(words, values))) for name, values in one["results"].items()]
    return tag("div", tag("h3", one["program"]), tag("p", f"{one['started']}, {revision(one)}"), table(["what", "values"], rows))


def left_out(folder, reports):
    """What was skipped, failed or is unfinished, and values that are no numbers, with the reasons."""
    kinds = {"lesson": of_lesson, "benchmark": of_benchmark}
    rows = [row for path, one in reports.items() for row in kinds[one["kind"]](path, one)]
    rows += [(path.name.removesuffix(UNFINISHED), "all", "not finished", "interrupted; ./gradus bench … --resume goes on with it")
             for path in sorted(folder.glob("*" + UNFINISHED))]
    body = table(["file", "case", "what", "why"], rows) if rows else tag("p", "Nothing.")
    return tag("section", tag("h2", "Left out, and why"), body, id="left-out")


def of_lesson(path, one):
    if one["status"] == "skipped":
        yield path.stem, one["program"], "skipped", one["reason"] or "no reason recorded"


def of_benchmark(path, one):
    for case in one["cases"]:
        if case["status"] != "measured":
            yield path.stem, case["name"], case["status"], case["reason"] or "no reason recorded"
        for place, value in case["invalid"].items():
            yield path.stem, case["name"], f"no number: {place}", value
