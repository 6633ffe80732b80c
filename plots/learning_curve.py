#!/usr/bin/env python3
"""Draws the learning curve that lesson 04 wrote with --curve.

    plots/learning_curve.py results/<machine>/reference/04_train_loop_curve.csv

writes plots/<machine>/04_train_loop_curve.svg. The same file gives the same bytes (with the same matplotlib).
"""
import csv
import math

import figure

# Lines and marks differ as well as colours.
TRAINING = dict(color=figure.BLUE, linestyle="--", marker="o", label="training")
VALIDATION = dict(color=figure.ORANGE, linestyle="-", marker="s", label="validation")
COLUMNS = ["epoch", "train_loss", "train_accuracy", "val_loss", "val_accuracy"]
GOAL = 91


def read(path):
    """{column: [numbers]} of the CSV."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        curve = {name: [float(row[name]) for row in rows] for name in COLUMNS}
    except OSError as error:
        raise figure.Failure(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise figure.Failure(f"{path}: is not a learning curve: {error!r}") from None
    if not rows:
        raise figure.Failure(f"{path}: has no epochs")
    if not all(math.isfinite(value) for value in curve["epoch"]):  # a loss may be NaN: the line has a gap there
        raise figure.Failure(f"{path}: an epoch is no number")
    return curve


def panel(axes, title, epochs, training, validation):
    axes.plot(epochs, training, markersize=4, **TRAINING)
    axes.plot(epochs, validation, markersize=4, **VALIDATION)
    axes.set(title=title, xlabel="epoch", xticks=epochs)
    axes.grid(alpha=0.3)


def draw(plt, source):
    curve = read(source)
    drawing, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    panel(left, "cross-entropy", curve["epoch"], curve["train_loss"], curve["val_loss"])
    percent = {name: [100 * value for value in curve[name]] for name in ("train_accuracy", "val_accuracy")}
    panel(right, "accuracy, %", curve["epoch"], percent["train_accuracy"], percent["val_accuracy"])
    right.axhline(GOAL, color="grey", linewidth=1, linestyle=":", label=f"goal: {GOAL} % in validation")
    right.legend(loc="lower right")
    footer = f"{source.resolve().parents[1].name} · {figure.shown(source)}"
    return figure.Picture(drawing, footer, [], [COLUMNS, *zip(*(curve[name] for name in COLUMNS))])


if __name__ == "__main__":
    figure.run(draw, __doc__)
