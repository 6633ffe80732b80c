#!/usr/bin/env python3
"""Draws the learning curve that lesson 04 wrote with --curve.

    plots/learning_curve.py results/<machine>/reference/04_train_loop_curve.csv

writes plots/<machine>/04_train_loop_curve.svg. The same file gives the same bytes (with the same matplotlib).
"""
import argparse
import csv
import pathlib
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit("learning_curve.py needs matplotlib: sudo apt install python3-matplotlib")

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Two colours that colour-blind readers can tell apart (Okabe and Ito); lines and marks differ as well.
TRAINING = dict(color="#0072B2", linestyle="--", marker="o", label="training")
VALIDATION = dict(color="#D55E00", linestyle="-", marker="s", label="validation")
GOAL = 91


def read(path):
    """{column: [numbers]} of the CSV."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit(f"{path}: has no epochs")
    try:
        return {name: [float(row[name]) for row in rows] for name in
                ("epoch", "train_loss", "train_accuracy", "val_loss", "val_accuracy")}
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"{path}: is not a learning curve: {error!r}")


def panel(axes, title, epochs, training, validation):
    axes.plot(epochs, training, markersize=4, **TRAINING)
    axes.plot(epochs, validation, markersize=4, **VALIDATION)
    axes.set(title=title, xlabel="epoch", xticks=epochs)
    axes.grid(alpha=0.3)


def draw(curve, footer):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    panel(left, "cross-entropy", curve["epoch"], curve["train_loss"], curve["val_loss"])
    percent = {name: [100 * value for value in curve[name]] for name in ("train_accuracy", "val_accuracy")}
    panel(right, "accuracy, %", curve["epoch"], percent["train_accuracy"], percent["val_accuracy"])
    right.axhline(GOAL, color="grey", linewidth=1, linestyle=":", label=f"goal: {GOAL} % in validation")
    right.legend(loc="lower right")
    figure.supxlabel(footer, fontsize=7, color="grey", x=0.01, ha="left")
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curve", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="default: plots/<machine>/<name>.svg")
    options = parser.parse_args()
    source = options.curve.resolve()
    machine = source.parents[1].name
    out = options.out or ROOT / "plots" / machine / f"{source.stem}.svg"
    shown = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source.name
    plt.rcParams.update({"svg.hashsalt": "gradus", "svg.fonttype": "none", "font.size": 9})
    out.parent.mkdir(parents=True, exist_ok=True)
    draw(read(source), f"{machine} · {shown}").savefig(out, metadata={"Date": None, "Creator": None})
    print(out)


if __name__ == "__main__":
    main()
