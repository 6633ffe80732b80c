"""Which cases of a benchmark are a speed-up over which others, by how much, and from what size on it pays.

A pair is the same work done in two ways: the case and its base differ in one thing, its `kind`. Pairs along an axis (a size, a
batch) make one series, which has a break-even: the size from which on the faster way is the faster one.
"""
import math

from . import verdicts

AXES = ("n", "batch", "bytes", "size", "elements")


def key(case, **changes):
    """What a case is: family, device and parameters; with `changes` (None: without) what its base is."""
    parameters = {name: value for name, value in {**case["parameters"], **changes.pop("parameters", {})}.items() if value is not None}
    return (changes.get("family", case["family"]), changes.get("device", case["device"]), frozenset(parameters.items()))


def of_device(case, cases):
    """A device over the cpu with all its threads. The way there and back is compared with the product alone."""
    if case["device"] == "cpu":
        return None
    family = case["family"].removesuffix("ThereAndBack")
    threads = [other["parameters"]["threads"] for other in cases if other["device"] == "cpu" and other["family"] == family
               and "threads" in other["parameters"]]
    return key(case, family=family, device="cpu", parameters={"threads": max(threads, default=None)})


def of_count(name):
    """More of something (threads, workers) over the fewest that make sense."""
    def base(case, _):
        least = 0 if name == "workers" else 1
        return key(case, parameters={name: least}) if case["parameters"].get(name, least) > least else None
    return base


def of_ending(ending, other=None):
    """A family over the one of the same name with `ending` behind it, or with `other` in the place of `ending`."""
    def base(case, _):
        if other is None:
            return key(case, family=case["family"] + ending)
        return key(case, family=case["family"].removesuffix(ending) + other) if case["family"].endswith(ending) else None
    return base


def of_peer(case, cases):
    """Gradus over the fastest of the ways in which the other side did the same work."""
    if case["parameters"].get("by") != "gradus":
        return None
    same = [other for other in cases if other["median_s"] and other is not case
            and key(other, parameters={"by": None}) == key(case, parameters={"by": None})]
    return key(min(same, key=lambda other: other["median_s"])) if same else None


KINDS = {"beside PyTorch": of_peer, "device over cpu": of_device, "threads over one": of_count("threads"), "workers over none": of_count("workers"),
         "pinned over pageable": of_ending("_pinned", "_pageable"), "channels-last over row-major": of_ending("RowMajor"),
         "beside its floor": of_ending("Floor")}


def ratio(case, base):
    """{ratio, low, high}: how many times as fast, of the medians; low and high from the quartiles."""
    (fast, slow), (early, late) = case["quartiles_s"], base["quartiles_s"]
    return {"ratio": base["median_s"] / case["median_s"], "low": early / slow, "high": late / fast}


def axis_of(case):
    return next((name for name in AXES if name in case["parameters"]), None)


def speedups(cases):
    """The series of a benchmark's cases, in the order of results/schema.json."""
    measured = {key(case): case for case in cases if case["median_s"]}
    series = {}
    for case in measured.values():
        for kind, base_of in KINDS.items():
            base = measured.get(base_of(case, cases))
            if base is not None and base is not case:
                axis = axis_of(case)
                what = (kind, axis, key(case, parameters={axis: None} if axis else {}), base["device"])
                series.setdefault(what, []).append({"case": case["name"], "over": base["name"], **ratio(case, base),
                                                    "at": case["parameters"][axis] if axis else None})
    return [one_series(kind, axis, points) for (kind, axis, *_), points in series.items()]


def one_series(kind, axis, points):
    points.sort(key=lambda point: (point["at"] is not None, point["at"]))
    sizes = {point["at"]: point["ratio"] for point in points if point["at"] is not None}
    return {"kind": kind, "axis": axis, "points": points, "break_even": break_even(sizes)}


def break_even(ratios):
    """The size from which on {size: ratio} is 1 or more; between two sizes a straight line in logarithms. None where the largest
    size is below 1; the smallest size where none is."""
    sizes = sorted(ratios)
    behind = [n for n in sizes if not ratios[n] >= 1]
    if not sizes or (behind and behind[-1] == sizes[-1]):
        return None
    if not behind:
        return sizes[0]
    low = behind[-1]
    high = sizes[sizes.index(low) + 1]
    a, b = math.log(ratios[low]), math.log(ratios[high])
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * a / (a - b))


def break_even_in_words(axis, ratios):
    """Such as "break-even at n = 128"."""
    sizes, at = sorted(ratios), break_even(ratios)
    if at is None:
        return f"no break-even up to {axis} = {sizes[-1]}"
    return f"pays at every {axis} from {sizes[0]} on" if at == sizes[0] else f"break-even at {axis} = {at:.0f}"


def line(series, verdict_of):
    """A series in words: the best point, the break-even, and why it is not more: the verdict of the faster case, where it has
    one."""
    best = max(series["points"], key=lambda point: point["ratio"])
    words = f"{best['case']}: {best['ratio']:.2f} times as fast as {best['over']} [{best['low']:.2f}, {best['high']:.2f}]"
    if len(series["points"]) > 1:
        words += "; " + break_even_in_words(series["axis"], {point["at"]: point["ratio"] for point in series["points"]})
    why = verdict_of[best["case"]]
    return words if why == verdicts.UNKNOWN else f"{words}; {why}"
