"""compare: whether one set of results is faster or slower than another, case by case.

A case is slower (or faster) where three things hold: the medians differ by more than 5 %; Mann-Whitney's test says that the
samples differ, at 5 % for all cases together (Holm's correction); and the launches of the two sides lie further apart than
those of one side among themselves. The last because samples of one launch resemble each other more than the test believes:
without it, launches that differ by 5 % by chance make every second comparison of a build with itself find something slower.
Where only the first holds it is ambiguous.
"""
import pathlib
import statistics

from . import results, shell
from .shell import Failure, say

EFFECT, LEVEL = 0.05, 0.05
SAMPLES, LAUNCHES = 9, 3
# What differs between any two runs and explains nothing.
PASSING = {"started", "cases", "schema", "kind", "program", "load", "memory_free", "findings"}

# SciPy's test, and nothing else of it, so that ./gradus runs without it. Reads pairs of lists, prints their p-values.
MANN_WHITNEY = """
import json, sys
from scipy.stats import mannwhitneyu
for a, b in json.load(sys.stdin):
    tied = len(set(a) | set(b)) < len(a) + len(b)
    method = "asymptotic" if tied or len(a) * len(b) > 2500 else "exact"
    print(float(mannwhitneyu(a, b, alternative="two-sided", method=method).pvalue))
"""


def p_values(pairs):
    """Of Mann-Whitney's test, two-sided, for pairs of samples."""
    if not pairs:
        return []
    python = shell.python_with("scipy.stats", "python3-scipy", "compare")
    lines = shell.output_of([python, "-c", MANN_WHITNEY], pairs).split()
    if len(lines) != len(pairs):
        raise Failure("compare: SciPy's Mann-Whitney test failed", 2)
    return [float(line) for line in lines]


def holm(p):
    """p-values corrected for their number: the k-th smallest of n is multiplied by n - k + 1, and none falls below the one before."""
    order = sorted(range(len(p)), key=p.__getitem__)
    corrected, least = [0.0] * len(p), 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, p[at] * (len(p) - rank)))
        corrected[at] = least
    return corrected


def samples(case):
    return [sample for sample in case["samples_s"] if sample]


def medians_of_launches(case):
    """Of each launch that has a sample."""
    at, medians = 0, []
    for count in case["launches"]:
        launch = [sample for sample in case["samples_s"][at:at + count] if sample]
        at += count
        medians += [statistics.median(launch)] if launch else []
    return medians


def word_for(a, b, p):
    """same, faster, slower or ambiguous: of case b beside a, whose samples differ with the corrected p-value `p`."""
    ratio = b["median_s"] / a["median_s"]
    if 1 / (1 + EFFECT) <= ratio <= 1 + EFFECT:
        return "same"
    return ("slower" if ratio > 1 else "faster") if p <= LEVEL and apart(a, b) else "ambiguous"


def apart(a, b):
    """Whether the launches of two cases lie further apart, as a ratio, than those of either among themselves."""
    low, high = sorted(map(medians_of_launches, (a, b)), key=min)
    return min(high) / max(low) > max(max(low) / min(low), max(high) / min(high))


def unfit(a, b):
    """Why two cases of one name cannot be compared; None where they can."""
    if a["simulated"] != b["simulated"]:
        return "simulated against real"
    if a["timer"] != b["timer"]:
        return f"timed by {a['timer']} against {b['timer']}"
    fewest, launches = min(len(samples(a)), len(samples(b))), min(len(a["launches"]), len(b["launches"]))
    if fewest < SAMPLES or launches < LAUNCHES:
        return f"{fewest} samples of {launches} launches, needs {SAMPLES} of {LAUNCHES}"
    return None


def files_of(place):
    """{name: report} of a file, or of a folder's benchmarks."""
    path = pathlib.Path(place)
    if not path.is_dir():
        paths = [path]
    else:
        paths = [one for one in sorted(path.glob("*.json")) if not one.name.endswith((".lesson.json", ".unfinished.json"))]
    reports = {one.stem: results.load(one) for one in paths}
    for name, report in reports.items():
        if report["kind"] != "benchmark":
            raise Failure(f"compare: {place}: {name} is a {report['kind']}'s results, not a benchmark's", 2)
        build = report["build"]
        if build["type"] != "Release" or build["sanitizer"]:
            words = " ".join(filter(None, (build["type"] or "unknown", build["sanitizer"])))
            raise Failure(f"compare: {place}: {name} was measured with a build that is {words}, not Release; "
                          "its times mean nothing", 2)
    if not reports:
        raise Failure(f"compare: {place} holds no benchmark's results", 2)
    return reports


def leaves(value, path=""):
    """{dotted path: value} of nested dictionaries and lists."""
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        value = {str(at): item for at, item in enumerate(value)}
    if not isinstance(value, dict):
        return {path: value}
    found = {}
    for key, item in value.items():
        if key not in PASSING:
            found |= leaves(item, f"{path}.{key}" if path else key)
    return found


def differences(a, b):
    """Lines that name what differs in how two reports came about."""
    if (a["environment"] is None) != (b["environment"] is None):
        known = "A" if b["environment"] is None else "B"
        return [f"environment: recorded in {known} only", *differences({**a, "environment": None}, {**b, "environment": None})]
    ours, theirs = leaves(a), leaves(b)
    absent = "not there"
    return [f"{key}: {ours.get(key, absent)} against {theirs.get(key, absent)}"
            for key in sorted(ours.keys() | theirs.keys()) if ours.get(key, absent) != theirs.get(key, absent)]


def busy(side, report):
    """Lines that say where other programs had the machine: the load was above what one benchmark makes, all cores."""
    loads = [load for load in report["host"]["load"] if load is not None]
    cores = report["host"]["cores"]
    if not loads or not cores or max(loads) <= cores + 0.5:
        return []
    return [f"busy     {side}: load {max(loads):.1f} on {cores} cores; times of such a run mean little"]


def pair_up(a, b):
    """[(name, case of a or None, case of b or None)] of all cases; a single file stands beside a single file of any name."""
    if len(a) == len(b) == 1 and not a.keys() & b.keys():
        b = dict(zip(a, b.values()))
    pairs = []
    for stem in sorted(a.keys() | b.keys()):
        ours, theirs = ({case["name"]: case for case in side[stem]["cases"]} if stem in side else {} for side in (a, b))
        pairs += [(f"{stem}  {name}", ours.get(name), theirs.get(name))
                  for name in sorted(ours.keys() | theirs.keys(), key=results.natural)]
    return pairs


def verdicts(pairs):
    """[(name, word, remark)]; words: same faster slower ambiguous, failed (measured before), unfit, alone, skipped."""
    found, compared = [], []
    for name, a, b in pairs:
        if a is None or b is None:
            found.append((name, "alone", f"only in {'A' if b is None else 'B'}"))
        elif a["status"] == "measured" and b["status"] == "failed":
            found.append((name, "failed", f"in B: {b['reason']}"))
        elif a["status"] != "measured" or b["status"] != "measured":
            found.append((name, "skipped", f"{a['status']} in A, {b['status']} in B"))
        elif unfit(a, b):
            found.append((name, "unfit", unfit(a, b)))
        else:
            compared.append((name, a, b))
    corrected = holm(p_values([(samples(a), samples(b)) for _, a, b in compared]))
    for (name, a, b), p in zip(compared, corrected):
        remark = f"{shell.seconds(a['median_s'])} to {shell.seconds(b['median_s'])}, x {b['median_s'] / a['median_s']:.3f}, p = {p:.2g}"
        found.append((name, word_for(a, b, p), remark))
    return found


def status_of(found):
    """The exit status, and what it stands for."""
    words = [word for _, word, _ in found]
    if "slower" in words or "failed" in words:
        return 1, "slower"
    if "unfit" in words:
        return 2, "not all could be compared"
    if not {"same", "faster", "ambiguous"} & set(words):
        return 2, "they have no measured case in common"
    return 0, "none slower"


def compare(options):
    a, b = files_of(options.a), files_of(options.b)
    common = sorted(a.keys() & b.keys()) or [None]
    first, second = (a[common[0]], b[common[0]]) if common[0] else (next(iter(a.values())), next(iter(b.values())))
    for line in differences(first, second):
        say(f"differs  {line}")
    for line in busy("A", first) + busy("B", second):
        say(line)
    found = verdicts(pair_up(a, b))
    width = max((len(name) for name, _, _ in found), default=0)
    for name, word, remark in found:
        say(f"{word:<9} {name:<{width}}  {remark}")
    status, meaning = status_of(found)
    counts = {word: sum(word == other for _, other, _ in found) for _, word, _ in found}
    say(f"B beside A: {meaning}; " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return status
