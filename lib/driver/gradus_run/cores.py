"""Which cores each rank gets."""
import os
import pathlib
import re

CPUS = pathlib.Path("/sys/devices/system/cpu")


def place(cpu, root=CPUS):
    """A key that sorts the two threads of a core side by side, and the cores of a socket."""
    def first_number(name):
        try:
            return int(re.match(r"\d+", (root / f"cpu{cpu}" / "topology" / name).read_text()).group())
        except (OSError, AttributeError):
            return cpu
    return first_number("physical_package_id"), first_number("thread_siblings_list"), cpu


def shares(nproc, cpus=None, key=place):
    """Disjoint sets of this process's cores, one a rank; None where there are fewer cores than ranks."""
    cpus = sorted(os.sched_getaffinity(0) if cpus is None else cpus, key=key)
    if len(cpus) < nproc:
        return None
    return [set(cpus[len(cpus) * i // nproc:len(cpus) * (i + 1) // nproc]) for i in range(nproc)]
