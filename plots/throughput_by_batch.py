#!/usr/bin/env python3
"""Draws lesson 03's benchmark: what SimpleNet delivers by batch size, forward alone and with backward.

    plots/throughput_by_batch.py results/<machine>/reference/03_model_to_gpu.json

writes plots/<machine>/03_model_to_gpu.svg: medians with the range of all samples. The same file gives the same bytes (with
the same matplotlib).
"""
import figure

# Colour by what is run, line and mark by where: threads of the cpu, then devices.
COLOUR = {"Forward": figure.BLUE, "ForwardBackward": figure.ORANGE}
STYLES = [dict(linestyle="--", marker="o"), dict(linestyle="-", marker="s"), dict(linestyle=":", marker="^")]
TITLE = {"Forward": "forward", "ForwardBackward": "forward and backward"}


def place_of(case):
    """What sorts and names the place a case ran at: (0, "2 threads") or (1, "cuda")."""
    threads = case["parameters"].get("threads")
    if threads:
        return 0, f"{threads} thread{'s' * (threads > 1)}"
    return 1, f"{case['device']}{', SIMULATED' * case['simulated']}"


def lines_of(cases):
    """{(family, place): {batch: [samples a second]}}"""
    lines = {}
    for case in cases:
        by_batch = lines.setdefault((case["family"], place_of(case)), {})
        by_batch[case["parameters"]["batch"]] = [case["work"]["items"] / seconds for seconds in figure.samples(case)]
    return lines


def draw(plt, source):
    report = figure.results.load(source)
    cases = [case for case in figure.measured(report, source)
             if case["family"] in COLOUR and "batch" in case["parameters"] and case["work"]["items"]]
    if not cases:
        raise figure.NothingToDraw(f"{source}: holds no case of lesson 03")
    lines = lines_of(cases)
    places = sorted({place for _, place in lines})
    drawing, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (family, place), by_batch in sorted(lines.items()):
        figure.line(axes, by_batch, color=COLOUR[family], label=f"{TITLE[family]}, {place[1]}",
                    **STYLES[places.index(place) % len(STYLES)])
    batches = sorted({batch for by_batch in lines.values() for batch in by_batch})
    axes.set(xscale="log", yscale="log", xlabel="batch size", ylabel="samples a second", title="SimpleNet by batch size")
    axes.set_xticks(batches, batches)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    return figure.picture(drawing, report, cases, source)


if __name__ == "__main__":
    figure.run(draw, __doc__)
