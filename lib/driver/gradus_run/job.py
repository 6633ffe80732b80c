"""The ranks of this host, from their start to their end."""
import os
import selectors
import signal
import subprocess
import time

from . import cores, guard, output
from .guard import ENDING
from .refused import Refused


class Rank:
    """One process; `status` is a wait status once it has ended."""

    def __init__(self, number, process, sinks, prefix):
        self.number, self.process, self.status = number, process, None
        self.last = output.last_lines()
        self.streams = [output.Stream(pipe, sink, prefix, self.last)
                        for pipe, sink in zip((process.stdout, process.stderr), sinks)]

    def signal(self, number):
        """To it and what it has started, in its process group."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def failed(self):
        return self.status not in (None, 0)

    def outcome(self):
        code = os.waitstatus_to_exitcode(self.status)
        if code >= 0:
            return f"exit status {code}"
        return signal.Signals(-code).name + (" (was memory short?)" if -code == signal.SIGKILL else "")


class Job:
    def __init__(self, settings):
        self.settings = settings
        self.sinks = output.Sink(1), output.Sink(2)
        self.say = self.sinks[1].say
        self.ranks = []
        self.failure = None   # the rank that failed first
        self.stopped = None   # the signal that asked the job to end
        self.deadline = None  # when ranks that were asked to end are killed
        self.killed = []
        self.status = None    # this command's, where it does not come from the ranks

    def run(self, parent, numbers):
        """In the guard's child. Returns the exit status."""
        self.parent = parent
        self.listen(numbers)
        try:
            self.start()
            self.follow()
        except Refused as refused:
            self.say(refused)
            self.status = refused.status
        finally:
            guard.kill_descendants()
        return self.finish()

    def listen(self, numbers):
        """Signals become bytes in a pipe, which the loop reads."""
        self.wake, write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in numbers | {signal.SIGCHLD, signal.SIGTERM}:  # SIGTERM: see end_with() below
            signal.signal(number, lambda *_: None)
        guard.end_with(self.parent, signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.wake, selectors.EVENT_READ)

    def start(self):
        s = self.settings
        shares = cores.shares(s.nproc)
        if shares is None and s.bind:
            self.say(f"{s.nproc} ranks share {len(os.sched_getaffinity(0))} cores: they are slower than ranks with cores of their own")
        threads = min(map(len, shares)) if shares else 1
        for local, number in enumerate(s.ranks()):
            process = self.start_one(local, number, threads, shares[local] if shares and s.bind else None)
            rank = Rank(number, process, self.sinks, f"[rank {number}] ".encode() if s.prefix else b"")
            self.ranks.append(rank)
            for stream in rank.streams:
                self.selector.register(stream, selectors.EVENT_READ)

    def start_one(self, local, number, threads, cpus):
        s, job = self.settings, os.getpid()
        environment = {"OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1", **os.environ, "RANK": str(number),
                       "LOCAL_RANK": str(local), "WORLD_SIZE": str(s.world_size), "LOCAL_WORLD_SIZE": str(s.nproc),
                       "MASTER_ADDR": s.master_addr, "MASTER_PORT": str(s.master_port)}

        def in_child():
            guard.end_with(job, signal.SIGKILL)
            if cpus:
                os.sched_setaffinity(0, cpus)

        try:
            return subprocess.Popen(s.command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, process_group=0, preexec_fn=in_child)
        except OSError as error:
            raise Refused(f"{s.command[0]} cannot be started: {error.strerror}", 126) from None

    def alive(self):
        return [rank for rank in self.ranks if rank.status is None]

    def signal(self, number):
        for rank in self.alive():
            rank.signal(number)

    def follow(self):
        """Until all ranks have ended."""
        while self.alive():
            for key, _ in self.selector.select(self.time_left()):
                if key.fileobj == self.wake:
                    self.hear()
                elif not key.fileobj.pump() and not key.fileobj.open:
                    self.selector.unregister(key.fileobj)
            if any(sink.broken for sink in self.sinks) and self.status is None:
                self.status = 128 + signal.SIGPIPE  # as a program in a pipe ends whose reader went away
                self.ask_to_end(signal.SIGTERM)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.kill()

    def time_left(self):
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def hear(self):
        for number in os.read(self.wake, 4096):
            if number == signal.SIGCHLD:
                self.notice_ends()
            elif number in ENDING:
                self.stop(number)
            else:
                self.signal(signal.SIGSTOP if number == signal.SIGTSTP else number)

    def notice_ends(self):
        ended = dict(guard.reap())
        for rank in self.alive():
            if rank.process.pid in ended:
                self.ended(rank, ended[rank.process.pid])

    def ended(self, rank, status):
        rank.status = status
        rank.process.returncode = os.waitstatus_to_exitcode(status)  # reaped here, so that Popen does not wait for it
        for stream in rank.streams:
            if stream.open:
                stream.drain()
        if rank.failed() and not self.ending():
            self.failure = rank
            others = len(self.alive())
            self.say(f"rank {rank.number} failed: {rank.outcome()}" + (f"; ending the other {others}" if others else ""))
            self.ask_to_end(signal.SIGTERM)

    def stop(self, number):
        if os.getppid() != self.parent:  # gradus-run was killed: no time is given
            self.stopped = number
            self.signal(signal.SIGKILL)
        elif not self.ending():
            self.stopped = number
            self.ask_to_end(number)

    def ending(self):
        return bool(self.failure or self.stopped or self.status)

    def ask_to_end(self, number):
        self.signal(number)
        self.signal(signal.SIGCONT)  # a rank that is stopped hears nothing else
        self.deadline = time.monotonic() + self.settings.grace

    def kill(self):
        self.deadline, self.killed = None, self.alive()
        self.signal(signal.SIGKILL)

    def finish(self):
        """What is left of the output, then what happened. Returns the exit status."""
        for rank in self.ranks:
            for stream in rank.streams:
                stream.close()
        return self.report() if self.status is None else self.status

    def report(self):
        if self.killed:
            self.say(f"killed {names(self.killed)}, not ended {self.settings.grace:g} s after being asked to")
        if self.stopped is not None:
            self.say(f"stopped by {signal.Signals(self.stopped).name}; all ranks have ended")
            return 128 + self.stopped
        if self.failure is None:
            return 0
        last = b"".join(b"    " + line for line in self.failure.last).decode("utf-8", "replace").rstrip("\n")
        self.say(f"rank {self.failure.number} failed first: {self.failure.outcome()}" + (f"; its last lines:\n{last}" if last else ""))
        return guard.exit_status(self.failure.status)


def names(ranks):
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(str(rank.number) for rank in ranks)
