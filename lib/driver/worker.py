"""A program that answers questions, a line of JSON each: benchmarks/peers/worker.cpp says which."""
import json
import os
import select
import subprocess
import tempfile
import time

from .launches import on_cores
from .shell import ROOT, Failure


class Worker:
    """Runs until it is closed. What it prints to its standard error is shown where it dies."""

    def __init__(self, name, command, threads):
        self.name, self.rest = name, b""
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, preexec_fn=on_cores(threads), env=environment(threads))

    def ask(self, question, limit=600):
        """Its answer; a Failure where it has none within `limit` seconds, or has no answer that is JSON. An answer {"error": …}
        is the caller's to read."""
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.died(question) from None
        line = self.line(question, time.monotonic() + limit, limit)
        try:
            answer = json.loads(line)
            if not isinstance(answer, dict):
                raise ValueError("it is no object")
            return answer
        except ValueError as error:
            raise Failure(f"{self.name}: its answer is not JSON: {error}: {line[:200].decode(errors='replace')}") from None

    def line(self, question, end, limit):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.close(kill=True)
                raise Failure(f"{self.name}: no answer within {limit} s to {json.dumps(question)}{self.last_words()}")
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            if not read:
                raise self.died(question)
            self.rest += read
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def died(self, question):
        status = self.process.wait()
        return Failure(f"{self.name}: ended with status {status} at {json.dumps(question)}{self.last_words()}")

    def last_words(self):
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()[-5:]
        return "".join(f"\n  {line}" for line in lines)

    def close(self, kill=False):
        """Ends it: by the end of its input, or at once."""
        if kill:
            self.process.kill()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close(kill=kind is not None)
        self.errors.close()


def environment(threads):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
