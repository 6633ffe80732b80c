"""A long check in pieces: each is run with a limit of time and kept when it ends; what was stopped goes on at the next call."""
import ctypes
import dataclasses
import json
import os
import shlex
import signal
import subprocess
import time
import typing

from . import shell
from .shell import ROOT, Failure, say

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class OutOfTime(Exception):
    """The call's time is over; what was running was ended, and is taken up again by the next call."""


@dataclasses.dataclass
class Piece:
    """`run` returns (status, note); it may raise OutOfTime. One that goes on where it was stopped is `resumable`; without one
    that is `needed`, the stage ends."""
    name: str
    run: typing.Callable
    resumable: bool = False
    needed: bool = False


class Clock:
    """How much of a call's time is left; without a limit, all of it."""

    def __init__(self, minutes=None):
        self.minutes, self.start = minutes, time.monotonic()

    def left(self):
        return None if self.minutes is None else self.start + 60 * self.minutes - time.monotonic()

    def over(self):
        return self.minutes is not None and self.left() <= 0


class State:
    """What is finished, in a file that is written after each piece."""

    def __init__(self, folder, source):
        self.path, self.source = folder / "state.json", source
        self.data = {"pieces": {}, "clocks": []}
        if self.path.exists():
            try:
                self.data = json.loads(self.path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise Failure(f"{self.path} is damaged ({error}); --anew begins again") from None

    def write(self):
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, self.path)

    def done(self, stage, name):
        """Whether this source's piece has ended."""
        return self.data["pieces"].get(f"{stage}/{name}", {}).get("source") == self.source

    def failed(self, stage, name):
        return self.data["pieces"][f"{stage}/{name}"]["status"] == FAILED

    def drop(self, stage, failed_only):
        """Forgets the stage's pieces, so that they run again."""
        self.data["pieces"] = {key: piece for key, piece in self.data["pieces"].items()
                               if not key.startswith(f"{stage}/") or (failed_only and piece["status"] != FAILED)}

    def finish(self, stage, name, status, note, seconds):
        self.data["pieces"][f"{stage}/{name}"] = {"status": status, "note": note, "seconds": round(seconds, 1),
                                                  "source": self.source}
        self.write()

    def begun(self, stage, name):
        """Notes that a piece was begun, and says whether an earlier call of this source had begun it: it goes on then."""
        earlier = self.data.get("begun") == [stage, name, self.source]
        self.data["begun"] = [stage, name, self.source]
        self.write()
        return earlier


def run_stage(stage, pieces, state, clock, keep=True):
    """Runs the pieces that have not ended. True when all have, whatever came of them.

    Called again after all had ended, it gives what failed another chance; without `keep`, all run in every call.
    """
    names = [piece.name for piece in pieces]
    if not keep or all(state.done(stage, name) for name in names):
        state.drop(stage, failed_only=keep)
    left = [piece for piece in pieces if not state.done(stage, piece.name)]
    for number, piece in enumerate(left):
        if clock.over() or not run_piece(stage, piece, state, clock, first=number == 0):
            say(f"[{stage}] out of time: {len(left) - number} of {len(names)} pieces are left")
            return False
        if piece.needed and state.failed(stage, piece.name):
            return True
    return True


def run_piece(stage, piece, state, clock, first):
    """False where its time was over before it ended; the first one of a call had all the time there is, and failed."""
    start = time.monotonic()
    say(f"[{stage}] {piece.name} …")
    try:
        status, note = piece.run()
    except OutOfTime:
        if piece.resumable or not first:
            return False
        status, note = FAILED, f"did not end in {clock.minutes:g} minutes"
    except Failure as failure:
        status, note = FAILED, str(failure)
    state.finish(stage, piece.name, status, note, time.monotonic() - start)
    say(f"[{stage}] {piece.name}: {status}, {shell.duration(time.monotonic() - start)}{': ' + note if note else ''}")
    return True


def begin_child():
    """In the child: Ctrl-C ends it, also where the driver was started to ignore it (nohup … &), and so does the driver's end."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def limited(command, log, clock, env=None, append=False):
    """Runs a command in the repository, its output to the file `log`. Returns its exit status; raises OutOfTime."""
    say("  $ " + shlex.join(map(str, command)))
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab" if append else "wb") as file:
        try:
            process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, start_new_session=True,
                                       preexec_fn=begin_child)
        except OSError as error:
            raise Failure(f"{command[0]}: {error.strerror}") from None
    try:
        return follow(process, log, clock)
    except BaseException:
        end(process)
        raise


def follow(process, log, clock):
    """Waits, and shows now and then how far the command is."""
    said = time.monotonic()
    while True:
        try:
            return process.wait(timeout=0.2 if clock.minutes is None else max(0.01, min(0.2, clock.left())))
        except subprocess.TimeoutExpired:
            if clock.over():
                raise OutOfTime from None
        if time.monotonic() - said > 20:
            said = time.monotonic()
            say(f"    {tail(log, 1)[:shell.columns() - 5]}")


def end(process):
    """Asks the command and its children to end, as Ctrl-C does, and makes them where they do not."""
    for number, seconds in ((signal.SIGINT, 10), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=seconds)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def tail(log, lines):
    """The last lines of a file that are not empty."""
    with open(log, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 20000))
        text = file.read().decode("utf-8", "replace")
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])
