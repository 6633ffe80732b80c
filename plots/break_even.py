#!/usr/bin/env python3
"""Draws lesson 02's benchmark: matrix products by size on the cpu and on a device, and copies by size.

    plots/break_even.py results/<machine>/reference/02_device_transfer.json [--device sim_SIMULATED]

writes plots/<machine>/02_device_transfer.svg: medians with the range of all samples, and the size from which on the way to the
device and back pays. The same file gives the same bytes (with the same matplotlib).
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import sys

import figure

CASE = re.compile(r"(\w+)/(\w+)/(?:n|bytes):(\d+)/(?:min_time:[0-9.]+/)?real_time")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
COPIES = [("Memcpy", figure.GREY, ":", "^"),
          ("HostToDevice_pageable", figure.BLUE, "--", "o"), ("HostToDevice_pinned", figure.BLUE, "-", "s"),
          ("DeviceToHost_pageable", figure.ORANGE, "--", "o"), ("DeviceToHost_pinned", figure.ORANGE, "-", "s")]


def read(path):
    """({(case, device): {size: [seconds]}}, date)"""
    report = json.loads(path.read_text(encoding="utf-8"))
    cases = {}
    for run in report["benchmarks"]:
        match = CASE.fullmatch(run["run_name"])
        if match and run.get("run_type") != "aggregate" and not run.get("error_occurred"):
            seconds = run["real_time"] * SECONDS[run["time_unit"]]
            cases.setdefault((match[1], match[2]), {}).setdefault(int(match[3]), []).append(seconds)
    if not cases:
        sys.exit(f"{path}: holds no case of lesson 02")
    return cases, report["context"]["date"][:10]


def medians(by_size):
    return {size: statistics.median(samples) for size, samples in sorted(by_size.items())}


def break_even(cpu, device):
    """The size from which on `device` (both {size: seconds}) is the faster; between two sizes a straight line in logarithms.
    None where the largest size is not yet worth it; the smallest size where all are."""
    sizes = sorted(set(cpu) & set(device))
    behind = [n for n in sizes if device[n] > cpu[n]]
    if not sizes or (behind and behind[-1] == sizes[-1]):
        return None
    if not behind:
        return sizes[0]
    low = behind[-1]
    high = sizes[sizes.index(low) + 1]
    a, b = math.log(device[low] / cpu[low]), math.log(device[high] / cpu[high])
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * a / (a - b))


def verdict(cpu, device):
    """The break-even in words."""
    sizes = sorted(set(cpu) & set(device))
    n = break_even(cpu, device)
    if n is None:
        return f"no break-even up to n = {sizes[-1]}"
    return f"pays at every n from {sizes[0]} on" if n == sizes[0] else f"break-even at n = {n:.0f}"


def line(axes, by_size, transform, **style):
    middle = {size: transform(size, seconds) for size, seconds in medians(by_size).items()}
    spread = [[abs(middle[s] - transform(s, extreme(by_size[s]))) for s in middle] for extreme in (min, max)]
    if transform(1, 1) > transform(1, 2):  # a rate: the shortest time is the upper end
        spread.reverse()
    axes.errorbar(list(middle), list(middle.values()), yerr=spread, markersize=4, capsize=2, **style)


def draw_products(axes, cases, device):
    def milliseconds(_, seconds):
        return 1e3 * seconds
    line(axes, cases["Matmul", "cpu"], milliseconds, color=figure.GREY, linestyle=":", marker="^", label="cpu")
    line(axes, cases["Matmul", device], milliseconds, color=figure.BLUE, linestyle="--", marker="o", label=device)
    line(axes, cases["MatmulThereAndBack", device], milliseconds, color=figure.ORANGE, linestyle="-", marker="s",
         label=f"{device}, there and back")
    cpu, there = medians(cases["Matmul", "cpu"]), medians(cases["MatmulThereAndBack", device])
    n = break_even(cpu, there)
    if n is not None:
        axes.axvline(n, color="black", linewidth=1)
    sizes = sorted(cpu)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="milliseconds",
             title=f"n x n product: {verdict(cpu, there)}")
    axes.set_xticks(sizes, sizes)


def draw_copies(axes, cases, device):
    for case, colour, linestyle, marker in COPIES:
        by_size = cases.get((case, "cpu" if case == "Memcpy" else device))
        if by_size:
            line(axes, by_size, lambda size, seconds: size / seconds / 1e9, color=colour, linestyle=linestyle,
                 marker=marker, label=case.replace("_", ", ").replace("ToDevice", " to device").replace("ToHost", " to host"))
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel="GB a second", title="one copy, waited for")
    sizes = [1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26]
    axes.set_xticks(sizes, ["1 KiB", "16 KiB", "256 KiB", "4 MiB", "64 MiB"])


def draw(plt, cases, device):
    drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draw_products(left, cases, device)
    draw_copies(right, cases, device)
    for axes in (left, right):
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend()
    return drawing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--device", help="default: cuda where the file has it, else the simulated one")
    parser.add_argument("--out", type=pathlib.Path, help="default: plots/<machine>/<name>.svg")
    options = parser.parse_args()
    cases, date = read(options.results)
    devices = sorted(device for case, device in cases if case == "MatmulThereAndBack")
    device = options.device or next(iter(devices), None)
    if device not in devices or ("Matmul", "cpu") not in cases:
        sys.exit(f"{options.results}: lacks the products of cpu and {device}; it has {', '.join(devices) or 'no device'}")
    repetitions = min(len(samples) for by_size in cases.values() for samples in by_size.values())
    footer = f"{device} · {date} · n = {repetitions} samples a point · {figure.shown(options.results)}"
    plt = figure.pyplot()
    figure.save(draw(plt, cases, device), footer, "SIMULATED" in device, options.out or figure.output_of(options.results))


if __name__ == "__main__":
    main()
