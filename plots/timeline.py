#!/usr/bin/env python3
"""Draws when copies and work ran, as lesson 02 wrote it with --timeline.

    plots/timeline.py results/<machine>/reference/02_device_transfer_overlap.csv

writes plots/<machine>/02_device_transfer_overlap.svg (beside the CSV, if that is not a result). The same file gives the same
bytes (with the same matplotlib).
"""
import argparse
import csv
import pathlib
import sys

import figure

COLOUR = [figure.BLUE, figure.ORANGE, figure.GREEN, figure.PURPLE]


def read(path):
    """(device, {schedule: {row: [(batch, start, end)]}}); times in milliseconds."""
    schedules, devices = {}, set()
    with open(path, newline="", encoding="utf-8") as file:
        try:
            for line in csv.DictReader(file):
                start, end = float(line["start_ms"]), float(line["end_ms"])
                if not 0 <= start <= end < float("inf"):
                    sys.exit(f"{path}: a span from {start} to {end} ms")
                rows = schedules.setdefault(line["schedule"], {})
                rows.setdefault(line["row"], []).append((int(line["batch"]), start, end))
                devices.add(line["device"])
        except (KeyError, TypeError, ValueError) as error:
            sys.exit(f"{path}: is not a timeline: {error!r}")
    if len(devices) != 1:
        sys.exit(f"{path}: a timeline of {len(devices)} devices")
    return devices.pop(), schedules


def panel(axes, title, rows):
    for at, (row, spans) in enumerate(rows.items()):
        axes.broken_barh([(start, end - start) for _, start, end in spans], (at - 0.35, 0.7),
                         color=COLOUR[at % len(COLOUR)], edgecolor="white", linewidth=0.8)
        for batch, start, end in spans:
            axes.text((start + end) / 2, at, str(batch), ha="center", va="center", fontsize=8, color="white")
    last = max(end for spans in rows.values() for _, _, end in spans)
    axes.set(title=f"{title}: {last:.1f} ms", yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.5, -0.5))
    axes.grid(axis="x", alpha=0.3)


def draw(plt, schedules):
    drawing, panels = plt.subplots(len(schedules), 1, figsize=(8, 1 + 1.4 * len(schedules)), sharex=True,
                                   squeeze=False, layout="constrained")
    for axes, (title, rows) in zip(panels[:, 0], schedules.items()):
        panel(axes, title, rows)
    panels[-1, 0].set(xlabel="milliseconds; the digit is the batch")
    panels[-1, 0].set_xlim(left=0)
    return drawing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="default: plots/<machine>/<name>.svg")
    options = parser.parse_args()
    device, schedules = read(options.timeline)
    plt = figure.pyplot()
    figure.save(draw(plt, schedules), f"{device} · {figure.shown(options.timeline)}", device.startswith("sim"),
                options.out or figure.output_of(options.timeline))


if __name__ == "__main__":
    main()
