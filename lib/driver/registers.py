"""Registers, shared memory and spills of each CUDA kernel, as ptxas said when it was compiled; needs no GPU.

    python3 lib/driver/registers.py build/release [--json FILE]

reads the x.cu.o.ptxas files (lib/cmake/keep_ptxas_output.py) of the objects that were built. Exit status 1: a kernel keeps
registers in memory ("spills"), which costs it its speed, and is not listed in MAY_SPILL; or an object has no such file.
"""
import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

if __package__ in (None, ""):  # run as a program
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    __package__ = "driver"  # noqa: A001
from .shell import Failure, say  # noqa: E402

# Kernels that may spill: a pattern for "name (arch)", with the name as `--list` prints it, and why. All others are hot.
MAY_SPILL = {
    r"^ladder::(Vectorized|WarpTiles)<.* \(sm_1\d\d\)": "tiles of 128 registers a thread for 8.0 and 9.0; newer GPUs lack up to 20",
}

ENTRY = re.compile(r"ptxas info    ?: Compiling entry function '(\S+)' for '(\S+)'")
FUNCTION = re.compile(r"ptxas info    ?: Function properties for (\S+)")
STACK = re.compile(r"\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"ptxas info    ?: Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
ADVICE = re.compile(r"ptxas info    ?: (\(C\d+\) .*)")


def parse(text):
    """[kernel] of a .ptxas file, and [advice]; a function that is not inlined is a kernel without registers."""
    kernels, advice, entry, function = [], [], None, None
    for line in text.splitlines():
        if found := ENTRY.match(line):
            entry = {"symbol": found[1], "arch": found[2], "registers": None, "shared_bytes": 0, "stack_bytes": 0, "spill_bytes": 0}
            kernels.append(entry)
        elif found := FUNCTION.match(line):
            function = entry
            if entry is None or found[1] != entry["symbol"]:
                function = {**(entry or {"arch": "?"}), "symbol": found[1], "registers": None, "shared_bytes": 0}
                kernels.append(function)
        elif (found := STACK.match(line)) and function is not None:
            function["stack_bytes"], function["spill_bytes"] = int(found[1]), int(found[2]) + int(found[3])
        elif (found := USED.match(line)) and entry is not None:
            entry["registers"], entry["shared_bytes"] = int(found[1]), int(found[2] or 0)
        elif found := ADVICE.match(line):
            advice.append(found[1])
    return kernels, advice


def demangled(symbols):
    """{symbol: name}; a symbol stands for itself where there is no c++filt."""
    symbols = sorted(set(symbols))
    if not symbols or not shutil.which("c++filt"):
        return {symbol: symbol for symbol in symbols}
    out = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    return dict(zip(symbols, out.splitlines()))


def short(name):
    """'void gradus::kernels::entry<gradus::kernels::X<float> >(…)' is X<float>."""
    found = re.fullmatch(r"void gradus::kernels::(?:sized_)?entry<(.*?) ?>\([^()]*\)", name)
    return re.sub(r"\bgradus::(kernels|cuda)::", "", found[1] if found else name)


def objects(build):
    """The CUDA objects of a build folder that exist."""
    path = build / "compile_commands.json"
    if not path.exists():
        raise Failure(f"{path} is not there: configure the build first", 2)
    for command in json.loads(path.read_text(encoding="utf-8")):
        words = shlex.split(command["command"])
        out = pathlib.Path(command["directory"], words[words.index("-o") + 1]) if "-o" in words else None
        if "nvcc" in pathlib.PurePath(words[0]).name and out and out.exists():
            yield out


def gather(build):
    """{"kernels": [...], "advice": [...], "unrecorded": [object]} of all objects that were built."""
    kernels, advice, unrecorded = {}, [], []
    for out in objects(build):
        record = out.with_name(out.name + ".ptxas")
        if not record.exists():
            unrecorded.append(str(out))
            continue
        found, said = parse(record.read_text(errors="replace"))
        kernels.update({(kernel["symbol"], kernel["arch"]): kernel for kernel in found})  # the same kernel in two objects
        advice += [f"{out.name}: {text}" for text in said]
    names = demangled([symbol for symbol, _ in kernels])
    for kernel in kernels.values():
        kernel["name"] = short(names[kernel["symbol"]])
    ordered = sorted(kernels.values(), key=lambda kernel: (kernel["name"], kernel["arch"]))
    return {"kernels": ordered, "advice": advice, "unrecorded": unrecorded}


def excuse(kernel):
    """Why this kernel may spill; None for a hot one."""
    return next((why for pattern, why in MAY_SPILL.items() if re.search(pattern, f"{kernel['name']} ({kernel['arch']})")), None)


def problems(record):
    spilled = [f"{kernel['name']} ({kernel['arch']}) spills {kernel['spill_bytes']} bytes, with {kernel['registers']} registers"
               for kernel in record["kernels"] if kernel["spill_bytes"] and not excuse(kernel)]
    return spilled + record["advice"] + [f"{name} was compiled without a record of its kernels" for name in record["unrecorded"]]


def summary(record):
    """A line on what was found."""
    kernels = [kernel for kernel in record["kernels"] if kernel["registers"] is not None]
    if not kernels:
        return "no CUDA kernel was compiled"
    most = max(kernels, key=lambda kernel: kernel["registers"])
    spilling = [kernel for kernel in record["kernels"] if kernel["spill_bytes"]]
    archs = ", ".join(sorted({kernel["arch"] for kernel in kernels}))
    return (f"{len(kernels)} kernels for {archs}; most registers: {most['registers']}, {most['name']}; "
            f"with spills: {len(spilling)}, hot ones among them: {sum(not excuse(kernel) for kernel in spilling)}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="also write the whole record there")
    parser.add_argument("--list", action="store_true", help="print each kernel")
    options = parser.parse_args(arguments)
    record = gather(options.build)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.list:
        for kernel in record["kernels"]:
            say(f"{kernel['arch']:<8}{kernel['registers'] or '-':>4} registers {kernel['shared_bytes']:>6} B shared "
                f"{kernel['spill_bytes']:>5} B spilled  {kernel['name']}")
    say(summary(record))
    found = problems(record)
    for problem in found:
        say(f"  {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"registers.py: {failure}")
