"""./gradus gpu-check: stages, what goes on after a kill, skips, report and archive. In a tree of its own, where GPU, CMake,
ctest, nvidia-smi, compute-sanitizer and all programs are made up; the driver is the real one."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

from bench_test import PROGRAM
from made import ROOT
from driver import gpu, gpu_check, gpu_pieces, sanitizer

# Starts the driver with the GPUs that $STATE/gpu.json says.
START = """
import json, os, pathlib, sys
sys.path.insert(0, sys.argv[1] + "/lib")
from driver import __main__ as command, gpu
facts = pathlib.Path(os.environ["STATE"], "gpu.json")
if facts.exists():
    gpu.ask = lambda: json.loads(facts.read_text())
sys.exit(command.main(sys.argv[2:]))
"""
CMAKE = """#!/bin/sh
echo "cmake $*" >> "$STATE/log"
mkdir -p "$TREE/build/release/lib"
case "$*" in
  *--version*) echo "cmake version 3.25" ;;
  --preset*) for word in "$@"; do case "$word" in -D*) echo "${word#-D}" | sed 's/=/:STRING=/' ;; esac; done \\
      > "$TREE/build/release/CMakeCache.txt"
    echo "CMAKE_BUILD_TYPE:STRING=Release" >> "$TREE/build/release/CMakeCache.txt"
    echo '[]' > "$TREE/build/release/compile_commands.json"; touch "$TREE/build/release/build.ninja" ;;
  --build*) [ ! -e "$STATE/build_fails" ] || { echo "x.cu: error: made up"; exit 1; }
    [ ! -e "$STATE/build_slow" ] || exec sleep 60 ;;
esac
"""
# Three tests; $STATE/ctest_slow: hangs after the first, as a test that waits; with -F it goes on behind it.
CTEST = """#!/bin/sh
echo "ctest $*" >> "$STATE/log"
mark="$TREE/build/release/Testing/Temporary/CTestCheckpoint.txt"
mkdir -p "$(dirname "$mark")"
case "$*" in *-F*|*-R*) ;; *) echo "1/3 Test  #1: base.One ..............   Passed    0.01 sec"; echo 1 > "$mark" ;; esac
[ ! -e "$STATE/ctest_slow" ] || { rm "$STATE/ctest_slow"; exec sleep 60; }
if [ -e "$STATE/ctest_fails" ]; then
  case "$*" in *-R*) [ ! -e "$STATE/ctest_passes_alone" ] || { echo "1/1 Test  #2: ops.Add/cuda ..........   Passed    0.20 sec"; exit 0; } ;; esac
  echo "2/3 Test  #2: ops.Add/cuda ..........***Failed    0.20 sec"; echo "expected 1, got 2"; echo
else echo "2/3 Test  #2: ops.Add/cuda ..........   Passed    0.20 sec"; fi
case "$*" in *-R*) exit 8 ;; esac
echo "3/3 Test  #3: lesson03.sim ..........***Skipped   0.02 sec"
rm -f "$mark"
[ ! -e "$STATE/ctest_fails" ] || exit 8
"""
SMI = """#!/bin/sh
case "$*" in
  -L) echo "GPU 0: Made GPU" ;;
  *mig.mode*) exit 2 ;;
  *clocks_throttle_reasons.active*) echo 0x0000000000000004 ;;
  *driver_version*) echo 580.65 ;;
  *clocks.sm*) echo "1980 MHz" ;;
  *) exit 2 ;;
esac
"""
SANITIZER = """#!/bin/sh
echo "sanitizer $*" >> "$STATE/log"
if [ -e "$STATE/refuses" ]; then echo "========= COMPUTE-SANITIZER"; echo "========= Error: Device not supported"; exit 1; fi
[ ! -e "$STATE/hangs" ] || { rm "$STATE/hangs"; exec sleep 60; }
echo "========= COMPUTE-SANITIZER"; echo "[ RUN      ] Made/Ops.add/cuda"
[ ! -e "$STATE/crashes" ] || kill -9 $$
case "$*" in *racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"; exit 0 ;; esac
if [ -e "$STATE/memory_error" ]; then echo "========= ERROR SUMMARY: 3 errors"; exit 99; fi
echo "========= ERROR SUMMARY: 0 errors"
"""
TESTS = """#!/bin/sh
echo "Made/Ops."; echo "  add/cuda  # GetParam() = 4-byte object"; echo "  sub/cuda"; echo "Made/ErrorContract."; echo "  sticks/cuda"
"""
LESSON = """#!/bin/sh
echo "$(basename "$0") $*" >> "$STATE/log"
case "$(basename "$0")-$*" in
  03_second_overlap-*) echo "skipped: one GPU; overlap needs two"; exit 77 ;;
  *refused*) ;;
  *) [ ! -e "$STATE/lesson_fails" ] || { echo "error [E-X]: made up"; exit 1; } ;;
esac
case "$*" in *--json*) echo '{"lesson": "x", "seed": 7, "results": {}, "environment": {"host": {}}}' ;; esac
[ -e "$STATE/gpu" ] && exit 0
case "$(basename "$0")-$*" in
  01_first-*cuda*) echo "blocking E-CUDA-NO-DRIVER: none"; echo "  hint: get one"; exit 1 ;;
  *cuda*) echo "error [E-DEVICE-UNAVAILABLE]: cuda:0 is not available: no driver"; echo "  hint: run with --device cpu"; exit 1 ;;
esac
"""
FACTS = {"devices": [{"name": "Made GPU", "capability": [9, 0]}], "version": 13000, "why": None, "remedy": None}
CASES = ["Add/cuda/bytes:64/manual_time", "Step/threads:1/real_time"]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        base = pathlib.Path(folder.name)
        self.tree, self.state, self.bin = base / "tree", base / "state", base / "bin"
        for path in (self.tree, self.state, self.bin):
            path.mkdir()
        shutil.copytree(ROOT / "lib" / "driver", self.tree / "lib" / "driver", ignore=shutil.ignore_patterns("__pycache__"))
        (self.tree / "results").mkdir()
        shutil.copy(ROOT / "results" / "schema.json", self.tree / "results")
        self.write("CMakeLists.txt", "project(gradus VERSION 0.1.0)")
        for name in ("lessons/01_first/main.cpp", "lessons/03_second/main.cpp", "lessons/03_second/overlap.cpp", "lessons/05_later/main.cpp",
                     "benchmarks/01_first_bench.cpp", "kernels/x.cuh"):
            self.write(name, "")
        for name in ("01_first", "03_second", "03_second_overlap", "05_later"):
            self.write(f"build/release/lessons/{name}", LESSON)
        self.write("build/release/benchmarks/01_first_bench", PROGRAM.replace("NAMES", repr(CASES)))
        for name in sanitizer.SANITIZED:
            self.write(f"build/release/tests/{name}", TESTS)
        for name, text in (("cmake", CMAKE), ("ctest", CTEST), ("nvidia-smi", SMI), ("compute-sanitizer", SANITIZER),
                           ("nvcc", "#!/bin/sh\necho 'made nvcc, release 13.0'\n")):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        (self.state / "gpu.json").write_text(json.dumps(FACTS))
        (self.state / "gpu").touch()
        self.environment = {**os.environ, "STATE": str(self.state), "TREE": str(self.tree), "COLUMNS": "200",
                            "PATH": f"{self.bin}:{os.environ['PATH']}", "GRADUS_SYSROOT": str(self.tree / "unpacked"),
                            "CUDACXX": str(self.bin / "nvcc")}
        self.write("unpacked/usr/include/x.h", "")
        for name in ("GRADUS_CUDA", "GRADUS_CUDA_ARCHS"):
            self.environment.pop(name, None)
        self.out = self.tree / "build" / "gpu-check"

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def without_gpu(self):
        why = {"devices": [], "version": None, "why": gpu.NO_DRIVER, "remedy": gpu.REMEDY[gpu.NO_DRIVER]}
        (self.state / "gpu.json").write_text(json.dumps(why))
        (self.state / "gpu").unlink()

    def command(self, *arguments):
        return [sys.executable, "-B", "-c", START, str(self.tree), "gpu-check", *arguments]

    def check(self, *arguments, status=0):
        """What the command said."""
        process = subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(process.returncode, status, process.stdout + process.stderr)
        return process.stdout + process.stderr

    def log(self):
        """What was run since the last call of this."""
        path = self.state / "log"
        text = path.read_text() if path.exists() else ""
        path.write_text("")
        return text

    def pieces(self):
        return {key: piece["status"] for key, piece in json.loads((self.out / "report.json").read_text())["pieces"].items()}

    def report(self):
        return (self.out / "report.md").read_text()

    def flag(self, name, on=True):
        (self.state / name).touch() if on else (self.state / name).unlink()


class Whole(Case):
    def test_all_stages_in_order_one_report_one_archive(self):
        said = self.check()
        log = self.log()
        self.assertIn("gpu-check: passed", said)
        self.assertIn("-DGRADUS_CUDA_ARCHS=90-real", log)
        self.assertIn("-DGRADUS_CUDA=ON", log)
        order = [log.index(word) for word in ("--preset release", "--build", "ctest", "01_first --device cuda", "--tool memcheck",
                                              "--tool racecheck", "01_first_bench")]
        self.assertEqual(order, sorted(order))
        self.assertEqual(log.count("\ncmake --preset"), 0 if log.startswith("cmake --preset") else 1)  # bench configures nothing anew
        self.assertNotIn("05_later --device cuda\n", log)
        self.assertIn("--gtest_filter=Made/Ops.add/cuda:Made/Ops.sub/cuda\n", log)
        self.assertEqual(set(self.pieces().values()), {"passed", "skipped"})
        report = self.report()
        for words in ("# gpu-check: passed", "cuda:0: Made GPU, capability 9.0", "| 580.65 | 1980 MHz (?) |", "power cap", "2 passed, 1 of them on cuda, 0 groups on an emulated one; 1 skipped",
                      "03_second_overlap cuda | skipped | 0 s | skipped: one GPU; overlap needs two", "NCCL | skipped",
                      "1 GPU: collectives need 2", "0 errors", "PyTorch | skipped", "01_first | Add/cuda/bytes:64"):
            self.assertIn(words, report)
        with tarfile.open(self.out / "gradus-gpu-check.tar.gz") as archive:
            names = set(archive.getnames())
        for name in ("report.md", "report.json", "registers.json", "environment.json", "tests.json", "logs/ctest.log", "logs/build.log",
                     "logs/memcheck.ops_tests.1.log", "results/01_first.json", "results/01_first.lesson.json"):
            self.assertIn(f"gpu-check/{name}", names)

    def test_a_test_that_fails_is_in_report_and_exit_status(self):
        self.flag("ctest_fails")
        said = self.check(status=1)
        self.assertIn("FAILED: test/ctest", said)
        self.assertEqual(self.pieces()["sanitize/memcheck ops_tests 1 of 1"], "passed")  # the rest was run
        report = self.report()
        self.assertIn("# gpu-check: FAILED: test/ctest", report)
        self.assertIn("1 skipped; 1 failed: ops.Add/cuda", report)
        self.assertIn("### ops.Add/cuda: Failed\n\n    expected 1, got 2", report)
        self.flag("ctest_fails", False)
        self.log()
        self.assertIn("passed", self.check("--stage", "test"))  # a failure gets another chance
        self.assertNotIn("--device cuda", self.log())  # what passed is kept

    def test_a_test_that_passes_alone_is_named(self):
        self.check("--stage", "build")
        self.flag("ctest_fails")
        self.flag("ctest_passes_alone")
        self.check("--stage", "test")
        self.assertIn("0 failed; failed beside others and passed alone: ops.Add/cuda", self.report())
        self.assertIn("--parallel 1 -R ^(ops\\.Add/cuda)$", self.log())

    def test_a_build_that_fails_ends_it(self):
        self.flag("build_fails")
        said = self.check(status=1)
        self.assertIn("x.cu: error: made up", said)
        self.assertNotIn("ctest", self.log())
        self.assertEqual(self.pieces(), {"build/configure": "passed", "build/build": "failed"})
        self.assertIn("these sources are not built yet", self.check("--stage", "test", status=2))

    def test_lessons_and_sanitizer_errors_fail(self):
        self.check("--stage", "build")
        self.flag("lesson_fails")
        self.assertIn("01_first cuda", self.check("--stage", "test", status=1))
        self.assertIn("exit status 1: error [E-X]: made up", self.report())
        self.flag("memory_error")
        self.check("--stage", "sanitize", status=1)
        self.assertIn("2 tests, exit status 99, 3 errors", self.report())
        self.assertEqual(self.pieces()["sanitize/racecheck ops_tests 1 of 1"], "passed")
        self.flag("crashes")
        self.check("--stage", "sanitize", status=1)
        self.assertIn("exit status -9, no summary", self.report())


class Resume(Case):
    def interrupted(self, flag, *arguments, words="  $ ", number=signal.SIGKILL):
        """Starts a call, kills it where it hangs."""
        self.flag(flag)
        process = subprocess.Popen(self.command(*arguments), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        while words not in said:
            line = process.stdout.readline()
            self.assertTrue(line, said)
            said += line
        for _ in range(500):
            if not (self.state / flag).exists():
                break
            time.sleep(0.02)
        process.send_signal(number)
        said += process.communicate(timeout=30)[0]
        return said, process.returncode

    def test_after_a_kill_tests_go_on_and_what_was_finished_is_kept(self):
        self.check("--stage", "build")
        self.interrupted("ctest_slow", "--stage", "test", words="ctest --test-dir")
        self.log()
        self.assertIn("passed", self.check("--stage", "test"))
        self.assertIn(" -F\n", self.log())
        self.assertIn("2 passed, 1 of them on cuda, 0 groups on an emulated one; 1 skipped", self.report())  # the first call's test is counted
        self.log()
        self.interrupted("hangs", "--stage", "sanitize", words="--tool memcheck")
        self.check("--stage", "sanitize")
        self.assertEqual(self.log().count("--tool memcheck"), 1 + len(sanitizer.SANITIZED))  # the one that was killed, again
        self.assertEqual(set(self.pieces().values()), {"passed", "skipped"})

    def test_benchmarks_go_on_where_they_were_stopped(self):
        self.check("--stage", "build")
        self.log()
        (self.state / "break").write_text("4 interrupt")  # the fourth line of the log: CMake's, and the first launch, are before
        self.check("--stage", "bench", status=1)
        self.assertEqual(self.pieces()["bench/benchmarks on cuda"], "failed")
        lines = (self.state / "log").read_text().splitlines()
        first = next(number for number, line in enumerate(lines, 1) if "01_first_bench" in line)
        self.check("--stage", "bench")
        cases = json.loads((self.out / "results" / "01_first.json").read_text())["cases"]
        self.assertEqual({case["name"]: case["launches"] for case in cases}, {"Add/cuda/bytes:64": [3, 3, 3], "Step/threads:1": [3, 3, 3]})
        self.assertEqual(cases[0]["samples_s"][:3], [first * 1e-6] * 3)  # the first launch is the first call's

    def test_a_call_that_is_told_to_end_leaves_a_report(self):
        self.check("--stage", "build")
        said, status = self.interrupted("ctest_slow", "--stage", "test", words="ctest --test-dir", number=signal.SIGTERM)
        self.assertEqual(status, 130, said)
        self.assertIn("not finished: test, sanitize, bench", self.report())
        self.check("--stage", "test")
        self.assertIn(" -F\n", self.log())

    def test_one_at_a_time_and_sigterm_ends_one_that_ignores_ctrl_c(self):
        self.check("--stage", "build")
        self.flag("ctest_slow")
        process = subprocess.Popen(["nohup", *self.command("--stage", "test")], env=self.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        while (self.state / "ctest_slow").exists():
            time.sleep(0.02)
        self.assertIn("another gpu-check is at work", self.check("--stage", "test", status=1))
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 130)

    def test_out_of_time_says_how_to_go_on(self):
        self.flag("build_slow")
        said = self.check("--stage", "build", "--minutes", "0.03", status=gpu_check.NOT_FINISHED)
        self.assertIn("To go on:\n  ./gradus gpu-check --stage build --minutes 0.03", said)
        self.flag("build_slow", False)
        self.log()
        self.check("--stage", "build")
        self.assertNotIn("--preset release -D", self.log())  # was configured by the first call

    def test_a_piece_that_never_ends_is_a_failure_not_a_circle(self):
        self.check("--stage", "build")
        self.flag("hangs")
        said = self.check("--stage", "sanitize", "--minutes", "0.05", status=gpu_check.NOT_FINISHED)
        self.assertIn("did not end in 0.05 minutes", said)
        self.assertEqual(self.pieces()["sanitize/memcheck ops_tests 1 of 1"], "failed")

    def test_other_sources_are_checked_anew(self):
        self.check("--stage", "build")
        self.write("kernels/x.cuh", "// changed")
        self.assertIn("these sources are not built yet", self.check("--stage", "test", status=2))
        self.check("--stage", "build")
        self.check("--stage", "test")
        self.log()
        self.check("--stage", "build", "--anew")
        self.assertEqual({key.split("/")[0] for key in self.pieces()}, {"build"})


class Skips(Case):
    def test_no_compute_sanitizer(self):
        (self.bin / "compute-sanitizer").unlink()
        self.environment["PATH"] = f"{self.bin}:/usr/bin:/bin"
        self.check("--stage", "build")
        self.check("--stage", "sanitize")
        self.assertIn("memcheck | skipped | 0 s | compute-sanitizer was not found", self.report())

    def test_a_compute_sanitizer_that_refuses(self):
        self.check("--stage", "build")
        self.flag("refuses")
        self.check("--stage", "sanitize")
        self.assertIn("compute-sanitizer refuses: Error: Device not supported", self.report())
        self.assertEqual({status for key, status in self.pieces().items() if key.startswith("sanitize")}, {"skipped"})

    def test_without_a_gpu_it_says_why_and_what_to_do(self):
        self.without_gpu()
        said = self.check(status=gpu_check.NO_GPU)
        self.assertEqual(said, f"No GPU can be used here: {gpu.NO_DRIVER}.\n  hint: {gpu.REMEDY[gpu.NO_DRIVER]}\n"
                               "./gradus gpu-check --rehearse runs all of it that needs none.\n")
        self.assertEqual(self.log(), "")

    def test_rehearsal(self):
        self.without_gpu()
        self.out = self.tree / "build" / "rehearsal"
        self.assertIn("gpu-check --rehearse: passed", self.check("--rehearse"))
        log = self.log()
        self.assertIn("03_second --device sim --quick\n", log)
        self.assertIn("--benchmark_min_time=0.02", log)
        self.assertNotIn("sanitizer", log)
        self.assertEqual(self.pieces()["test/03_second cuda is refused"], "passed")
        report = self.report()
        self.assertIn("blocking E-CUDA-NO-DRIVER: none; hint: get one", report)
        self.assertIn("# Rehearsal of gpu-check (no GPU was used): passed", report)
        self.assertIn("error [E-DEVICE-UNAVAILABLE]: cuda:0 is not available: no driver; hint: run with --device cpu", report)
        self.assertIn(f"skipped | 0 s | no GPU: {gpu.NO_DRIVER}", report)

    def test_wrong_arguments(self):
        self.assertIn("--minutes: expected more than 0, got 0", self.check("--minutes", "0", status=2))
        self.assertIn("invalid choice: 'tests'", self.check("--stage", "tests", status=2))


class Facts(unittest.TestCase):
    def test_the_doctors_words(self):
        text = "".join((ROOT / "lib/gradus/runtime/diagnosis.cpp").read_text().split())
        source = text.replace('""', "")
        for words in ("the NVIDIA driver's library, was not found", gpu.BROKEN_DRIVER, gpu.NO_DEVICE, gpu.INIT,
                      *(remedy for remedy in gpu.REMEDY.values())):
            self.assertIn("".join(words.split()), source)

    def test_reasons(self):
        absent = "libcuda.so.1: cannot open shared object file: No such file or directory"
        self.assertEqual(gpu.reason({"load": absent})[0], gpu.NO_DRIVER)
        self.assertEqual(gpu.reason({"load": "libcuda.so.1: file too short"})[0], gpu.BROKEN_DRIVER + "libcuda.so.1: file too short")
        self.assertEqual(gpu.reason({"status": 999, "devices": []})[0], "cuInit fails with error 999")
        self.assertEqual(gpu.reason({"status": 0, "devices": FACTS["devices"]}), (None, None))
        with unittest.mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="7"):
            self.assertIn("CUDA_VISIBLE_DEVICES='7' is set", gpu.reason({"status": 100, "devices": []})[0])
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            self.assertEqual(gpu.reason({"status": 100, "devices": []})[0], gpu.NO_DEVICE)

    def test_architectures_and_throttling(self):
        devices = [{"capability": [9, 0]}, {"capability": [8, 6]}, {"capability": [9, 0]}, {"capability": [12, 0]}]
        self.assertEqual(gpu.architectures(devices), "86-real;90-real;120-real")
        self.assertEqual(gpu.throttle_reasons("0x0000000000000044"), ["power cap", "thermal (hardware)"])
        self.assertEqual(gpu.throttle_reasons("0x0000000000000000"), [])
        self.assertEqual(gpu.throttle_reasons("[N/A]"), [])

    def test_names_of_tests_that_run_on_cuda(self):
        for name in ("Streams.order/cuda", "ops.arithmetic/OpTest.forward/add_cuda", "x/DeviceAgreement.sums/cuda_7"):
            self.assertTrue(gpu.TEST.search(name), name)
        for name in ("Diagnosis.built_without_cuda", "cuda_on_host.ops.1", "CudaArchitectures.ptx", "OpTest.forward/add_sim"):
            self.assertFalse(gpu.TEST.search(name), name)

    def test_ctest_lines(self):
        text = ("1/3 Test #1: a.abort ..........................Subprocess aborted***Exception:   0.00 sec\n"
                "2/3 Test #2: a.late ...........................***Timeout   1.00 sec\n\n"
                "3/3 Test #12: a.missing ........................***Not Run   0.00 sec\n"
                "3/3 Test #12: a.missing ........................   Passed   0.00 sec\n")
        self.assertEqual({name: test["result"] for name, test in gpu_pieces.tests_in(text).items()},
                         {"a.abort": "Exception", "a.late": "Timeout", "a.missing": "Passed"})
        self.assertEqual(gpu_pieces.tests_in("No tests were found!!!\n"), {})

    def test_a_gpu_on_which_no_test_ran_is_no_pass(self):
        tests = {"runtime.Diagnosis.no_cuda": {"result": "Passed"}, "cuda_on_host.ops.1": {"result": "Passed"}}
        self.assertEqual(gpu_pieces.ctest_result(tests, True), ("failed", "2 passed, 0 of them on cuda, 1 groups on an emulated one; 0 skipped; 0 failed; no test ran on cuda"))
        self.assertEqual(gpu_pieces.ctest_result(tests, False)[0], "passed")
        tests["ops.arithmetic/OpTest.forward/add_cuda"] = {"result": "Passed"}
        self.assertEqual(gpu_pieces.ctest_result(tests, True)[0], "passed")


if __name__ == "__main__":
    unittest.main()
