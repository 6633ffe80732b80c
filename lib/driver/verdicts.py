"""Why a case is as fast as it is: which part of the machine its time goes to.

Five parts, each a share of the case's time that was measured, not guessed:

    loader    waiting for the next batch          the benchmark's counter waiting_share
    transfer  copies between host and device      counter copied_bytes / lesson 02's rate of such copies
    launch    starting operations                 counter launches x lesson 02's smallest operation
    memory    moving bytes                        bytes a second / lesson 01's bandwidth
    compute   arithmetic                          operations a second / lesson 01's matrix product

A case is bound by the largest part if that is at least half of its time. Otherwise none of them explains it, and the verdict
gives the shares that are known.
"""
import statistics

from . import ceilings

HALF = 0.5
WORDS = {"loader": "waiting for data", "transfer": "copies between host and device", "launch": "starting operations",
         "memory": "of the memory bandwidth", "compute": "of the rate of a matrix product"}
UNKNOWN = "not known: no counted work, or lessons 01 and 02 were not measured in the same run"


def parts(case, known):
    """{part: share of the case's time}, of the parts that are known."""
    time, found = case["median_s"], {}
    waiting = [share for share in case["counters"].get("waiting_share", []) if share is not None]
    if waiting:
        found["loader"] = statistics.median(waiting)
    for part, seconds in (("transfer", ceilings.copy_seconds(case, known)), ("launch", ceilings.launch_seconds(case, known))):
        if seconds is not None:
            found[part] = seconds / time
    for part, limit in (case["share_of_ceiling"] or {}).items():
        found[part] = limit["share"]
    return found


def bound(found):
    """The part that takes half of the time or more; None where none does."""
    largest = max(found, key=found.get, default=None)
    return largest if largest and found[largest] >= HALF else None


def verdict(case, known):
    """A line for a case; None for one without a time."""
    if not case["median_s"]:
        return None
    found = parts(case, known)
    if not found:
        return UNKNOWN
    part = bound(found)
    if part:
        return f"{part}-bound: {found[part]:.0%} {WORDS[part]}"
    return "bound by none of these: " + ", ".join(f"{share:.0%} {WORDS[part]}" for part, share in found.items())
