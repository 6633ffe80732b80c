"""./gradus: the command line."""
import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import bench, compare, doctor, gpu_check, lessons, plot, report, sysroot, tests  # noqa: E402
from driver.gradus_run import command_line as launcher  # noqa: E402
from driver.shell import Failure  # noqa: E402

EPILOG = """a first day:
  ./gradus learn --quick      sets up, builds and runs the lessons, in minutes
  ./gradus test               sets up, builds and runs the tests"""


def parser():
    top = argparse.ArgumentParser(prog="./gradus", epilog=EPILOG, allow_abbrev=False,
                                  formatter_class=argparse.RawDescriptionHelpFormatter,
                                  description="Sets up, builds, teaches, tests and measures Gradus.")
    top.add_argument("--version", action="version", version=doctor.version())
    commands = top.add_subparsers(dest="command", metavar="command", required=True)

    def command(name, function, text):
        added = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(run=function)
        return added

    learn = command("learn", lessons.learn, "set up, build and run the lessons; arguments after -- go to them")
    learn.add_argument("lessons", nargs="*", metavar="NN", help="lessons such as 3 or 03 (default: all)")
    learn.add_argument("--device", default="auto", help="auto, cpu, sim, cuda or cuda:N (default: auto)")
    learn.add_argument("--quick", action="store_true", help="less data and fewer epochs")
    learn.add_argument("--cuda", action="store_true", help="build for CUDA even where no driver is loaded")
    architectures(learn)

    test = command("test", tests.test, "set up, build and run the tests")
    test.add_argument("-L", "--label", help="only tests with this label: unit, install, lesson03, ops, …")
    test.add_argument("--sanitizers", action="store_true", help="under AddressSanitizer and ThreadSanitizer")
    architectures(test)

    measure = command("bench", bench.bench, "run the benchmarks; what they measure goes to results/")
    measure.add_argument("lessons", nargs="*", metavar="NN", help="lessons such as 3 or 03, or ops (default: all)")
    measure.add_argument("--device", default="auto", help="only cases of cpu, sim, cuda or cuda:N (default: all)")
    measure.add_argument("--threads", type=int, metavar="N", help="only cases with N threads, on N cores (default: all)")
    measure.add_argument("--quick", action="store_true", help="one brief pass: shows that it runs, no times to quote")
    measure.add_argument("--save", metavar="NAME", help="the folder under results/<machine>/ (default: <date>-<revision>; "
                         "reference is the committed one)")
    measure.add_argument("--peer", choices=["torch"], help="the same work here and in PyTorch, taking turns; NN are then cases "
                         "such as cnn_step")
    measure.add_argument("--resume", action="store_true", help="go on where the same command was interrupted")

    judge = command("compare", compare.compare, "say which cases of results B are faster or slower than in A; exit status "
                    "0: none slower, 1: some slower, 2: they cannot be compared")
    judge.add_argument("a", metavar="A", help="a results file, or a folder of them: results/<machine>/<run>")
    judge.add_argument("b", metavar="B")

    start = command("run", launcher.run, "start the ranks of a distributed program, as torchrun does: run --nproc-per-node 2 PROGRAM")
    launcher.describe(start)

    draw = command("plot", plot.plot, "draw the figures of measured results, into plots/")
    draw.add_argument("--results", metavar="DIR", help="results/<machine>/<run> (default: this machine's newest)")

    tell = command("report", report.report, "write one HTML page of measured results: environment, figures, tables, verdicts")
    tell.add_argument("--results", metavar="DIR", help="results/<machine>/<run> (default: this machine's newest)")
    tell.add_argument("--out", metavar="FILE", help="where the page goes (default: report.html among the results)")

    check = command("gpu-check", gpu_check.gpu_check, "on a machine with a GPU: build, test, sanitize and measure, and write one "
                    f"report; exit status 0: all passed, 1: something failed, {gpu_check.NOT_FINISHED}: not finished, the same "
                    f"command goes on, {gpu_check.NO_GPU}: there is no GPU")
    check.add_argument("--out", metavar="DIR", help="where report and archive go (default: build/gpu-check)")
    check.add_argument("--stage", choices=gpu_check.STAGES, help=f"only this stage, and at most {gpu_check.LIMIT} minutes of it")
    check.add_argument("--minutes", type=float, metavar="N", help="at most N minutes a stage; the same command goes on")
    check.add_argument("--anew", action="store_true", help="forget what an earlier call has finished")
    check.add_argument("--rehearse", action="store_true", help="all that needs no GPU")

    setup = command("setup", doctor.setup, "install what learn and test need")
    setup.add_argument("--dev", action="store_true", help="also clang, clang-format, clang-tidy, ccache")
    setup.add_argument("--report", action="store_true", help="also what plots and reports need")
    setup.add_argument("--peer", choices=["torch"], help="also PyTorch, in build/, to compare with")
    setup.add_argument("--cuda", action="store_true", help="also a CUDA toolkit, in build/, without root")

    collect = command("sysroot", sysroot.sysroot, "collect the libraries as packages, for a machine that can download nothing; "
                      "there, GRADUS_SYSROOT=FOLDER ./gradus … uses them")
    collect.add_argument("folder", metavar="FOLDER")

    command("doctor", doctor.doctor, "say what was found, what is missing and what to do")
    command("clean", doctor.clean, "remove build/")
    return top


def architectures(command):
    command.add_argument("--archs", metavar="LIST", default=os.environ.get("GRADUS_CUDA_ARCHS"),
                         help="GPUs to compile for, such as 80-real;90, or release: all since 7.5 (default: $GRADUS_CUDA_ARCHS, "
                         "or what the build has; at first 80-real;90)")


def parse(arguments):
    """Options of a command line; what follows -- becomes options.rest, but for `run`, where it belongs to the program."""
    split = arguments.index("--") if "--" in arguments and arguments[0] != "run" else len(arguments)
    top = parser()
    options = top.parse_args(arguments[:split])
    options.rest = arguments[split + 1:]
    if options.rest and options.command != "learn":
        top.error(f"{options.command} takes no arguments after --")
    if options.command == "test":
        tests.check_label(options.label, options.sanitizers)
    return options


def main(arguments=None):
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        if getattr(options, "archs", None):
            os.environ["GRADUS_CUDA_ARCHS"] = options.archs
        if options.command not in ("sysroot", "clean"):
            sysroot.use()
        return options.run(options)
    except Failure as failure:
        print(f"./gradus: {failure}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        print("\n./gradus: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
