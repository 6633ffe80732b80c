"""The ranks' output: whole lines, marked by rank, never mixed."""
import collections
import os

LAST_LINES = 10
LONGEST = 1 << 20  # bytes of a line that has not ended; then it is shown in pieces


class Lines:
    """Cuts one stream of bytes into lines, each with its end; what is left at the end of the stream gets one."""

    def __init__(self):
        self.partial = b""

    def add(self, data):
        *whole, self.partial = (self.partial + data).split(b"\n")
        if len(self.partial) > LONGEST:
            whole.append(self.partial)
            self.partial = b""
        return [line + b"\n" for line in whole]

    def end(self):
        rest, self.partial = self.partial, b""
        return [rest + b"\n"] if rest else []


class Stream:
    """A rank's stdout or stderr: a pipe, read without waiting, and the file descriptor that its lines go to."""

    def __init__(self, pipe, target, prefix, last):
        os.set_blocking(pipe.fileno(), False)
        self.pipe, self.target, self.prefix, self.last = pipe, target, prefix, last
        self.lines, self.open = Lines(), True

    def fileno(self):
        return self.pipe.fileno()

    def pump(self):
        """Passes on what has come. False when nothing more is to be had now."""
        try:
            data = os.read(self.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        self.open = bool(data)
        self.show(self.lines.add(data) if data else self.lines.end())
        return self.open

    def show(self, lines):
        self.last.extend(lines)
        if lines:
            write(self.target, b"".join(self.prefix + line for line in lines))

    def drain(self):
        while self.pump():
            pass

    def close(self):
        """All that came, also a last line without an end."""
        if self.open:
            self.drain()
            self.show(self.lines.end())
        self.open = False
        self.pipe.close()


def last_lines():
    return collections.deque(maxlen=LAST_LINES)


def write(target, data):
    """All of it; BrokenPipeError where nobody reads any more."""
    while data:
        data = data[os.write(target, data):]


def say(text):
    """A line of gradus-run's own."""
    write(2, f"gradus-run: {text}\n".encode())
