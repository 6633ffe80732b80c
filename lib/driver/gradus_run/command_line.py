"""The flags of gradus-run, and what is refused before anything starts."""
import argparse
import dataclasses
import os
import shutil
import sys

from . import guard, job, rendezvous
from .refused import Refused

DESCRIPTION = """\
Starts N copies of a program on this host, the ranks, and tells each by its environment who it is: RANK, LOCAL_RANK,
WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Their lines are marked by rank; they read nothing from the terminal.
Where one fails, the others are ended, and its exit status (128 + n for signal n) is that of this command.
Nothing that a rank has started outlives this command."""

EPILOG = """\
two ranks on this machine:
  %(prog)s --nproc-per-node 2 build/release/lessons/05_data_parallel_vs_ddp --quick
one rank on each of two machines; each runs its line:
  %(prog)s --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 PROGRAM
  %(prog)s --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 PROGRAM"""

DEFAULT_PORT = 29500  # torchrun's


@dataclasses.dataclass
class Settings:
    """What one gradus-run is to do."""
    command: list
    nproc: int
    nnodes: int = 1
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = DEFAULT_PORT
    prefix: bool = True
    bind: bool = True
    grace: float = 5.0

    @property
    def world_size(self):
        return self.nnodes * self.nproc

    def ranks(self):
        return range(self.node_rank * self.nproc, (self.node_rank + 1) * self.nproc)


def number(low, high=None):
    def parse(text):
        value = int(text)
        if value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"expected {f'{low} to {high}' if high is not None else f'at least {low}'}, got {text}")
        return value
    parse.__name__ = "whole number"  # argparse: invalid whole number value: 'two'
    return parse


def seconds(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a time from 0, got {text}")
    return value


def describe(parser):
    """Adds the flags to a parser; ./gradus run has the same."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.usage = "%(prog)s [FLAG …] PROGRAM [ARGUMENT …]"

    def flag(name, **settings):
        parser.add_argument(name, **settings)
        if "-" in name[2:]:  # torchrun takes both
            hidden = {**settings, "dest": name[2:].replace("-", "_"), "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
            parser.add_argument("--" + name[2:].replace("-", "_"), **hidden)

    flag("--nproc-per-node", type=number(1), default=1, metavar="N", help="ranks on this host (default: 1)")
    flag("--nnodes", type=number(1), default=1, metavar="N", help="hosts, each with as many ranks (default: 1)")
    flag("--node-rank", type=number(0), metavar="R", help="which of the hosts this is, from 0; its ranks begin at R times N")
    flag("--master-addr", metavar="HOST", help="the address of host 0 (default with one host: 127.0.0.1)")
    flag("--master-port", type=number(1, 65535), metavar="PORT", help="a free port of host 0 (default with one host: one that is "
         f"free; with several: {DEFAULT_PORT})")
    flag("--no-prefix", action="store_true", help="do not mark lines by rank")
    flag("--no-bind", action="store_true", help="do not give each rank cores of its own")
    flag("--grace", type=seconds, default=5.0, metavar="SECONDS", help="how long ranks that are asked to end may take, before "
         "they are killed (default: 5)")
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="PROGRAM",
                        help="a program, by its path or on the PATH, and its arguments")


def resolve(command):
    """The program's arguments with its whole path; Refused, with the shell's exit status, where it cannot be started."""
    if not command:
        raise Refused("which program? Give it after the flags: gradus-run --nproc-per-node 2 PROGRAM", 2)
    name = command[0]
    found = shutil.which(name)
    if found:
        return [os.path.abspath(found), *command[1:]]
    if os.path.isdir(name):
        raise Refused(f"{name} is a folder, not a program", 126)
    if os.path.exists(name):
        remedy = f"gradus-run … python3 {name}" if name.endswith(".py") else f"gradus-run … ./{name}"
        if os.access(name, os.X_OK):
            raise Refused(f"there is no program {name} on the PATH, but there is one in this folder: {remedy}", 127)
        raise Refused(f"{name} is not executable: " + (remedy if name.endswith(".py") else f"chmod +x {name}"), 126)
    raise Refused(f"there is no program {name}" + ("" if "/" in name else " on the PATH"), 127)


def settings_of(options):
    """Settings from parsed flags; Refused where they do not fit together."""
    rest = options.command_line
    given = {"command": resolve(rest[1:] if rest[:1] == ["--"] else rest), "nproc": options.nproc_per_node,
             "nnodes": options.nnodes, "node_rank": options.node_rank or 0, "grace": options.grace,
             "prefix": not options.no_prefix, "bind": not options.no_bind}
    if given["node_rank"] >= options.nnodes:
        raise Refused(f"--node-rank {given['node_rank']}: with --nnodes {options.nnodes} it is 0 to {options.nnodes - 1}", 2)
    if options.nnodes > 1 and options.node_rank is None:
        raise Refused(f"--nnodes {options.nnodes} needs --node-rank: which of the hosts is this, 0 to {options.nnodes - 1}?", 2)
    if options.nnodes > 1 and not options.master_addr:
        raise Refused(f"--nnodes {options.nnodes} needs --master-addr: the address of host 0, the same on all", 2)
    address = options.master_addr or "127.0.0.1"
    if options.nnodes == 1:
        port = rendezvous.port_for_one_host(options.master_port)
    else:
        port = options.master_port or DEFAULT_PORT
        if given["node_rank"] == 0:
            rendezvous.require_free(port)
    return Settings(**given, master_addr=address, master_port=port)


def run(options):
    """What ./gradus run and gradus-run do. Returns the exit status."""
    try:
        settings = settings_of(options)
        return guard.guarded(job.Job(settings).run)
    except Refused as refused:
        print(f"gradus-run: {refused}", file=sys.stderr)
        return refused.status


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="gradus-run", allow_abbrev=False)
    describe(parser)
    return run(parser.parse_args(arguments))
