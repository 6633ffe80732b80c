"""./gradus bench: what is measured, kept, taken up again after an interruption. The benchmark programs are made up."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import made
from driver import __main__ as command_line
from driver import bench, build, launches, lessons, packages, results, shell

# Behaves as Google Benchmark 1.7 does. $STATE/break: "N what" breaks its Nth measurement: exit, wrong, interrupt.
PROGRAM = f"""#!{sys.executable} -B
import json, os, pathlib, re, signal, sys
sys.path[:0] = [{str(made.ROOT / 'tests' / 'driver')!r}]
import made
state = pathlib.Path(os.environ["STATE"])
names = NAMES
if "--environment" in sys.argv:
    print(json.dumps({{"gradus": {{"compiler": "made 1.0"}}, "host": {{"governor": "powersave"}}, "devices": []}})); sys.exit()
if "--benchmark_list_tests" in sys.argv:
    print("\\n".join(names)); sys.exit()
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
with open(state / "log", "a") as log:
    print(pathlib.Path(sys.argv[0]).name, *sys.argv[1:], len(os.sched_getaffinity(0)), file=log)
count = len((state / "log").read_text().splitlines())
number, what = (state / "break").read_text().split() if (state / "break").exists() else (0, "")
broken = what if count == int(number) else ""
names = [name for name in names if re.search(options.get("benchmark_filter", ""), name)]
rows = [made.row(name, count, "us", checked=1) for name in names for _ in range(int(options["benchmark_repetitions"]))]
if broken == "exit":
    print("no memory", file=sys.stderr); sys.exit(3)
if broken == "wrong":
    rows = [{{"name": names[0], "run_name": names[0], "error_occurred": True, "error_message": "wrong result"}}, *rows[3:]]
for row in rows:
    print(row["name"], "1 us", flush=True)
text = made.text(made.google(*rows, executable=sys.argv[0]))
if broken == "interrupt":
    text = text[:text.rindex('"name"')]
pathlib.Path(options["benchmark_out"]).write_text(text)
if broken == "interrupt":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.kill(os.getppid(), signal.SIGINT)
"""
LESSON = """#!/bin/sh
echo "lesson $*" >> "$STATE/ran_lessons"
echo '{"lesson": "09_made", "seed": 7, "results": {"C01_x": [0.5, null]}, "environment": {"host": {}}}'
"""
CASES = ["Step/threads:1/real_time", "Step/threads:2/min_time:0.050/real_time", "Copy/sim_SIMULATED/bytes:8", "Copy+/cuda/bytes:8"]


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.folder = self.root / "results" / results.machine() / "mine"
        self.revision = "0123abcd"
        self.program("benchmarks/09_made_bench", PROGRAM.replace("NAMES", repr(CASES)))
        self.program("lessons/09_made", LESSON)
        for name in ("benchmarks/09_made_bench.cpp", "lessons/09_made/main.cpp", "benchmarks/ops/quick_bench.cpp"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).touch()
        (self.root / "CMakeLists.txt").write_text("project(gradus VERSION 0.1.0)")
        patches = [mock.patch.object(module, "ROOT", self.root) for module in (bench, launches, lessons)]
        patches += [mock.patch.object(build, "BUILD", self.root / "build"), mock.patch.dict(os.environ, STATE=folder.name),
                    mock.patch.object(build, "configure"), mock.patch.object(build, "build"),
                    mock.patch.object(build, "cache", lambda _: {"CMAKE_BUILD_TYPE": "Release", "GRADUS_NATIVE": "ON"}),
                    mock.patch.object(packages, "ensure"), mock.patch.object(shell, "revision", lambda: self.revision)]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def program(self, name, text):
        path = self.root / "build" / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def bench(self, *arguments, status=0, name="mine"):
        """What ./gradus bench said."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            got = command_line.main(["bench", *arguments, *(["--save", name] if name else [])])
        self.assertEqual(got, status, out.getvalue())
        return out.getvalue()

    def breaks(self, what):
        (self.root / "break").write_text(what)

    def ran(self):
        """The command lines of the benchmark so far."""
        path = self.root / "log"
        return path.read_text().splitlines() if path.exists() else []

    def report(self, name="09_made.json"):
        return results.load(self.folder / name)

    def launches(self, name="09_made.json"):
        return {case["name"]: case["launches"] for case in self.report(name)["cases"]}

    def test_three_launches_of_three_repetitions_each(self):
        said = self.bench("09")
        report = self.report()
        self.assertEqual(len(self.ran()), 3)
        self.assertIn("--benchmark_repetitions=3 --benchmark_enable_random_interleaving=true", self.ran()[0])
        self.assertNotIn("filter", self.ran()[0])
        self.assertEqual(set(map(str, self.launches().values())), {"[3, 3, 3]"})
        self.assertEqual(report["cases"][0]["samples_s"], [1e-6] * 3 + [2e-6] * 3 + [3e-6] * 3)
        self.assertEqual((report["suite"], report["build"]), ({"version": "0.1.0", "revision": "0123abcd", "dirty": False},
                         {"type": "Release", "sanitizer": None, "compiler": "made 1.0", "flags": "-march=native"}))
        self.assertEqual((report["host"]["governor"], report["host"]["load"], report["run"]["finished"]), ("powersave", [0.5] * 3, True))
        self.assertEqual({case["check"] for case in report["cases"]}, {"passed"})
        self.assertIn("[100 %] 09_made, launch 3 of 3: 4 of 4 cases, about 0 s left", said)
        self.assertRegex(said, r"Step/threads:1 +2 us  \[1 us, 3 us\]")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["09_made.json", "09_made.lesson.json"])

    def test_quick_and_a_name_by_date_and_revision(self):
        self.bench("09", "--quick", name=None)
        self.assertEqual(len(self.ran()), 1)
        run, = (self.root / "results" / results.machine()).iterdir()
        self.assertRegex(run.name, r"^\d{4}-\d\d-\d\d-0123abcd$")
        self.assertTrue(results.load(run / "09_made.json")["run"]["quick"])

    def test_a_lesson_s_numbers_are_kept(self):
        self.bench("09")
        kept = self.report("09_made.lesson.json")
        self.assertEqual((kept["kind"], kept["status"], kept["results"], kept["run"]),
                         ("lesson", "measured", {"C01_x": [0.5, None]}, {"arguments": ["--json"], "seed": 7}))

    def test_a_lesson_that_is_skipped_is_a_result_with_its_reason(self):
        self.program("lessons/09_made", "#!/bin/sh\necho 'needs 2 GPUs'\nexit 77\n")
        self.assertIn("skipped: needs 2 GPUs", self.bench("09"))
        kept = self.report("09_made.lesson.json")
        self.assertEqual((kept["status"], kept["reason"], kept["results"]), ("skipped", "needs 2 GPUs", {}))

    def test_a_lesson_that_fails_or_prints_no_results_leaves_no_file(self):
        for text in ("exit 1", "echo words", "echo '[1]'", "true"):
            self.program("lessons/09_made", f"#!/bin/sh\n{text}\n")
            self.assertIn("09_made", self.bench("09", status=1))
            self.assertFalse((self.folder / "09_made.lesson.json").exists())

    def test_device_and_threads(self):
        for arguments, cases in ((["--device", "sim"], ["Copy/sim_SIMULATED/bytes:8"]), (["--device", "cuda:0"], ["Copy+/cuda/bytes:8"]),
                                 (["--device", "cpu", "--threads", "1"], ["Step/threads:1"])):
            self.bench("09", "--quick", *arguments)
            self.assertEqual(list(self.launches()), cases, arguments)
        self.assertTrue(self.ran()[2].endswith(" 1"))  # one core
        self.assertIn("--device cpu", (self.root / "ran_lessons").read_text().splitlines()[-1])
        self.assertIn("has no case that fits --device and --threads", self.bench("09", "--quick", "--device", "cuda:3"))

    def test_wrong_arguments(self):
        for arguments, words in ((["--device", "gpu"], "expected auto, cpu, sim"), (["--threads", "0"], "--threads: expected 1 to"),
                                 (["--threads", "9999"], "got 9999"), (["ops_none"], "no benchmark 'ops_none'; there are ops_quick"),
                                 (["77"], "no lesson '77'")):
            self.assertIn(words, self.bench(*arguments, status=2))
        for name in ("../x", "", "a b", "/tmp", ".x"):
            if name:
                self.assertIn("is no name for a folder", self.bench("09", status=2, name=name))

    def test_a_program_that_ends_with_an_error_keeps_its_launches_and_is_named(self):
        self.breaks("2 exit")
        said = self.bench("09", status=1)
        for words in ("exit status 3", "no memory", "bench: 09_made failed"):
            self.assertIn(words, said)
        self.assertEqual(set(map(str, self.launches("09_made.unfinished.json").values())), {"[3]"})
        self.assertFalse((self.folder / "09_made.json").exists())

    def test_a_case_with_a_wrong_result_fails_and_is_not_timed_again(self):
        self.breaks("1 wrong")
        said = self.bench("09", status=1)
        self.assertIn("failed: wrong result", said)
        self.assertEqual(self.launches(), {"Copy/sim_SIMULATED/bytes:8": [3, 3, 3], "Copy+/cuda/bytes:8": [3, 3, 3],
                                           "Step/threads:1": [], "Step/threads:2": [3, 3, 3]})
        self.assertNotIn("Step/threads:1", self.ran()[1])

    def test_interrupted_it_keeps_what_was_finished_and_says_how_to_go_on(self):
        self.bench("09")
        before = (self.folder / "09_made.json").read_text()
        self.breaks("5 interrupt")
        said = self.bench("09", status=130)
        self.assertIn(f"What was finished is kept in results/{results.machine()}/mine", said)
        self.assertIn("./gradus bench 09 --save mine --resume\n", said)
        # One launch is whole; of the second the last case lacks a repetition.
        self.assertEqual(sorted(map(str, self.launches("09_made.unfinished.json").values())), ["[3, 3]"] * 3 + ["[3]"])
        self.assertEqual((self.folder / "09_made.json").read_text(), before)  # an older result is not lost

        self.bench("09", "--resume")
        self.assertEqual(set(map(str, self.launches().values())), {"[3, 3, 3]"})
        self.assertEqual(len(self.ran()), 7)
        self.assertIn(r"--benchmark_filter=^(Copy\+/cuda/bytes:8)$", self.ran()[5])
        self.assertFalse((self.folder / "09_made.unfinished.json").exists())

        said = self.bench("09", "--resume")  # nothing is left to do
        self.assertEqual(said.count("is there already"), 2)
        self.assertEqual(len(self.ran()), 7)

    def test_interrupted_at_once_nothing_is_kept(self):
        self.breaks("1 interrupt")
        text = (self.root / "build/release/benchmarks/09_made_bench").read_text()
        self.program("benchmarks/09_made_bench", text.replace("""text[:text.rindex('"name"')]""", "text[:40]"))
        self.bench("09", status=130)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_resume_does_not_mix_revisions_or_arguments(self):
        self.breaks("2 interrupt")
        self.bench("09", status=130)
        self.assertIn("another revision or other arguments", self.bench("09", "--quick", "--resume", status=2))
        self.revision = "89abcdef"
        self.assertIn("another revision or other arguments", self.bench("09", "--resume", status=2))
        (self.root / "break").unlink()
        self.bench("09")
        self.revision = "76543210"  # finished, but of another revision: measured anew
        count = len(self.ran())
        self.bench("09", "--resume")
        self.assertEqual((len(self.ran()) - count, self.report()["suite"]["revision"]), (3, "76543210"))

    def test_programs_take_turns(self):
        self.program("benchmarks/quick_bench", PROGRAM.replace("NAMES", repr(["Add"])))
        self.bench("09", "ops")
        self.assertEqual([line.split()[0] for line in self.ran()], ["09_made_bench", "quick_bench"] * 3)

    def test_a_program_that_fails_does_not_stop_the_others(self):
        self.program("benchmarks/quick_bench", PROGRAM.replace("NAMES", repr(["Add"])))
        self.breaks("1 exit")
        self.assertIn("bench: 09_made failed", self.bench("09", "ops", status=1))
        self.assertEqual([line.split()[0] for line in self.ran()], ["09_made_bench"] + ["quick_bench"] * 3)

    def test_a_busy_machine_is_named(self):
        for load, named in ((0.0, False), (99.0, True)):
            with mock.patch.object(os, "getloadavg", lambda load=load: (load, load, load)):
                self.assertEqual("Note: the load is 99.0" in self.bench("09", "--quick"), named)

    def test_ops(self):
        self.program("benchmarks/quick_bench", PROGRAM.replace("NAMES", repr(["Add"])))
        for name in ("ops", "ops_quick"):
            self.bench(name, "--quick")
            self.assertEqual([path.name for path in self.folder.iterdir()], ["ops_quick.json"])
        self.assertEqual(bench.split_names([]), (["09_made"], ["quick"]))
        self.assertEqual(bench.split_names(["9"]), (["09_made"], []))

    def test_later_cases_state_their_share_of_the_ceilings(self):
        ceiling = made.of_rows({"Copy/cpu/threads:1": [{"real_time": 1, "time_unit": "s", "bytes_per_second": 10e9}] * 3},
                               executable="01_env_check_bench")
        self.folder.mkdir(parents=True)
        results.write(ceiling, self.folder / "01_env_check.json")
        text = PROGRAM.replace("NAMES", repr(CASES)).replace("checked=1", "bytes_per_second=5e9")
        self.program("benchmarks/09_made_bench", text)
        self.bench("09", "--quick")
        shares = {case["name"]: case["share_of_ceiling"] for case in self.report()["cases"]}
        self.assertEqual(shares["Step/threads:1"], {"memory": {"of": "Copy/cpu/threads:1", "share": 0.5}})
        self.assertIsNone(shares["Step/threads:2"])

    def test_refuses_debug_and_sanitizer_builds(self):
        for known in ({"CMAKE_BUILD_TYPE": "Debug"}, {"CMAKE_BUILD_TYPE": "Release", "GRADUS_SANITIZE": "thread"}):
            with mock.patch.object(build, "cache", lambda _, known=known: known):
                self.assertIn("benchmarks need Release", self.bench("09", status=1))
        self.assertEqual(self.ran(), [])


class Progress(unittest.TestCase):
    def test_the_share_of_time_that_is_done(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.object(launches.time, "monotonic", lambda: self.now):
            self.now = 100
            progress = launches.Progress(16)
            self.now = 120
            progress.show("x", 1, 8, 3)  # an eighth of the cases is done in half of the launch's time
            self.now = 125
            progress.show("x", 2, 8, 3)  # too soon after the last line
            self.now = 140
            progress.show("x", 8, 8, 3)
        self.assertEqual(out.getvalue(), "[ 25 %] x: 1 of 8 cases, about 1 min 0 s left\n[ 50 %] x: 8 of 8 cases, about 40 s left\n")

    def test_on_a_terminal_one_line_is_written_over(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True
        out = Terminal()
        with contextlib.redirect_stdout(out), mock.patch.object(shell, "columns", lambda: 30):
            progress = launches.Progress(2)
            progress.show("x", 1, 2, 1)
            progress.show("x", 2, 2, 1)
        self.assertEqual([len(line) for line in out.getvalue().split("\r")], [0, 29, 30])
        self.assertEqual(out.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
