"""gradus-run and ./gradus run, with real processes."""
import contextlib
import fcntl
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lib" / "driver"))
from gradus_run import cores, output  # noqa: E402

LAUNCHER = str(ROOT / "lib" / "driver" / "gradus-run")
CORES = len(os.sched_getaffinity(0))
# A rank of Python that has `rank`; it is ready when its file exists.
HEAD = ("import os, pathlib, signal, subprocess, sys, time\nrank = int(os.environ['RANK'])\n"
        "ready = lambda: pathlib.Path(os.environ['FOLDER'], f'ready{rank}').touch()\n")


def prepare(more):
    """In the launcher's process: signals as a terminal gives them, also where these tests run under nohup or a shell's &."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if more:
        more()


def take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.mark = uuid.uuid4().hex  # in the environment of all that descends from this test
        self.env = {**os.environ, "MARK": self.mark, "FOLDER": folder.name}
        for name in ("OMP_NUM_THREADS", "RANK", "MASTER_ADDR", "MASTER_PORT"):
            self.env.pop(name, None)
        self.addCleanup(self.end_all)

    def begin(self, *arguments, launcher=(LAUNCHER,), in_child=None, **options):
        command = [sys.executable, "-B", *launcher, *map(str, arguments)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": self.env, **options}
        process = subprocess.Popen(command, **options, preexec_fn=lambda: prepare(in_child))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for pipe in filter(None, (process.stdout, process.stderr)):
            self.addCleanup(pipe.close)
        return process

    def launch(self, *arguments, **options):
        """(exit status, stdout, stderr)"""
        process = self.begin(*arguments, **options)
        out, err = process.communicate(timeout=20)
        return process.returncode, out, err

    def python(self, text):
        return [sys.executable, "-c", HEAD + text]

    def wait_ready(self, ranks=2):
        self.until(lambda: all((self.folder / f"ready{rank}").exists() for rank in range(ranks)))

    def until(self, condition, seconds=10):
        limit = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), limit, "it did not come about")
            time.sleep(0.01)

    def left(self):
        """The processes that carry this test's mark."""
        found = []
        for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"MARK={self.mark}".encode() in environ.read_bytes():
                    found.append(int(environ.parent.name))
            except OSError:
                continue
        return found

    def end_all(self):
        for process in self.left():
            with contextlib.suppress(ProcessLookupError):  # it was ending
                os.kill(process, signal.SIGKILL)

    def assert_none_left(self, seconds=5):
        self.until(lambda: not self.left(), seconds)


class Environment(Case):
    SHOW = ["sh", "-c", "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT"]

    def test_one_host(self):
        status, out, err = self.launch("--nproc-per-node", 2, *self.SHOW)
        self.assertEqual((status, err), (0, ""))
        port = out.split()[-1]
        self.assertEqual(sorted(out.splitlines()), [f"[rank {r}] {r} {r} 2 2 127.0.0.1 {port}" for r in (0, 1)])
        with socket.socket() as free:
            free.bind(("127.0.0.1", int(port)))

    def test_the_second_of_two_hosts(self):
        flags = ["--nproc_per_node=2", "--nnodes=2", "--node_rank=1", "--master_addr=10.9.8.7"]  # as torchrun's are often written
        status, out, err = self.launch(*flags, "--master-port", 4711, *self.SHOW)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()),
                         ["[rank 2] 2 0 4 2 10.9.8.7 4711", "[rank 3] 3 1 4 2 10.9.8.7 4711"])
        self.assertIn("10.9.8.7 29500\n", self.launch(*flags, *self.SHOW)[1])

    def test_one_rank_unless_told_otherwise(self):
        self.assertRegex(self.launch(*self.SHOW)[1], r"^\[rank 0\] 0 0 1 1 127.0.0.1 \d+\n$")

    def test_the_programs_arguments_are_its_own(self):
        for flags in ([], ["--"]):
            _, out, _ = self.launch("--no-prefix", *flags, "sh", "-c", 'printf "<%s>" "$@"', "sh", "--help", "a b", "--", "-x")
            self.assertEqual(out, "<--help><a b><--><-x>\n")

    def test_through_the_driver(self):
        _, out, err = self.launch("run", "--nproc-per-node", 2, "--", "sh", "-c", 'echo $RANK "$@"', "sh", "--", "-q",
                                  launcher=[str(ROOT / "lib" / "driver")])
        self.assertEqual((sorted(out.splitlines()), err), (["[rank 0] 0 -- -q", "[rank 1] 1 -- -q"], ""))


class Cores(Case):
    def test_threads_and_cores_of_a_rank(self):
        show = self.python("print(os.environ['OMP_NUM_THREADS'], *sorted(os.sched_getaffinity(0)))")
        mine = [set(map(int, line.split()[1:])) for line in self.launch("--no-prefix", *show)[1].splitlines()]
        self.assertEqual(mine, [os.sched_getaffinity(0)])
        if CORES > 1:
            lines = self.launch("--no-prefix", "--nproc-per-node", 2, *show)[1].splitlines()
            sets = [set(map(int, line.split()[1:])) for line in lines]
            self.assertEqual(sets[0] | sets[1], os.sched_getaffinity(0))
            self.assertFalse(sets[0] & sets[1])
            self.assertEqual({line.split()[0] for line in lines}, {str(CORES // 2)})
            lines = self.launch("--no-prefix", "--no-bind", "--nproc-per-node", 2, *show)[1].splitlines()
            self.assertEqual({line for line in lines}, {" ".join(map(str, (CORES // 2, *sorted(os.sched_getaffinity(0)))))})

    def test_a_number_of_threads_that_is_set_is_kept(self):
        self.env["OMP_NUM_THREADS"] = "5"
        self.assertEqual(self.launch("sh", "-c", "echo $OMP_NUM_THREADS")[1], "[rank 0] 5\n")

    def test_more_ranks_than_cores_share_them(self):
        show = self.python("print(os.environ['OMP_NUM_THREADS'], len(os.sched_getaffinity(0)))")
        status, out, err = self.launch("--no-prefix", "--nproc-per-node", CORES + 1, *show)
        self.assertEqual((status, set(out.splitlines())), (0, {f"1 {CORES}"}))
        self.assertIn(f"{CORES + 1} ranks share {CORES} cores", err)

    def test_the_two_threads_of_a_core_stay_together(self):
        for cpu in range(8):  # as Linux numbers them: 0 … 3 the cores, 4 … 7 their second threads
            topology = self.folder / f"cpu{cpu}" / "topology"
            topology.mkdir(parents=True)
            (topology / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
            (topology / "physical_package_id").write_text("0\n")
        shares = cores.shares(2, range(8), key=lambda cpu: cores.place(cpu, self.folder))
        self.assertEqual(shares, [{0, 4, 1, 5}, {2, 6, 3, 7}])
        self.assertEqual([len(share) for share in cores.shares(3, range(8))], [2, 3, 3])
        self.assertIsNone(cores.shares(9, range(8)))


class Output(Case):
    def test_lines_are_whole_and_marked(self):
        text = ("for i in range(300):\n"
                "    line = f'{rank} {i} ' + 'x' * 200 + '\\n'\n"
                "    for part in (line[:50], line[50:]): os.write(1, part.encode())\n"
                "os.write(2, b'a complaint\\n')\nos.write(1, b'no end')")
        status, out, err = self.launch("--nproc-per-node", 3, *self.python(text))
        self.assertEqual(status, 0)
        lines = out.splitlines(keepends=True)
        for rank in range(3):
            mine = [line for line in lines if line.startswith(f"[rank {rank}] ")]
            self.assertEqual(mine, [f"[rank {rank}] {rank} {i} {'x' * 200}\n" for i in range(300)] + [f"[rank {rank}] no end\n"])
            self.assertIn(f"[rank {rank}] a complaint\n", err)
        self.assertEqual(len(lines), 903)

    def test_a_line_without_an_end_does_not_fill_the_memory(self):
        lines = output.Lines()
        self.assertEqual(lines.add(b"a\nb"), [b"a\n"])
        self.assertEqual(lines.add(b"c\n"), [b"bc\n"])
        self.assertEqual(sum(map(len, lines.add(b"x" * (output.LONGEST + 1)))), output.LONGEST + 2)
        self.assertEqual((lines.end(), lines.partial), ([], b""))

    def test_it_appears_while_the_rank_runs(self):
        process = self.begin(*self.python("print('here'); time.sleep(30)"))
        self.assertEqual(process.stdout.readline(), "[rank 0] here\n")
        process.terminate()

    def test_ranks_read_nothing(self):
        (self.folder / "typed").write_text("words\n")
        with open(self.folder / "typed", encoding="utf-8") as typed:
            self.assertEqual(self.launch("--nproc-per-node", 2, "cat", stdin=typed)[:2], (0, ""))

    def test_a_reader_that_goes_away_ends_the_job(self):
        text = ("asked = []\nsignal.signal(signal.SIGTERM, lambda *_: asked.append(1))\nready()\n"
                "while not asked: print('y' * 60)\npathlib.Path(os.environ['FOLDER'], f'saved{rank}').touch()")
        process = self.begin("--nproc-per-node", 2, *self.python(text))
        self.wait_ready()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=10), 128 + signal.SIGPIPE)
        self.assertTrue((self.folder / "saved0").exists() and (self.folder / "saved1").exists())
        self.assert_none_left()


class Failing(Case):
    def test_the_first_failure_ends_all_and_its_status_and_last_lines_are_returned(self):
        text = ("for i in range(20): print('step', i)\n"
                "if rank == 2: print('ValueError: bad batch', file=sys.stderr); sys.exit(7)\ntime.sleep(60)")
        start = time.monotonic()
        status, _, err = self.launch("--nproc-per-node", 4, *self.python(text))
        self.assertEqual(status, 7)
        self.assertLess(time.monotonic() - start, 10)
        self.assertIn("gradus-run: rank 2 failed: exit status 7; ending the other 3\n", err)
        report = err[err.index("gradus-run: rank 2 failed first: exit status 7; its last lines:"):]
        self.assertIn("    ValueError: bad batch\n", report)
        self.assertIn("    step 19\n", report)
        self.assertNotIn("    step 3\n", report)
        self.assert_none_left()

    def test_a_rank_that_is_killed(self):
        status, _, err = self.launch("--nproc-per-node", 2, *self.python("os.kill(os.getpid(), 9) if rank else time.sleep(60)"))
        self.assertEqual(status, 137)
        self.assertIn("rank 1 failed: SIGKILL", err)
        self.assert_none_left()

    def test_a_rank_that_ends_well_before_the_others_is_no_failure(self):
        status, out, err = self.launch("--nproc-per-node", 2, *self.python("time.sleep(0.3 * rank); print('done')"))
        self.assertEqual((status, out, err), (0, "[rank 0] done\n[rank 1] done\n", ""))

    def test_ranks_that_do_not_hear_are_killed_after_the_grace_time(self):
        text = ("if rank == 0: signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "ready()\n"
                "if rank == 2:\n"
                "    while len(os.listdir(os.environ['FOLDER'])) < 3: time.sleep(0.01)\n"
                "    sys.exit(5)\n"
                "if rank == 1: os.kill(os.getpid(), signal.SIGSTOP)\n"
                "time.sleep(60)")
        start = time.monotonic()
        status, _, err = self.launch("--nproc-per-node", 3, "--grace", 0.5, *self.python(text))
        self.assertEqual(status, 5)
        self.assertGreater(time.monotonic() - start, 0.5)
        self.assertIn("killed rank 0, not ended 0.5 s after being asked to", err)  # rank 1, which was stopped, heard it
        self.assert_none_left()


class Signals(Case):
    NOTED = ("def noted(number, _): print('got', signal.Signals(number).name); pathlib.Path(os.environ['FOLDER'], "
             "f'saved{rank}').touch(); sys.exit(0)\n"
             "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, noted)\n"
             "ready()\ntime.sleep(60)")

    def test_are_passed_on_and_ranks_may_end_by_themselves(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            for file in self.folder.iterdir():
                file.unlink()
            process = self.begin("--nproc-per-node", 2, *self.python(self.NOTED))
            self.wait_ready()
            process.send_signal(number)
            out, err = process.communicate(timeout=10)
            self.assertEqual(process.returncode, 128 + number)
            self.assertEqual(sorted(out.splitlines()), [f"[rank {r}] got {number.name}" for r in (0, 1)])
            self.assertEqual(err, f"gradus-run: stopped by {number.name}; all ranks have ended\n")
            self.assertTrue((self.folder / "saved1").exists())
        self.assert_none_left()

    def test_ctrl_c_in_a_terminal(self):
        ours, its = os.openpty()
        self.addCleanup(os.close, ours)
        text = ("count = []\nsignal.signal(signal.SIGINT, lambda *_: count.append(1))\nready()\n"
                "while not count: time.sleep(0.01)\ntime.sleep(0.3)\nprint('interrupts:', len(count))")
        process = self.begin("--nproc-per-node", 2, *self.python(text), stdin=its, stdout=its, stderr=its, text=False,
                             start_new_session=True, in_child=take_terminal)
        os.close(its)
        self.wait_ready()
        os.write(ours, b"\x03")
        shown = b""
        try:
            while select.select([ours], [], [], 10)[0] and (data := os.read(ours, 4096)):
                shown += data
        except OSError:  # the terminal's end
            pass
        self.assertEqual(process.wait(timeout=10), 130)
        lines = shown.decode().replace("^C", "").split("\r\n")
        self.assertEqual(sorted(lines), ["", "[rank 0] interrupts: 1", "[rank 1] interrupts: 1",
                                         "gradus-run: stopped by SIGINT; all ranks have ended"])
        self.assert_none_left()

    def test_a_terminal_that_is_closed(self):
        ours, its = os.openpty()
        process = self.begin("--nproc-per-node", 2, *self.python(self.NOTED), stdin=its, stdout=its, stderr=its,
                             start_new_session=True, in_child=take_terminal)
        os.close(its)
        self.wait_ready()
        os.close(ours)
        self.assertEqual(process.wait(timeout=10), 128 + signal.SIGHUP)
        self.assertTrue((self.folder / "saved0").exists() and (self.folder / "saved1").exists())
        self.assert_none_left()

    def test_the_second_ends_at_once(self):
        process = self.begin("--grace", 60, *self.python("signal.signal(signal.SIGINT, signal.SIG_IGN); ready(); time.sleep(60)"))
        self.wait_ready(1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.wait(timeout=10)
        self.assertEqual(process.returncode, 137)
        self.assert_none_left()

    def test_usr1_and_ctrl_z_reach_the_ranks_and_do_not_end_them(self):
        text = ("got = []\nsignal.signal(signal.SIGUSR1, lambda *_: got.append(1))\nprint(os.getpid())\nready()\n"
                "while not got: time.sleep(0.01)\nprint('usr1')\nwhile True: time.sleep(1)")
        process = self.begin(*self.python(text), start_new_session=True)
        self.wait_ready(1)
        process.send_signal(signal.SIGUSR1)
        rank = int(process.stdout.readline().split()[-1])
        self.assertEqual(process.stdout.readline(), "[rank 0] usr1\n")
        state = lambda pid: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
        process.send_signal(signal.SIGTSTP)
        self.until(lambda: state(rank) == state(process.pid) == "T")
        process.send_signal(signal.SIGCONT)
        self.until(lambda: state(rank) != "T" and state(process.pid) != "T")
        process.terminate()
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 143)

    def test_those_that_nohup_ignores_are_ignored(self):
        process = self.begin(*self.python("ready(); time.sleep(0.5); print('still here')"),
                             in_child=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_ready(1)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.communicate(timeout=10)[0], "[rank 0] still here\n")


class NothingLeft(Case):
    # Each rank has a child in its process group, and one that has left it and its session.
    FAMILY = ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
              "subprocess.Popen(['sleep', '60'])\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n")

    def family(self):
        process = self.begin("--nproc-per-node", 2, *self.python(self.FAMILY + "ready(); time.sleep(60)"), start_new_session=True)
        self.wait_ready()
        self.assertEqual(len(self.left()), 2 + 2 * 3)
        return process

    def test_when_the_launcher_is_killed(self):
        self.family().kill()
        self.assert_none_left()

    def test_when_the_launchers_process_group_is_killed(self):  # as timeout -s KILL does
        os.killpg(self.family().pid, signal.SIGKILL)
        self.assert_none_left()

    def job(self, process):
        [job] = [pid for pid in self.left()
                 if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(process.pid)]
        return job

    def test_when_both_its_processes_are_killed_the_ranks_end(self):
        process = self.begin("--nproc-per-node", 2, *self.python("ready(); time.sleep(60)"))
        self.wait_ready()
        process.send_signal(signal.SIGSTOP)  # so that it cannot clean up
        os.kill(self.job(process), signal.SIGKILL)
        process.kill()
        self.assert_none_left()

    def test_when_its_child_the_job_is_killed(self):
        process = self.family()
        os.kill(self.job(process), signal.SIGKILL)
        self.assertEqual(process.wait(timeout=10), 137)
        self.assert_none_left(0.1)

    def test_when_the_ranks_have_ended(self):
        status, _, _ = self.launch("--nproc-per-node", 2, *self.python(self.FAMILY))
        self.assertEqual(status, 0)
        self.assertEqual(self.left(), [])


class Refused(Case):
    def refused(self, status, words, *arguments, **options):
        got, out, err = self.launch(*arguments, **options)
        self.assertEqual((got, out), (status, ""), err)
        self.assertIn(words, err)
        self.assertNotIn("Traceback", err)

    def test_flags(self):
        for words, flags in (("expected at least 1, got 0", ["--nproc-per-node", 0]),
                             ("invalid whole number value: 'two'", ["--nproc-per-node", "two"]),
                             ("expected 1 to 65535, got 65536", ["--master-port", 65536]),
                             ("expected a time from 0, got nan", ["--grace", "nan"]),
                             ("unrecognized arguments: --nproc", ["--nproc"]),
                             ("--node-rank 2: with --nnodes 2 it is 0 to 1",
                              ["--nnodes", 2, "--node-rank", 2, "--master-addr", "x"]),
                             ("--node-rank 1: with --nnodes 1 it is 0 to 0", ["--node-rank", 1]),
                             ("--nnodes 2 needs --node-rank", ["--nnodes", 2, "--master-addr", "x"]),
                             ("--nnodes 2 needs --master-addr", ["--nnodes", 2, "--node-rank", 0])):
            self.refused(2, words, *flags, "true")
        self.refused(2, "which program?")

    def test_programs(self):
        for name, text in (("run.py", "print(1)\n"), ("data", "x\n"), ("mine", "#!/bin/sh\n"), ("garbage", "\0\0")):
            (self.folder / name).write_text(text)
        for name in ("mine", "garbage"):
            (self.folder / name).chmod(0o755)
        here = {"cwd": self.folder}
        self.refused(127, "there is no program ./nothing\n", "./nothing", **here)
        self.refused(127, "there is no program no-such-program on the PATH\n", "no-such-program", **here)
        self.refused(127, "but there is one in this folder: gradus-run … ./mine\n", "mine", **here)
        self.refused(126, "./run.py is not executable: gradus-run … python3 ./run.py\n", "./run.py", **here)
        self.refused(126, "./data is not executable: chmod +x ./data\n", "./data", **here)
        self.refused(126, "/ is a folder, not a program\n", "/", **here)
        self.refused(126, "cannot be started: Exec format error\n", "--nproc-per-node", 2, "./garbage", **here)
        self.assertEqual(self.launch("./mine", **here)[0], 0)

    def test_a_port_in_use(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            status, out, err = self.launch("--master-port", port, "sh", "-c", "echo $MASTER_PORT")
            taken = int(re.fullmatch(r"\[rank 0\] (\d+)\n", out).group(1))
            self.assertEqual(status, 0)
            self.assertNotEqual(taken, port)
            self.assertEqual(err, f"gradus-run: port {port} cannot be used (Address already in use); taking {taken}\n")
            hosts = ["--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", port, "--node-rank"]
            self.refused(2, f"port {port} of this host is used by another program; give all hosts another one", *hosts, 0, "true")
            self.assertEqual(self.launch(*hosts, 1, "true")[0], 0)


if __name__ == "__main__":
    unittest.main()
