#!/usr/bin/env python3
"""Draws lesson 01's benchmark: the memory bandwidth and the matrix-multiply rate of this machine, its ceilings.

    plots/ceilings.py results/<machine>/reference/01_env_check.json

writes plots/<machine>/01_env_check.svg: medians with the range of all samples. The same file gives the same bytes (with the
same matplotlib).
"""
import statistics

import figure

PANELS = [("bytes", "GB a second", "memory"), ("flops", "GFLOP a second", "matrix products")]
COLOURS, MARKERS = [figure.GREY, figure.BLUE, figure.ORANGE, figure.GREEN], ["^", "o", "s", "D"]


def rows_of(cases, kind):
    """{case without its threads: {threads: [rates in 1e9 a second]}}"""
    rows = {}
    for case in cases:
        if case["work"][kind]:
            threads = case["parameters"].get("threads", 0)
            name = case["name"].split("/threads:")[0]
            rows.setdefault(name, {})[threads] = [case["work"][kind] / time / 1e9 for time in figure.samples(case)]
    return rows


def panel(axes, rows, xlabel, title):
    threads_of = sorted({threads for rates in rows.values() for threads in rates})
    for style, threads in enumerate(threads_of):
        label = f"{threads} thread{'s' * (threads > 1)}" if threads else "device"
        for at, rates in enumerate(rows.values()):
            if threads in rates:
                middle = statistics.median(rates[threads])
                axes.errorbar([middle], [at], xerr=[[middle - min(rates[threads])], [max(rates[threads]) - middle]],
                              color=COLOURS[style % 4], marker=MARKERS[style % 4], capsize=2, linestyle="none", label=label)
                label = None  # once in the legend
    axes.set(title=title, xlabel=xlabel, yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.5, -0.5))
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend()


def draw(plt, source):
    report = figure.results.load(source)
    cases = [case for case in figure.measured(report, source) if case["work"]["bytes"] or case["work"]["flops"]]
    panels = [(rows, label, title) for kind, label, title in PANELS if (rows := rows_of(cases, kind))]
    if not panels:
        raise figure.NothingToDraw(f"{source}: holds no rates of bytes or operations")
    drawing, all_axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 3.2), squeeze=False, layout="constrained")
    for axes, (rows, label, title) in zip(all_axes[0], panels):
        panel(axes, rows, label, title)
    return figure.picture(drawing, report, cases, source)


if __name__ == "__main__":
    figure.run(draw, __doc__)
