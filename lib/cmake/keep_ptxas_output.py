"""A compiler launcher: runs nvcc, keeps what `-Xptxas -v` says in OBJECT.ptxas, and passes on all else and the exit status.

CMake puts it before the compiler, and before ccache where that is used.
"""
import os
import re
import subprocess
import sys

# ptxas says "ptxas info    : …" and, after "Function properties", an indented line. Its advice, such as "(C7510)
# Potential Performance Loss", has that form too: kept, for the check that reads these files.
KEPT = re.compile(rb"ptxas info    ?:|\s+\d+ bytes stack frame")


def main(command):
    target = command[command.index("-o") + 1] if "-o" in command[:-1] else None
    process = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    lines = process.stderr.splitlines(keepends=True)
    kept = [line for line in lines if KEPT.match(line)]
    sys.stderr.buffer.write(b"".join(line for line in lines if not KEPT.match(line)))
    if target:
        write(target + ".ptxas", kept if process.returncode == 0 else None)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def write(path, lines):
    """Writes the file whole; None, of a compilation that failed, removes what an earlier one left."""
    if lines is None:
        if os.path.exists(path):
            os.remove(path)
        return
    with open(path + ".partial", "wb") as file:
        file.writelines(lines)
    os.replace(path + ".partial", path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
