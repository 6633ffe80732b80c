#!/usr/bin/env python3
"""Draws any benchmark's cases, a line each: the median time with the range of all samples.

    plots/medians.py results/<machine>/reference/04_train_loop.json

writes plots/<machine>/04_train_loop.svg. The same file gives the same bytes (with the same matplotlib).
"""
import statistics

import figure


def draw(plt, source):
    report = figure.results.load(source)
    cases = figure.measured(report, source)
    if not cases:
        raise figure.NothingToDraw(f"{source}: holds no case with a time")
    drawing, axes = plt.subplots(figsize=(8, 1 + 0.2 * len(cases)), layout="constrained")
    for at, case in enumerate(cases):
        times = figure.samples(case)
        middle = statistics.median(times)
        axes.errorbar([middle], [at], xerr=[[middle - min(times)], [max(times) - middle]], markersize=4, capsize=2,
                      color=figure.ORANGE if case["simulated"] else figure.BLUE, marker="s" if case["simulated"] else "o")
    axes.set(xscale="log", xlabel="seconds", yticks=range(len(cases)), yticklabels=[case["name"] for case in cases],
             ylim=(len(cases) - 0.5, -0.5), title=report["program"].removesuffix("_bench"))
    axes.grid(alpha=0.3)
    return figure.picture(drawing, report, cases, source)


if __name__ == "__main__":
    figure.run(draw, __doc__)
