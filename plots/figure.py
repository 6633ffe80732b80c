"""What the plotting programs share: reading results, names of files, the footer, the mark of simulated times, and the same
bytes from the same input (with the same matplotlib).

A plotting program has draw(plt, source), which returns a Picture; run(draw, doc) makes a command of it.
"""
import argparse
import csv
import pathlib
import statistics
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lib"))
from driver import results, shell  # noqa: E402
from driver.plot import output_of  # noqa: E402
from driver.shell import Failure  # noqa: E402

# Colours that colour-blind readers can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555"


class NothingToDraw(Failure):
    """A file that can be read, but lacks the cases that a figure shows."""


class Picture(typing.NamedTuple):
    drawing: object  # matplotlib's figure
    footer: str
    marks: list  # words across the picture, such as SIMULATED
    table: list  # rows of the CSV that goes with it, the header first


def pyplot():
    """matplotlib.pyplot, set up for SVG; a Failure where there is none."""
    try:
        import matplotlib
        matplotlib.use("svg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise Failure("plots need matplotlib: ./gradus setup --report (sudo apt install python3-matplotlib), "
                      "and the Python that it is for: /usr/bin/python3") from None
    plt.rcParams.update({"svg.hashsalt": "gradus", "svg.fonttype": "none", "font.size": 9})
    return plt


def shown(source):
    """The source's name for the footer: with its machine and run where it is a result."""
    source = source.resolve()
    return source.relative_to(ROOT).as_posix() if source.is_relative_to(ROOT) else source.name


def measured(report, source):
    """The report's cases that have a time; says which others it leaves out, and why."""
    for case in report["cases"]:
        if not case["median_s"]:
            print(f"{source.name}: left out {case['name']}, {case['status']}: {case['reason']}")
        elif case["invalid"]:
            print(f"{source.name}: {case['name']} has values that are no numbers: "
                  + ", ".join(f"{place} was {value}" for place, value in case["invalid"].items()))
    return [case for case in report["cases"] if case["median_s"]]


def samples(case):
    """The times that are numbers and above 0: what a logarithm and a rate can be made of."""
    return [sample for sample in case["samples_s"] if sample]


def line(axes, by_x, **style):
    """A line through the medians of {x: [values]}, with the range of all values at each."""
    xs = sorted(by_x)
    middle = [statistics.median(by_x[x]) for x in xs]
    spread = [[m - min(by_x[x]) for x, m in zip(xs, middle)], [max(by_x[x]) - m for x, m in zip(xs, middle)]]
    axes.errorbar(xs, middle, yerr=spread, markersize=4, capsize=2, **style)


def device_in_words(case, report):
    """Such as "cpu (AMD EPYC)", where the environment names it."""
    record = report["environment"] or {}
    names = {device.get("device"): device.get("name") for device in record.get("devices", [])}
    if case["simulated"]:
        return f"{case['device']} SIMULATED"
    name = names.get("cuda:0" if case["device"] == "cuda" else case["device"])
    return f"{case['device']} ({name})" if name else case["device"]


def footer(report, cases, source):
    """Machine, devices, date, revision, samples a point, file."""
    counts = sorted({len(samples(case)) for case in cases})
    n = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    devices = ", ".join(sorted({device_in_words(case, report) for case in cases}))
    suite = report["suite"]
    revision = f"{suite['revision']}{'-dirty' * bool(suite['dirty'])}" if suite["revision"] else "revision not recorded"
    facts = " · ".join([report["machine"], devices, report["started"][:10], revision, f"n = {n}"])
    return facts + (" · " if len(facts) < 60 else "\n") + shown(source)


def marks(report, cases):
    """What a reader must not miss."""
    return (["SIMULATED"] * any(case["simulated"] for case in cases)
            + ["QUICK"] * report["run"]["quick"] + ["UNFINISHED"] * (not report["run"]["finished"])
            + [f"{report['build']['type']} build".upper()] * (report["build"]["type"] not in ("Release", None)))


def table(cases):
    """The CSV of cases: times in seconds."""
    header = ["case", "device", "simulated", "median_s", "lower_quartile_s", "upper_quartile_s", "min_s", "max_s", "samples",
              "items", "bytes", "flops"]
    return [header] + [[case["name"], case["device"], case["simulated"], case["median_s"], *case["quartiles_s"],
                        min(samples(case)), max(samples(case)), len(samples(case)),
                        *(case["work"][kind] for kind in ("items", "bytes", "flops"))] for case in cases]


def picture(drawing, report, cases, source):
    return Picture(drawing, footer(report, cases, source), marks(report, cases), table(cases))


def outputs(out):
    return [out.with_name(f"{out.name}.{ending}") for ending in ("svg", "png", "csv")]


def save(made, out):
    """Writes the picture as SVG and PNG with its footer and marks, and its table as CSV."""
    made.drawing.supxlabel(made.footer, fontsize=7, color="grey", x=0.01, ha="left")
    for at, mark in enumerate(made.marks):
        made.drawing.text(0.5, 0.5 - 0.2 * at, mark, fontsize=56, color="grey", alpha=0.18, rotation=20, ha="center",
                          va="center")
    out.parent.mkdir(parents=True, exist_ok=True)
    svg, png, table_file = outputs(out)
    made.drawing.savefig(svg, metadata={"Date": None, "Creator": None})
    made.drawing.savefig(png, dpi=110, metadata={"Software": None})
    with open(table_file, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(made.table)
    print(svg)


def draw_file(draw, source, out=None):
    """Draws one file. Where that fails, what was drawn of it before is removed, so that it does not look new."""
    out = out or output_of(source)
    try:
        plt = pyplot()
        made = draw(plt, source)
        save(made, out)
        plt.close(made.drawing)
    except Failure:
        for path in outputs(out):
            path.unlink(missing_ok=True)
        raise


def run(draw, doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="default: plots/<machine>/<name>.svg; .png and .csv go beside it")
    options = parser.parse_args()
    try:
        draw_file(draw, options.source, options.out and options.out.with_suffix(""))
    except Failure as failure:
        sys.exit(str(failure))
