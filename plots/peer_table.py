#!/usr/bin/env python3
"""Writes docs/performance.md from results/<machine>/reference/peer_torch.json.

    python3 plots/peer_table.py [--check]

--check writes nothing and fails if the page is not what the results say, so that no number in it can be typed by hand.
"""
import sys

import figure
from driver import peer_cases, speedups

PAGE = figure.ROOT / "docs" / "performance.md"
HEAD = """# Gradus beside PyTorch

Written by `python3 plots/peer_table.py` from `{source}`; a test compares the two.

{what}
The same work on the same numbers, checked to give the same results; both sides take turns in one run, on the same cores
(`docs/howto/measure.md`). The rival is the fastest of PyTorch's ways to do it on this machine, and it is named. "Times as fast" is
the ratio of medians, in brackets from the quartiles. A bound is the speed that we set out to reach; 0.97 of it counts as reached
where it is 1.
"""
WAYS = """
## PyTorch's ways

Medians of each way that was measured, of which the table above takes the fastest.
"""
ROW = "| {} | {} | {} | {} | {} | {} | {} |"


def machine_of(report):
    """In words: date, processor, cores, versions, revision."""
    host, peers = (report["environment"] or {}).get("host", {}), (report["environment"] or {}).get("peers", {})
    suite = report["suite"]
    revision = f"{suite['revision']}{'-dirty' * bool(suite['dirty'])}"
    facts = [f"{report['started'][:10]}", f"{host.get('cpu')} ({host.get('vector_units')}), {host.get('cores')} cores",
             host.get("os"), f"{peers.get('gradus', {}).get('name')} at {revision}", peers.get("torch", {}).get("name"),
             f"{report['run']['repetitions']} samples a case"]
    return "; ".join(map(str, facts)) + "." + " QUICK: no times to quote." * report["run"]["quick"]


def reached(ratio, bound):
    least = 0.97 if bound == 1 else bound
    return "" if bound is None else f"{bound} x, {'met' if ratio >= least else 'missed'}"


def measured_ways(case, threads, by_name):
    """{way: its case}, Gradus's among them."""
    return {one["parameters"]["by"]: one for one in by_name.values()
            if one["name"].startswith(f"{case.title}/threads:{threads}/by:")}


def title_of(case):
    return case.title.replace("/", " ").replace(":", " ")


def words(way):
    return way.replace("_", "-").replace("+", " + ")


def row(case, threads, by_name):
    """A line of the table; None where neither side was measured."""
    ways = measured_ways(case, threads, by_name)
    ours = ways.pop("gradus", None)
    rivals = [one for one in ways.values() if one["median_s"]]
    if ours is None:
        return None
    title = title_of(case)
    if not ours["median_s"] or not rivals:
        why = next(filter(None, [ours["reason"], *(one["reason"] for one in ways.values())]), "not measured")
        return ROW.format(title, threads, "", "", "", why, "")
    best = min(rivals, key=lambda one: one["median_s"])
    found = speedups.ratio(ours, best)
    bound = case.bounds[0 if threads == 1 else 1]
    return ROW.format(title, threads, figure.shell.seconds(ours["median_s"]), figure.shell.seconds(best["median_s"]),
                      words(best["parameters"]["by"]),
                      f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]", reached(found["ratio"], bound))


def row_of_ways(case, threads, by_name):
    """All of PyTorch's ways on a line; None where there is but one."""
    ways = {way: one for way, one in measured_ways(case, threads, by_name).items() if way != "gradus"}
    told = [f"{words(way)} {figure.shell.seconds(one['median_s']) if one['median_s'] else '(' + one['status'] + ')'}"
            for way, one in ways.items()]
    return f"| {title_of(case)} | {threads} | {', '.join(told)} |" if len(ways) > 1 else None


def page(source):
    report = figure.results.load(source)
    by_name = {case["name"]: case for case in report["cases"]}
    counts = sorted({case["parameters"]["threads"] for case in report["cases"] if "threads" in case["parameters"]})
    rows = [line for case in peer_cases.CASES for threads in counts if (line := row(case, threads, by_name))]
    head = ROW.format("case", "threads", "Gradus", "PyTorch", "its way", "times as fast", "bound")
    ways = [line for case in peer_cases.CASES for threads in counts if (line := row_of_ways(case, threads, by_name))]
    return "\n".join([HEAD.format(source=figure.shown(source), what=machine_of(report)), head, ROW.format(*["---"] * 7), *rows,
                      WAYS, "| case | threads | medians |", "|---|---|---|", *ways]) + "\n"


def main():
    sources = sorted(figure.ROOT.glob("results/*/reference/peer_torch.json"))
    if not sources and not PAGE.exists():
        return  # nothing was measured, and nothing is said
    if len(sources) != 1:
        sys.exit(f"peer_table: {len(sources)} machines have a reference beside PyTorch; the page shows one")
    wanted = page(sources[0])
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
        sys.exit("peer_table: docs/performance.md differs from the results; run plots/peer_table.py")


if __name__ == "__main__":
    try:
        main()
    except figure.Failure as failure:
        sys.exit(f"peer_table: {failure}")
