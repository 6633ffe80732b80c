"""What the plotting programs share: matplotlib or a message, names of files, the footer, the mark of simulated times, and
the same bytes from the same input."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Colours that colour-blind readers can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555"


def pyplot():
    """matplotlib.pyplot, set up for SVG; ends the program where there is none."""
    try:
        import matplotlib
        matplotlib.use("svg")
        import matplotlib.pyplot as plt
    except ImportError:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name} needs matplotlib: sudo apt install python3-matplotlib")
    plt.rcParams.update({"svg.hashsalt": "gradus", "svg.fonttype": "none", "font.size": 9})
    return plt


def output_of(source):
    """plots/<machine>/<name>.svg for results/<machine>/<run>/<name>.*, else <name>.svg beside the source."""
    source = source.resolve()
    if source.is_relative_to(ROOT / "results"):
        return ROOT / "plots" / source.parents[1].name / f"{source.stem}.svg"
    return source.with_suffix(".svg")


def shown(source):
    """The source's name for the footer: with its machine and run where it is a result."""
    source = source.resolve()
    return str(source.relative_to(ROOT)) if source.is_relative_to(ROOT) else source.name


def save(figure, footer, simulated, out):
    """Writes the figure with its footer, and across it SIMULATED where its times are."""
    figure.supxlabel(footer, fontsize=7, color="grey", x=0.01, ha="left")
    if simulated:
        figure.text(0.5, 0.5, "SIMULATED", fontsize=56, color="grey", alpha=0.18, rotation=20, ha="center", va="center")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None, "Creator": None})
    print(out)
