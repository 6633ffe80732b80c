"""The ranks' output: whole lines, marked by rank, never mixed."""
import collections
import errno
import os
import select

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


class Sink:
    """gradus-run's own stdout or stderr. Once it cannot be written to, what comes is dropped; `broken`: its reader went away."""

    def __init__(self, descriptor):
        self.descriptor, self.open, self.broken = descriptor, True, False

    def write(self, data):
        while data and self.open:
            try:
                data = data[os.write(self.descriptor, data):]
            except BlockingIOError:  # another program has made the terminal so
                select.select([], [self.descriptor], [])
            except OSError as error:  # a terminal that was closed gives EIO
                self.open, self.broken = False, error.errno == errno.EPIPE

    def say(self, text):
        """A line of gradus-run's own."""
        self.write(f"gradus-run: {text}\n".encode())


class Stream:
    """A rank's stdout or stderr: a pipe, read without waiting, and the sink that its lines go to."""

    def __init__(self, pipe, sink, prefix, last):
        os.set_blocking(pipe.fileno(), False)
        self.pipe, self.sink, self.prefix, self.last = pipe, sink, prefix, last
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
            self.sink.write(b"".join(self.prefix + line for line in lines))

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
