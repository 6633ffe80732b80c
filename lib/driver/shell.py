"""Running other programs, and what this machine has."""
import functools
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failure(Exception):
    """Ends ./gradus with a message and an exit status: 1 something failed, 2 a wrong argument."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def say(text=""):
    print(text, flush=True)


def run(command, **options):
    """Shows a command, runs it in the repository, and returns its exit status.

    Ctrl-C reaches the command too: it is given the time to end by itself (a lesson finishes its checkpoint).
    """
    say("$ " + shlex.join(map(str, command)))
    try:
        process = subprocess.Popen(list(map(str, command)), cwd=ROOT, **options)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # a second Ctrl-C ends this wait as well
        raise


def output_of(command, given=None):
    """A command's standard output; empty where it fails or does not exist. `given`: JSON for its standard input."""
    source = {"stdin": subprocess.DEVNULL} if given is None else {"input": json.dumps(given)}
    try:
        result = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False, **source,
                                env={**os.environ, "LC_ALL": "C"})
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


@functools.lru_cache(maxsize=None)
def python_with(module, package, purpose):
    """A Python that has `module`: this one, or the system's, for which Debian's packages are."""
    for python in (sys.executable, "/usr/bin/python3"):
        if output_of([python, "-c", f"import {module}; print('yes')"]) == "yes":
            return python
    raise Failure(f"{purpose} needs {module}, which this Python lacks: ./gradus setup --report, "
                  f"or sudo apt-get install -y --no-install-recommends {package}", 2)


def memory_gib():
    pages = os.sysconf("SC_PHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def jobs():
    """Compilers to run at once: one a core, and 1.5 GiB of memory each."""
    return max(1, min(len(os.sched_getaffinity(0)), int(memory_gib() / 1.5)))


def duration(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def seconds(value):
    """A measured time: three digits and a unit."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def columns():
    return shutil.get_terminal_size().columns


def revision():
    """The commit's short name, with -dirty where files differ from it; "unknown" outside of git."""
    return output_of(["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]) or "unknown"
