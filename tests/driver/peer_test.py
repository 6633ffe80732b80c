#!/usr/bin/env python3
"""./gradus bench --peer torch: turns, checks, what goes wrong. Both sides are made up; PyTorch is not needed."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

import made
from driver import __main__ as command_line
from driver import bench, build, launches, packages, peer, peer_cases, results, shell, worker

# Answers as benchmarks/peers/worker.cpp does. $STATE/<name>: what it does wrong, where it is there.
SIDE = f"""#!{sys.executable} -B
import json, os, pathlib, sys, time
state, name = pathlib.Path(os.environ["STATE"]), NAME
wrong = (state / name).read_text() if (state / name).exists() else ""
for line in sys.stdin:
    question = json.loads(line)
    with open(state / "log", "a") as log:
        print(name, question["do"], question.get("id", ""), question.get("calls", ""), len(os.sched_getaffinity(0)), file=log)
    way = question.get("variant", question.get("id", ""))
    answer = {{"about": {{"name": name + " 1.0"}}, "prepare": {{"check": [1.5, 2.5]}}, "forget": {{}}}}.get(question["do"])
    if question["do"] == "time":
        seconds = {{"gradus": 0.01, "torch": 0.03 if "fused" in way else 0.04}}[name] * question["calls"]
        answer = {{"seconds": seconds}}
    if question["do"] == "prepare" and wrong == "numbers":
        answer = {{"check": [1.5, 2.6]}}
    if question["do"] == "prepare" and wrong == "nan":
        answer = {{"check": [float("nan"), 2.5]}}
    if question["do"] == "prepare" and wrong == "compile" and "compile" in way:
        answer = {{"error": "no compiler"}}
    timed = question.get("id", "").split("/")[0] if question["do"] == "time" else None
    if wrong == f"die {{timed}}":
        print("out of luck", file=sys.stderr); sys.exit(7)
    if wrong == f"rubbish {{timed}}":
        print("hello"); sys.stdout.flush(); continue
    print(json.dumps(answer)); sys.stdout.flush()
"""
STEP = peer_cases.Case("cnn_step", {"batch": 256}, ("eager", "fused", "compile"), (2, 2))
ADD = peer_cases.Case("add", {"n": 16})


class Peer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.folder = self.root / "results" / results.machine() / "mine"
        for name, path in (("gradus", "build/release/benchmarks/peer_worker"), ("torch", "benchmarks/peers/torch_worker.py")):
            self.program(path, SIDE.replace("NAME", repr(name)))
        (self.root / "CMakeLists.txt").write_text("project(gradus VERSION 0.1.0)")
        patches = [mock.patch.object(module, "ROOT", self.root) for module in (bench, launches, peer, worker)]
        patches += [mock.patch.object(build, "BUILD", self.root / "build"), mock.patch.dict(os.environ, STATE=folder.name),
                    mock.patch.object(build, "configure"), mock.patch.object(build, "build"), mock.patch.object(packages, "ensure"),
                    mock.patch.object(build, "cache", lambda _: {"CMAKE_BUILD_TYPE": "Release"}),
                    mock.patch.object(peer, "torch_python", lambda: sys.executable), mock.patch.object(peer, "FULL", (9, 0.02)),
                    mock.patch.object(peer_cases, "CASES", [STEP, ADD]), mock.patch.object(shell, "revision", lambda: "0123abcd")]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def program(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def bench(self, *arguments, status=0):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            got = command_line.main(["bench", "--peer", "torch", "--save", "mine", "--threads", "1", *arguments])
        self.assertEqual(got, status, out.getvalue())
        return out.getvalue()

    def log(self):
        return [line.split(" ") for line in (self.root / "log").read_text().splitlines()]

    def cases(self, name="peer_torch.json"):
        return {case["name"]: case for case in results.load(self.folder / name)["cases"]}

    def test_both_sides_take_turns_and_every_sample_is_kept(self):
        said = self.bench("add")
        timed = [side for side, what, *_ in self.log() if what == "time"]  # the first ones find the number of calls
        self.assertEqual(timed[-18:], (["gradus", "torch"] + ["torch", "gradus"]) * 4 + ["gradus", "torch"])
        self.assertEqual({len(case["samples_s"]) for case in self.cases().values()}, {9})
        self.assertIn("add/n:16, 1 thread: 10 ms, PyTorch eager 40 ms: 4.00 times as fast", said)
        self.assertEqual({cores for *_, cores in self.log()}, {"1"})

    def test_the_rival_is_the_fastest_way(self):
        said = self.bench("cnn_step")
        self.assertIn("PyTorch fused 30 ms: 3.00 times as fast", said)
        series = [one for one in results.load(self.folder / "peer_torch.json")["speedups"] if one["kind"] == "beside PyTorch"]
        self.assertEqual([(point["over"], point["ratio"]) for one in series for point in one["points"]],
                         [("cnn_step/batch:256/threads:1/by:fused", 3)])

    def test_quick_leaves_out_the_compiler(self):
        self.bench("cnn_step", "--quick")
        self.assertEqual([case["parameters"]["by"] for case in self.cases().values()], ["gradus", "eager", "fused"])

    def test_other_numbers_are_a_failure_and_not_timed(self):
        for wrong in ("numbers", "nan"):
            (self.root / "torch").write_text(wrong)
            said = self.bench("add", status=1)
            self.assertIn("add/n:16/threads:1/by:eager: failed: wrong: gradus got [1.5, 2.5], this", said)
            case = self.cases()["add/n:16/threads:1/by:eager"]
            self.assertEqual((case["status"], case["check"], case["samples_s"]), ("failed", "failed", []))

    def test_a_way_that_does_not_run_here_is_skipped_with_its_reason(self):
        (self.root / "torch").write_text("compile")
        self.bench("cnn_step")
        case = self.cases()["cnn_step/batch:256/threads:1/by:compile"]
        self.assertEqual((case["status"], case["reason"]), ("skipped", "no compiler"))

    def test_what_a_processor_cannot_do_is_skipped_with_its_reason(self):
        with mock.patch.object(peer_cases, "CASES", [ADD._replace(needs="flying")]):
            self.bench()
        self.assertEqual({(case["status"], case["reason"]) for case in self.cases().values()},
                         {("skipped", "this processor has no flying arithmetic: other ways take minutes")})

    def test_a_side_that_dies_or_talks_rubbish_fails_its_case_and_the_others_are_measured(self):
        for wrong, words in (("die", "ended with status 7"), ("rubbish", "its answer is not JSON")):
            (self.root / "torch").write_text(f"{wrong} cnn_step")
            said = self.bench(status=1)
            self.assertIn(words, said)
            self.assertIn("bench --peer torch: cnn_step/batch:256/threads:1/by:gradus", said)
            found = {name: case["status"] for name, case in self.cases().items()}
            self.assertEqual({status for name, status in found.items() if name.startswith("cnn_step")}, {"failed"})
            self.assertEqual({status for name, status in found.items() if name.startswith("add")}, {"measured"})
        (self.root / "torch").write_text("die add")
        self.assertIn("out of luck", self.bench("add", status=1))

    def test_resume_refuses_what_another_pytorch_did(self):
        self.bench("cnn_step")
        unfinished = self.folder / "peer_torch.unfinished.json"
        (self.folder / "peer_torch.json").rename(unfinished)
        unfinished.write_text(unfinished.read_text().replace("torch 1.0", "torch 0.9"))
        said = self.bench("--resume", status=2)
        self.assertIn("torch 0.9", said)
        self.assertIn("torch 1.0", said)
        self.assertEqual(len(self.cases("peer_torch.unfinished.json")), 4)

    def test_progress_ends_at_the_whole(self):
        self.assertIn("[100 %] add/n:16, 1 thread", self.bench())

    def test_a_part_does_not_replace_the_reference(self):
        self.assertIn("name no case, or --save another name", self.bench("add", "--save", "reference", status=2))

    def test_resume_measures_what_is_missing(self):
        self.bench("cnn_step")
        (self.folder / "peer_torch.json").rename(self.folder / "peer_torch.unfinished.json")
        (self.root / "log").unlink()
        self.bench("--resume")
        self.assertEqual({word.split("/")[0] for _, what, word, *_ in self.log() if what == "prepare"}, {"add"})
        self.assertEqual(len(self.cases()), 6)

    def test_wrong_arguments(self):
        self.assertIn("no case 'nothing'; there are add, cnn_step", self.bench("nothing", status=2))

    def test_without_pytorch_it_says_how_to_get_it(self):
        with mock.patch.dict(os.environ, GRADUS_TORCH_PYTHON="/nowhere/python"), self.assertRaisesRegex(
                shell.Failure, "GRADUS_TORCH_PYTHON=/nowhere/python has no torch .* ./gradus setup --peer torch"):
            REAL_TORCH_PYTHON()


REAL_TORCH_PYTHON = peer.torch_python


class Worker(unittest.TestCase):
    def test_a_side_that_hangs_is_killed(self):
        with worker.Worker("side", [sys.executable, "-c", "import time; time.sleep(60)"], 1) as side:
            start = time.monotonic()
            with self.assertRaisesRegex(shell.Failure, "side: no answer within 0.2 s"):
                side.ask({"do": "about"}, limit=0.2)
            self.assertLess(time.monotonic() - start, 20)
            self.assertIsNotNone(side.process.poll())

    def test_an_answer_in_pieces_and_one_that_is_no_object(self):
        code = "import sys,time\nfor line in sys.stdin:\n  for c in '{\"a\": 1}\\n': print(c, end='', flush=True)\n  print('[1]', flush=True)"
        with worker.Worker("side", [sys.executable, "-c", code], 1) as side:
            self.assertEqual(side.ask({}), {"a": 1})
            with self.assertRaisesRegex(shell.Failure, "not JSON: it is no object"):
                side.ask({})


class Cases(unittest.TestCase):
    def test_both_sides_know_every_case(self):
        ours = (made.ROOT / "benchmarks/peers/cases.cpp").read_text()
        theirs = (made.ROOT / "benchmarks/peers/torch_worker.py").read_text()
        for name in {case.name for case in peer_cases.CASES}:
            self.assertIn(f'{{"{name}", ', ours)
            self.assertIn(f"def {name}(self, ", theirs)

    def test_titles_are_unique_and_read_back(self):
        titles = [case.title for case in peer_cases.CASES]
        self.assertEqual(len(titles), len(set(titles)))
        for case in peer_cases.CASES:
            read = results.google_benchmark.parse_name(case.title)
            self.assertEqual((read["family"], read["parameters"]), (case.name, case.parameters))


if __name__ == "__main__":
    unittest.main()
