#!/usr/bin/env python3
"""Draws when copies and work ran, as lesson 02 wrote it with --timeline.

    plots/timeline.py results/<machine>/reference/02_device_transfer_overlap.csv

writes plots/<machine>/02_device_transfer_overlap.svg (beside the CSV, if that is not a result). The same file gives the same
bytes (with the same matplotlib).
"""
import csv

import figure

COLOUR = [figure.BLUE, figure.ORANGE, figure.GREEN, figure.PURPLE]


def read(path):
    """(device, {schedule: {row: [(batch, start, end)]}}); times in milliseconds."""
    schedules, devices = {}, set()
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                start, end = float(line["start_ms"]), float(line["end_ms"])
                if not 0 <= start <= end < float("inf"):
                    raise figure.Failure(f"{path}: a span from {start} to {end} ms")
                rows = schedules.setdefault(line["schedule"], {})
                rows.setdefault(line["row"], []).append((int(line["batch"]), start, end))
                devices.add(line["device"])
    except OSError as error:
        raise figure.Failure(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise figure.Failure(f"{path}: is not a timeline: {error!r}") from None
    if len(devices) != 1:
        raise figure.Failure(f"{path}: a timeline of {len(devices)} devices")
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


def draw(plt, source):
    device, schedules = read(source)
    drawing, panels = plt.subplots(len(schedules), 1, figsize=(8, 1 + 1.4 * len(schedules)), sharex=True,
                                   squeeze=False, layout="constrained")
    for axes, (title, rows) in zip(panels[:, 0], schedules.items()):
        panel(axes, title, rows)
    panels[-1, 0].set(xlabel="milliseconds; the digit is the batch")
    panels[-1, 0].set_xlim(left=0)
    spans = [[device, schedule, row, *span] for schedule, rows in schedules.items()
             for row, spans in rows.items() for span in spans]
    return figure.Picture(drawing, f"{device} · {figure.shown(source)}", ["SIMULATED"] * device.startswith("sim"),
                          [["device", "schedule", "row", "batch", "start_ms", "end_ms"], *spans])


if __name__ == "__main__":
    figure.run(draw, __doc__)
