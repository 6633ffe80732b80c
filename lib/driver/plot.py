"""plot: draws every figure for which there are results, by the programs in plots/."""
import pathlib
import re

from . import results, shell
from .shell import ROOT, Failure, say


def started(folder):
    """When the newest of a folder's results began; "" where it has none."""
    times = [re.search(r'"started": "([^"]*)"', path.read_text(encoding="utf-8", errors="replace"))
             for path in folder.glob("*.json")]
    return max((found[1] for found in times if found), default="")


def newest(command):
    """This machine's newest folder of results, for ./gradus `command`."""
    folders = [path for path in (ROOT / "results" / results.machine()).glob("*") if path.is_dir() and started(path)]
    if not folders:
        others = ", ".join(str(path.relative_to(ROOT)) for path in sorted((ROOT / "results").glob("*/reference")))
        raise Failure(f"{command}: results/{results.machine()} holds nothing yet: ./gradus bench measures this machine. "
                      f"Or take another's: ./gradus {command} --results {others or 'DIR'}", 2)
    return max(folders, key=started)


def output_of(source):
    """plots/<machine>/<name> for results/<machine>/reference/<name>.*, plots/<machine>/<run>/<name> for other runs, else <name>
    beside the source; without the ending."""
    source = source.resolve()
    if not source.is_relative_to(ROOT / "results"):
        return source.with_suffix("")
    run, machine = source.parents[0].name, source.parents[1].name
    folder = ROOT / "plots" / machine
    return (folder if run == "reference" else folder / run) / source.stem


def plot(options):
    folder = pathlib.Path(options.results).resolve() if options.results else newest("plot")
    if not folder.is_dir():
        raise Failure(f"plot: {options.results} is not a folder", 2)
    python = shell.python_with("matplotlib", "python3-matplotlib", "plot")
    if shell.run([python, "-B", ROOT / "plots" / "draw_all.py", folder]) != 0:
        raise Failure("plot: not everything could be drawn; what is wrong is above")
    say("SVG, PNG and CSV of each lie in plots/.")
    return 0
