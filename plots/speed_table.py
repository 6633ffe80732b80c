#!/usr/bin/env python3
"""Writes the README's table of speeds from results/<machine>/reference/*.json.

    python3 plots/speed_table.py [--machine NAME] [--check]

Each row is a ratio of medians of one run, whose cases took turns (random interleaving). --check writes nothing and fails if the
table in README.md is not what the results say, so that no number in it can be typed by hand.
"""
import argparse
import sys

import figure

BEGIN, END = "<!-- speeds: plots/speed_table.py -->", "<!-- /speeds -->"


class Results:
    """Medians in seconds, and rates of items, by case name."""

    def __init__(self, path):
        self.report = figure.results.load(path)
        measured = [case for case in self.report["cases"] if case["median_s"]]
        self.seconds = {case["name"]: case["median_s"] for case in measured}
        self.rates = {case["name"]: case["work"]["items"] / case["median_s"] for case in measured if case["work"]["items"]}


def ratio(results, case, floor, threads):
    return results.seconds[f"{case}/threads:{threads}"] / results.seconds[f"{floor}/threads:{threads}"]


def rows(folder):
    train, model = Results(folder / "04_train_loop.json"), Results(folder / "03_model_to_gpu.json")
    ops, loader = Results(folder / "ops_elementwise.json"), Results(folder / "ops_loader.json")
    for title, results, case, floor, bound in [
        ("CNN train step, batch 256, channels-last", train, "CnnStep", "CnnStepFloor", "1.2"),
        ("the same, row-major", train, "CnnStepRowMajor", "CnnStepFloor", ""),
        ("SimpleNet train step, batch 32", model, "TrainStep", "TrainStepFloor", "1.3"),
        ("16-32-1 train step, batch 32", train, "SmallNetStep", "SmallNetStepFloor", "5"),
    ]:
        one, two = (ratio(results, case, floor, threads) for threads in (1, 2))
        yield title, f"{one:.2f} x floor", f"{two:.2f} x floor", f"{bound} x" if bound else ""
    loop = ops.seconds["Loop"]
    for title, case, bound in [("add of 16 elements, above its loop", "Add", "0.3"), ("the same, recorded", "AddRecorded", "0.5")]:
        yield title, f"{(ops.seconds[case] - loop) * 1e6:.2f} us", "", f"{bound} us"
    images = loader.rates["loader_batched/2"]
    yield "loader, normalised images a second, 2 workers", "", f"{images / 1e6:.2f} million", "0.6 million"


def table(folder):
    report = Results(folder / "04_train_loop.json").report
    head = ["| work | one thread | two threads | bound |", "|---|---|---|---|"]
    body = [f"| {' | '.join(row)} |" for row in rows(folder)]
    source = f"results/{folder.parent.name}/reference, {report['started'][:10]}, {report['host']['cores']} cores"
    return "\n".join([*head, *body, "", f"Medians of one run each whose cases took turns; from `{source}`."])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="folder under results/; the only one there unless given")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    folders = [path.parent for path in sorted(figure.ROOT.glob(f"results/{options.machine or '*'}/reference/04_train_loop.json"))]
    if len(folders) != 1:
        sys.exit(f"speed_table: {len(folders)} machines under results/ have lesson 04's reference; name one with --machine")
    readme = figure.ROOT / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    try:
        wanted = f"{before}{BEGIN}\n{table(folders[0])}\n{END}{after}"
    except (figure.Failure, KeyError) as error:
        sys.exit(f"speed_table: {folders[0]} lacks what the table shows: {error}")
    if options.check and wanted != text:
        sys.exit("speed_table: the table in README.md differs from the results; run plots/speed_table.py")
    if not options.check:
        readme.write_text(wanted)


if __name__ == "__main__":
    main()
