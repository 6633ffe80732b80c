"""Tests of ./gradus: its command line, what it installs, what it says. apt, sudo, CMake and git are made up."""
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lib"))
from driver import __main__ as command_line  # noqa: E402
from driver import bench, build, doctor, lessons, packages, shell, tests  # noqa: E402

FAKE_APT = """#!/bin/sh
echo "apt-get $*" >> "$STATE/log"
case "$*" in
  *update*) touch "$STATE/lists" ;;
  *--print-uris*) [ -e "$STATE/lists" ] || { echo "E: Unable to locate package" >&2; exit 100; }
    echo "Need to get 212 MB/240 MB of archives."
    echo "After this operation, 812 MB of additional disk space will be used." ;;
  *install*) [ -e "$STATE/lists" ] || exit 100
    for word in "$@"; do echo "$word" >> "$STATE/installed"; done ;;
esac
"""
FAKE_DPKG = """#!/bin/sh
grep -qx "$3" "$STATE/installed" && echo "$3 installed"
"""
FAKE_SUDO = """#!/bin/sh
[ -e "$STATE/sudo" ] || exit 1
[ "$1" = -n ] && shift
echo "sudo" >> "$STATE/log"
exec "$@"
"""


class Case(unittest.TestCase):
    """A machine with a made-up PATH, state in self.state."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name) / "state"
        self.bin = pathlib.Path(folder.name) / "bin"
        self.state.mkdir()
        self.bin.mkdir()
        for tool in ("sh", "env", "grep", "touch", "echo", "true"):
            (self.bin / tool).symlink_to(f"/bin/{tool}" if os.path.exists(f"/bin/{tool}") else f"/usr/bin/{tool}")
        (self.state / "installed").touch()
        (self.state / "log").touch()
        for patch in (mock.patch.dict(os.environ, {"PATH": str(self.bin), "STATE": str(self.state)}),
                      mock.patch.object(os, "geteuid", lambda: self.uid)):
            patch.start()
            self.addCleanup(patch.stop)
        for name in ("CI", "CUDACXX", "GRADUS_CUDA", "GRADUS_CUDA_ARCHS", "GRADUS_SYSROOT"):
            os.environ.pop(name, None)
        self.uid = 0

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def debian(self, lists=True):
        self.program("apt-get", FAKE_APT)
        self.program("dpkg-query", FAKE_DPKG)
        if lists:
            (self.state / "lists").touch()

    def log(self):
        return (self.state / "log").read_text()

    def said(self, function, *arguments):
        """(what it returned or the Failure, what it printed); children print to a file descriptor, not here."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                result = function(*arguments)
            except (shell.Failure, SystemExit) as failure:
                result = failure
        return result, out.getvalue()


class Packages(Case):
    def test_says_what_it_installs_then_does_nothing_the_second_time(self):
        self.debian()
        result, text = self.said(packages.ensure, ["libfmt-dev", "zlib1g-dev"], "./gradus learn")
        self.assertIs(result, True)
        before_install = text[:text.index("apt-get install")]
        for words in ("needs 2 more packages", "libfmt-dev zlib1g-dev", "212 MB to download", "812 MB on the disk", "2 min"):
            self.assertIn(words, before_install)
        self.assertIn("--no-install-recommends", self.log())
        (self.state / "log").write_text("")
        self.assertEqual(self.said(packages.ensure, ["libfmt-dev", "zlib1g-dev"], "./gradus learn"), (True, ""))
        self.assertEqual(self.log(), "")

    def test_installs_only_what_is_missing(self):
        self.debian()
        (self.state / "installed").write_text("libfmt-dev\n")
        self.said(packages.ensure, ["libfmt-dev", "zlib1g-dev"], "x")
        self.assertNotIn("libfmt-dev", self.log())
        self.assertIn("zlib1g-dev", self.log())

    def test_a_program_on_the_path_needs_no_package(self):
        self.debian()
        self.program("cmake", "#!/bin/sh\n")
        self.assertEqual(packages.missing(["cmake", "ninja-build"]), ["ninja-build"])

    def test_fetches_the_lists_where_apt_has_none(self):
        self.debian(lists=False)
        result, text = self.said(packages.ensure, ["zlib1g-dev"], "x")
        self.assertIs(result, True)
        self.assertIn("apt has no list", text)
        self.assertIn("212 MB to download", text)
        self.assertIn("zlib1g-dev", (self.state / "installed").read_text())

    def test_without_root_it_uses_sudo(self):
        self.debian()
        self.uid = 1000
        self.program("sudo", FAKE_SUDO)
        (self.state / "sudo").touch()
        with mock.patch("sys.stdin", io.StringIO()):
            self.assertIs(self.said(packages.ensure, ["zlib1g-dev"], "x")[0], True)
        self.assertIn("sudo\napt-get install", self.log())

    def test_without_root_and_sudo_it_prints_the_command(self):
        self.debian()
        self.uid = 1000
        for sudo in (None, FAKE_SUDO):  # no sudo at all; a sudo that would ask for a password
            if sudo:
                self.program("sudo", sudo)
            with mock.patch("sys.stdin", io.StringIO()):
                failure, text = self.said(packages.ensure, ["libfmt-dev", "zlib1g-dev"], "./gradus learn")
            self.assertIn("sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends "
                          "libfmt-dev zlib1g-dev'", str(failure))
            self.assertEqual(failure.status, 1)
            self.assertIn("needs 2 more packages", text)
        self.assertNotIn("apt-get install -qq", self.log())

    def test_apt_fails(self):
        self.program("dpkg-query", FAKE_DPKG)
        self.program("apt-get", "#!/bin/sh\nexit 100\n")
        failure, _ = self.said(packages.ensure, ["zlib1g-dev"], "x")
        self.assertIn("apt-get could not install zlib1g-dev", str(failure))

    def test_size_in_the_words_of_apt_3(self):
        self.program("apt-get", "#!/bin/sh\necho '  Download size: 75.3 MB / 81 MB'\necho '  Space needed: 1,120 MB / 9 GB available'\n")
        self.assertEqual(packages.size_of(["x"]), ("75.3 MB", "1,120 MB"))

    def test_minutes(self):
        self.assertEqual([packages.minutes_for(size) for size in ("12 kB", "300 MB", "2,400 MB")], [1, 3, 24])

    def test_without_apt(self):
        self.assertEqual(self.said(packages.ensure, ["zlib1g-dev"], "x"), (False, ""))
        options = command_line.parse(["setup"])
        status, text = self.said(doctor.setup, options)
        self.assertEqual(status, 0)
        for words in ("no apt-get", "oneDNN", "onednn-devel", "nlohmann_json", "CMake package dnnl"):
            self.assertIn(words, text)

    def test_without_apt_a_failing_configuration_names_the_libraries(self):
        self.program("cmake", "#!/bin/sh\nexit 1\n")
        with mock.patch.object(build, "BUILD", self.state):
            failure, text = self.said(build.configure, "release", ["LESSONS"])
        self.assertIn("could not configure", str(failure))
        self.assertIn("onednn-devel", text)


class CommandLine(Case):
    def fails(self, arguments, words):
        status, text = self.said(command_line.main, arguments)
        self.assertEqual(getattr(status, "code", status), 2, text)
        self.assertIn(words, text)

    @mock.patch.object(lessons, "all_lessons", lambda: {"03": "03_model_to_gpu"})
    def test_wrong_arguments(self):
        self.fails([], "required: command")
        self.fails(["lern"], "invalid choice: 'lern'")
        self.fails(["learn", "--quik"], "unrecognized arguments: --quik")
        self.fails(["learn", "--quic"], "unrecognized arguments: --quic")
        self.fails(["learn", "77"], "no lesson '77'; there are 03_model_to_gpu")
        self.fails(["learn", "03_model"], "no lesson '03_model'")
        self.fails(["learn", "--device", "gpu"], "--device: expected auto, cpu, sim, sim:N, cuda or cuda:N, got 'gpu'")
        self.fails(["test", "--sanitizers", "-L", "unit"], "-L and --sanitizers")
        self.fails(["doctor", "--", "x"], "doctor takes no arguments after --")

    def test_version(self):
        status, text = self.said(command_line.main, ["--version"])
        self.assertEqual(status.code, 0)
        self.assertRegex(text, r"^Gradus \d+\.\d+\.\d+ \(")

    def test_interrupted(self):
        with mock.patch.object(tests, "test", side_effect=KeyboardInterrupt):
            status, text = self.said(command_line.main, ["test"])
        self.assertEqual((status, "stopped" in text), (130, True))


class Learn(Case):
    def setUp(self):
        super().setUp()
        root = self.state / "tree"
        for name in ("03_first/main.cpp", "03_first/part.cpp", "04_second/main.cpp", "05_empty/README.md"):
            (root / "lessons" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "lessons" / name).touch()
        programs = root / "build" / "release" / "lessons"
        programs.mkdir(parents=True)
        self.programs = programs
        for name, status in (("03_first", 0), ("03_first_part", 77), ("04_second", 0)):
            self.lesson(name, status)
        self.program("cmake", '#!/bin/sh\necho "cmake $*" >> "$STATE/log"\n')
        for patch in (mock.patch.object(lessons, "ROOT", root), mock.patch.object(build, "BUILD", root / "build")):
            patch.start()
            self.addCleanup(patch.stop)

    def lesson(self, name, status):
        (self.programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$STATE/log"\nexit {status}\n')
        (self.programs / name).chmod(0o755)

    def test_builds_the_lessons_only_and_runs_them_in_order(self):
        status, text = self.said(command_line.main, ["learn", "--quick", "--", "--seed", "3"])
        self.assertEqual(status, 0, text)
        self.assertIn("-DGRADUS_BUILD_TESTS=OFF", self.log())
        self.assertIn("-DGRADUS_BUILD_LESSONS=ON", self.log())
        self.assertIn("--target lesson_03 lesson_04", self.log())
        ran = [line for line in self.log().splitlines() if line.startswith("0")]
        flags = "--device auto --quick --seed 3"
        self.assertEqual(ran, [f"03_first {flags}", f"03_first_part {flags}", f"04_second {flags}"])
        self.assertRegex(text, r"03_first_part +skipped")

    def test_a_failure_is_named_and_the_others_still_run(self):
        self.lesson("03_first", 1)
        status, text = self.said(command_line.main, ["learn"])
        self.assertEqual(status, 1)
        self.assertRegex(text, r"03_first +failed \(exit status 1\)")
        self.assertRegex(text, r"04_second +passed")
        self.assertIn("2 of 3 programs", text)

    def test_one_lesson(self):
        self.assertEqual(lessons.chosen(["4"]), ["04_second"])
        self.assertEqual(lessons.chosen(["04_second", "03", "3"]), ["03_first", "04_second"])

    def test_a_build_that_fails(self):
        self.program("cmake", '#!/bin/sh\n[ "$1" = --preset ]\n')
        status, text = self.said(command_line.main, ["learn"])
        self.assertEqual(status, 1)
        self.assertIn("The build in build/release failed", text)


class CtrlC(unittest.TestCase):
    def test_a_running_lesson_is_given_the_time_to_end(self):
        with tempfile.TemporaryDirectory() as folder:
            lesson = ("import pathlib, sys, time\n"
                      "try: pathlib.Path(sys.argv[1], 'started').touch(); time.sleep(30)\n"
                      "except KeyboardInterrupt: time.sleep(0.6); pathlib.Path(sys.argv[1], 'saved').touch()")
            code = ("import sys; sys.path.insert(0, sys.argv[1]); from driver import __main__ as m, shell, tests; "
                    "tests.test = lambda _: shell.run([sys.executable, '-c', *sys.argv[2:]]); sys.exit(m.main(['test']))")
            driver = subprocess.Popen([sys.executable, "-c", code, str(ROOT / "lib"), lesson, folder],
                                      start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for _ in range(500):
                if os.path.exists(f"{folder}/started"):
                    break
                time.sleep(0.02)
            time.sleep(0.1)
            os.killpg(driver.pid, signal.SIGINT)
            _, text = driver.communicate(timeout=20)
            self.assertEqual(driver.returncode, 130)
            self.assertIn("stopped", text)
            self.assertTrue(os.path.exists(f"{folder}/saved"))


class Bench(Case):
    def test_refuses_debug_and_sanitizer_builds(self):
        for known in ({"CMAKE_BUILD_TYPE": "Debug"}, {"CMAKE_BUILD_TYPE": "Release", "GRADUS_SANITIZE": "thread"}):
            with self.assertRaisesRegex(shell.Failure, "benchmarks need Release"):
                bench.refuse_slow_builds(known)
        bench.refuse_slow_builds({"CMAKE_BUILD_TYPE": "Release", "GRADUS_SANITIZE": ""})


class Build(Case):
    def test_two_builds_in_one_folder_take_turns(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(build, "BUILD", pathlib.Path(folder)):
            order, text = [], io.StringIO()

            def second():
                with build.alone("release"):
                    order.append("second")

            with contextlib.redirect_stdout(text):
                thread = threading.Thread(target=second)
                with build.alone("release"), build.alone("asan"):  # another folder is free
                    thread.start()
                    while "waiting for it" not in text.getvalue():
                        time.sleep(0.01)
                    order.append("first")
                thread.join()
            self.assertEqual(order, ["first", "second"])
            self.assertEqual(text.getvalue(), "Another ./gradus builds in build/release; waiting for it.\n")

    def test_cache_is_read_and_a_known_configuration_is_left_alone(self):
        folder = self.state / "release"
        folder.mkdir()
        (folder / "CMakeCache.txt").write_text("GRADUS_BUILD_LESSONS:BOOL=ON\nGRADUS_CUDA:STRING=OFF\n")
        (folder / "build.ninja").touch()
        self.program("cmake", '#!/bin/sh\necho "cmake $*" >> "$STATE/log"\n')
        with mock.patch.object(build, "BUILD", self.state), mock.patch.dict(os.environ):
            os.environ.pop("GRADUS_WERROR", None)
            self.assertEqual(self.said(build.configure, "release", ["LESSONS"]), (None, ""))
            self.said(build.configure, "release", ["TESTS"])
        self.assertIn("-DGRADUS_BUILD_TESTS=ON", self.log())
        self.assertNotIn("BUILD_LESSONS", self.log())

    def test_architectures_from_option_and_environment(self):
        with mock.patch.dict(os.environ), mock.patch.object(tests, "test", lambda _: build.options_for([], "AUTO")["GRADUS_CUDA_ARCHS"]):
            self.assertEqual(command_line.main(["test", "--archs", "release"]), "release")
            os.environ["GRADUS_CUDA_ARCHS"] = "75-real"
            self.assertEqual(command_line.main(["test"]), "75-real")

    def test_jobs_fit_the_memory(self):
        with mock.patch.object(os, "sched_getaffinity", lambda _: set(range(64))):
            with mock.patch.object(shell, "memory_gib", lambda: 6):
                self.assertEqual(shell.jobs(), 4)
            with mock.patch.object(shell, "memory_gib", lambda: 0.5):
                self.assertEqual(shell.jobs(), 1)


if __name__ == "__main__":
    unittest.main()
