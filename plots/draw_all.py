#!/usr/bin/env python3
"""Draws every figure for which a folder of results has a file: what ./gradus plot runs.

    plots/draw_all.py results/<machine>/reference [OUT]

OUT is a folder for the figures; without it they go where figure.output_of says.
A figure that has a program of its own is drawn by that, other benchmarks by medians.py. A file that cannot be read is named, its
old figure removed, and the exit status is 1; the others are drawn all the same.
"""
import pathlib
import sys

import break_even
import ceilings
import figure
import learning_curve
import medians
import throughput_by_batch
import timeline

OF_BENCHMARK = {"01_env_check": ceilings.draw, "02_device_transfer": break_even.draw,
                "03_model_to_gpu": throughput_by_batch.draw}
OF_TABLE = {"04_train_loop_curve": learning_curve.draw, "02_device_transfer_overlap": timeline.draw}


def sources(folder):
    """[(file, [ways to draw it, the best first])]"""
    benchmarks = [path for path in sorted(folder.glob("*.json")) if not path.name.endswith((".lesson.json", ".unfinished.json"))]
    tables = [path for path in sorted(folder.glob("*.csv")) if path.stem in OF_TABLE]
    return ([(path, [*filter(None, [OF_BENCHMARK.get(path.stem)]), medians.draw]) for path in benchmarks]
            + [(path, [OF_TABLE[path.stem]]) for path in tables])


def draw(source, ways, out=None):
    """Draws a file in the first way that finds its cases in it; False where none does."""
    for way in ways:
        try:
            figure.draw_file(way, source, out and out / source.stem)
            return True
        except figure.NothingToDraw as nothing:
            print(f"{nothing}; not drawn {'in that way' if way is not ways[-1] else 'at all'}")
    return False


def main(folder, out=None):
    found = sources(folder)
    if not found:
        sys.exit(f"{folder}: holds no results to draw")
    failed = 0
    for source, ways in found:
        try:
            draw(source, ways, out)
        except figure.Failure as failure:
            print(f"not drawn: {failure}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} FOLDER [OUT]")
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
