"""What this machine can do at most, as lessons 01 and 02 measured it in the same run, and each case's share of it."""
import math
import typing

DTYPES = ("float32", "bfloat16", "float16", "float64")


class Limits(typing.NamedTuple):
    rates: dict  # {(device, threads, "memory" or a dtype): (bytes or operations a second, case)}: the fastest
    launches: dict  # {device: (seconds of the smallest operation, case)}
    copies: dict  # {device: [(bytes, bytes a second, case)]}: between host and device, pageable memory


def limits(reports):
    """Of lesson 01's and lesson 02's reports, those that there are. The ceiling of computing is the matrix product of the same
    dtype."""
    found = Limits({}, {}, {})
    for report in filter(None, reports):
        for case in report["cases"]:
            if not case["median_s"]:
                continue
            if report["program"].startswith("01_env_check"):
                add_rate(found.rates, case)
            elif case["family"] == "SmallestOp":
                found.launches[device_of(case)] = (case["median_s"], case["name"])
            elif case["family"].endswith("_pageable") and case["work"]["bytes"]:
                rate = case["work"]["bytes"] / case["median_s"]
                found.copies.setdefault(device_of(case), []).append((case["work"]["bytes"], rate, case["name"]))
    return found


def add_rate(best, case):
    matmul = case["family"] == "Matmul"
    work = case["work"]["flops" if matmul else "bytes"]
    if work:
        key = (device_of(case), case["parameters"].get("threads") or None, dtype_of(case) if matmul else "memory")
        best[key] = max(best.get(key, (0, "")), (work / case["median_s"], case["name"]))


def device_of(case):
    return "cuda:0" if case["device"] == "cuda" else case["device"]


def dtype_of(case):
    return next((value for value in case["parameters"].values() if value in DTYPES), "float32")


def share(case, known, threads):
    """A case's rates as a share of the ceilings of its device and threads (by default `threads`); None where none is known. The
    simulated device computes with the cpu's threads: it has no ceiling of its own."""
    shares = {}
    threads = case["parameters"].get("threads", threads) if case["device"] == "cpu" else None
    for kind, unit, ceiling in (("memory", "bytes", "memory"), ("compute", "flops", dtype_of(case))):
        limit = known.rates.get((device_of(case), threads, ceiling))
        if limit and case["work"][unit] and case["median_s"]:
            shares[kind] = {"of": limit[1], "share": case["work"][unit] / case["median_s"] / limit[0]}
    return shares or None


def launch_seconds(case, known):
    """What the case's launches alone cost; None where that is not known."""
    launches, cost = last(case, "launches"), known.launches.get(device_of(case))
    return launches * cost[0] if launches is not None and cost else None


def copy_seconds(case, known):
    """What the copies of the case between host and device cost, at the rate of copies of about that size; None where that is
    not known."""
    copied, rates = last(case, "copied_bytes"), known.copies.get(device_of(case))
    if not copied or not rates:
        return 0.0 if copied == 0 else None
    _, rate, _ = min(rates, key=lambda one: abs(math.log(one[0] / copied)))
    return copied / rate


def last(case, counter):
    """A counter's value that is a number: the last one, since counts do not vary."""
    values = [value for value in case["counters"].get(counter, []) if value is not None]
    return values[-1] if values else None
