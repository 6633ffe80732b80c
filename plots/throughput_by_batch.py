#!/usr/bin/env python3
"""Draws lesson 03's benchmark: what SimpleNet delivers by batch size, forward alone and with backward.

    plots/throughput_by_batch.py results/<machine>/reference/03_model_to_gpu.json

writes plots/<machine>/03_model_to_gpu.svg: medians with the range of all samples. The same file gives the same bytes (with
the same matplotlib).
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("throughput_by_batch.py needs matplotlib: sudo apt install python3-matplotlib")

ROOT = pathlib.Path(__file__).resolve().parents[1]
CASE = re.compile(r"(Forward|ForwardBackward)/batch:(\d+)/threads:(\d+)/(?:min_time:[0-9.]+/)?real_time")
# Colour by what is run, line and mark by threads (Okabe and Ito's colours).
COLOUR = {"Forward": "#0072B2", "ForwardBackward": "#D55E00"}
LINE = {1: dict(linestyle="--", marker="o"), 2: dict(linestyle="-", marker="s")}
TITLE = {"Forward": "forward", "ForwardBackward": "forward and backward"}


def read(path):
    """({(case, threads): {batch: [samples per second]}}, date)"""
    report = json.loads(path.read_text(encoding="utf-8"))
    lines = {}
    for run in report["benchmarks"]:
        match = CASE.fullmatch(run["run_name"])
        if match and run.get("run_type") != "aggregate":
            case, batch, threads = match[1], int(match[2]), int(match[3])
            lines.setdefault((case, threads), {}).setdefault(batch, []).append(run["items_per_second"])
    if not lines:
        sys.exit(f"{path}: holds no case of lesson 03")
    return lines, report["context"]["date"][:10]


def draw(lines, footer):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (case, threads), by_batch in sorted(lines.items()):
        batches = sorted(by_batch)
        medians = [statistics.median(by_batch[b]) for b in batches]
        spread = [[m - min(by_batch[b]) for b, m in zip(batches, medians)],
                  [max(by_batch[b]) - m for b, m in zip(batches, medians)]]
        label = f"{TITLE[case]}, {threads} thread{'s' if threads > 1 else ''}"
        axes.errorbar(batches, medians, yerr=spread, color=COLOUR[case], markersize=4, capsize=2, label=label, **LINE[threads])
    axes.set(xscale="log", yscale="log", xlabel="batch size", ylabel="samples a second", title="SimpleNet by batch size")
    axes.set_xticks(batches, batches)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.supxlabel(footer, fontsize=7, color="grey", x=0.01, ha="left")
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    options = parser.parse_args()
    source = options.results.resolve()
    machine = source.parents[1].name
    out = ROOT / "plots" / machine / "03_model_to_gpu.svg"
    plt.rcParams.update({"svg.hashsalt": "gradus", "svg.fonttype": "none", "font.size": 9})
    lines, date = read(source)
    repetitions = min(len(v) for by_batch in lines.values() for v in by_batch.values())
    out.parent.mkdir(parents=True, exist_ok=True)
    footer = f"{machine} · cpu · {date} · n = {repetitions} · {source.relative_to(ROOT)}"
    draw(lines, footer).savefig(out, metadata={"Date": None, "Creator": None})
    print(out.relative_to(ROOT))


if __name__ == "__main__":
    main()
