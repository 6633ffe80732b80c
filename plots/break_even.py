#!/usr/bin/env python3
"""Draws lesson 02's benchmark: matrix products by size on the cpu and on a device, and copies by size.

    plots/break_even.py results/<machine>/reference/02_device_transfer.json

writes plots/<machine>/02_device_transfer.svg: medians with the range of all samples, and the size from which on the way to the
device and back pays. The same file gives the same bytes (with the same matplotlib).
"""
import statistics

import figure
from driver import speedups

COPIES = [("Memcpy", figure.GREY, ":", "^"),
          ("HostToDevice_pageable", figure.BLUE, "--", "o"), ("HostToDevice_pinned", figure.BLUE, "-", "s"),
          ("DeviceToHost_pageable", figure.ORANGE, "--", "o"), ("DeviceToHost_pinned", figure.ORANGE, "-", "s")]
PRODUCTS = ("Matmul", "MatmulThereAndBack")


def by_size(cases):
    """{(family, device): {size: [seconds]}} of the products and copies among the cases"""
    found = {}
    for case in cases:
        size = case["parameters"].get("n" if case["family"] in PRODUCTS else "bytes")
        if size is not None and case["family"] in (*PRODUCTS, *(family for family, *_ in COPIES)):
            found.setdefault((case["family"], case["device"]), {})[size] = figure.samples(case)
    return found


def medians(samples):
    """{size: median} of {size: [seconds]}"""
    return {size: statistics.median(times) for size, times in sorted(samples.items())}


def ratios(cpu, device):
    """{size: times as fast on the device}, of two {size: seconds}"""
    return {n: cpu[n] / device[n] for n in sorted(set(cpu) & set(device))}


def draw_products(axes, cases, device, name):
    for key, style in ((("Matmul", "cpu"), dict(color=figure.GREY, linestyle=":", marker="^", label="cpu")),
                       (("Matmul", device), dict(color=figure.BLUE, linestyle="--", marker="o", label=name)),
                       (("MatmulThereAndBack", device),
                        dict(color=figure.ORANGE, linestyle="-", marker="s", label=f"{name}, there and back"))):
        if key in cases:
            figure.line(axes, {n: [1e3 * seconds for seconds in times] for n, times in cases[key].items()}, **style)
    cpu, there = medians(cases["Matmul", "cpu"]), medians(cases["MatmulThereAndBack", device])
    faster = ratios(cpu, there)
    n = speedups.break_even(faster)
    if n is not None:
        axes.axvline(n, color="black", linewidth=1)
    sizes = sorted(cpu)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="milliseconds",
             title=f"n x n product: {speedups.break_even_in_words('n', faster)}")
    axes.set_xticks(sizes, sizes)


def draw_copies(axes, cases, device):
    for family, colour, linestyle, marker in COPIES:
        times_of = cases.get((family, "cpu" if family == "Memcpy" else device))
        if times_of:
            rates = {size: [size / seconds / 1e9 for seconds in times] for size, times in times_of.items()}
            label = family.replace("_", ", ").replace("ToDevice", " to device").replace("ToHost", " to host")
            figure.line(axes, rates, color=colour, linestyle=linestyle, marker=marker, label=label)
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel="GB a second", title="one copy, waited for")
    sizes = [1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26]
    axes.set_xticks(sizes, ["1 KiB", "16 KiB", "256 KiB", "4 MiB", "64 MiB"])


def draw(plt, source):
    """Of the GPU where the file has one, else of the simulated device."""
    report = figure.results.load(source)
    measured = figure.measured(report, source)
    cases = by_size(measured)
    devices = sorted(device for family, device in cases if family == "MatmulThereAndBack")
    if not devices or not set(cases["MatmulThereAndBack", devices[0]]) & set(cases.get(("Matmul", "cpu"), ())):
        raise figure.NothingToDraw(f"{source}: lacks the products of lesson 02, of the cpu and of a device")
    device = devices[0]
    shown = [case for case in measured if (case["family"], case["device"]) in cases and case["device"] in ("cpu", device)]
    drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draw_products(left, cases, device, f"{device}, SIMULATED" if device.startswith("sim") else device)
    draw_copies(right, cases, device)
    for axes in (left, right):
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend()
    return figure.picture(drawing, report, shown, source)


if __name__ == "__main__":
    figure.run(draw, __doc__)
