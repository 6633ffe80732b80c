#!/usr/bin/env python3
"""Lesson 02's results as its claims need them, its timeline file, and what it says on devices that it cannot use.

    device_transfer_test.py PROGRAMS     the folder with the lessons' programs
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path("build/release/lessons")


def run(part, *arguments, **environment):
    program = PROGRAMS / f"02_device_transfer{part}"
    return subprocess.run([program, *arguments], env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=120)


def results(part, *arguments, **environment):
    """{name: value} of the JSON line; all values that a name was given are the same."""
    done = run(part, "--json", *arguments, **environment)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    named = json.loads(done.stdout.splitlines()[-1])["results"]
    for name, values in named.items():
        if len(set(values)) != 1:
            raise AssertionError(f"{name}: {values}")
    return {name: values[0] for name, values in named.items()}


class Claims(unittest.TestCase):
    def test_c04_c05_c06(self):
        self.assertEqual(results("", "--device", "sim"), {
            "C04_is_a_mismatch": 1,
            "C05_returned_the_old_tensor": 0, "C05_old_tensor_stayed_on_cpu": 1, "C05_same_device_same_tensor": 1,
            "C06_copies_moved": 1, "C06_copies_created": 0})

    def test_c03_and_e7(self):
        found = results("_measure", "--device", "sim", "--quick")
        self.assertLess(5 * found["C03_unsynchronized_ms"], found["C03_synchronized_ms"])
        self.assertLess(5 * found["C03_unsynchronized_ms"], found["C03_events_ms"])
        self.assertLess(found["E7_later_call_ms"], found["E7_first_call_ms"])

    def test_c03_is_of_asynchronous_launches(self):
        found = results("_measure", "--device", "sim", "--quick", GRADUS_LAUNCH_BLOCKING="1")
        self.assertLess(found["C03_synchronized_ms"], 20 * found["C03_unsynchronized_ms"])

    def test_c08_and_dev_01(self):
        found = results("_overlap", "--device", "sim", GRADUS_SIM_RACES="1")
        for copy, running in (("pageable", 0), ("pageable_non_blocking", 0), ("pinned", 0), ("pinned_non_blocking", 1)):
            self.assertEqual(found[f"C08_{copy}_still_running"], running, copy)
        self.assertLess(found["C08_pinned_non_blocking_ms"], found["C08_pageable_non_blocking_ms"])
        self.assertLess(found["DEV01_read_too_early"], found["DEV01_read_after_synchronize"])
        self.assertEqual(found["DEV01_read_after_synchronize"], 999999 * 1000000 / 2)


class Timeline(unittest.TestCase):
    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.csv"
            self.assertEqual(run("_overlap", "--device", "sim:1", "--timeline", path).returncode, 0)
            with open(path, newline="", encoding="utf-8") as file:
                lines = list(csv.DictReader(file))
        self.assertEqual({line["device"] for line in lines}, {"sim:1"})
        for schedule in ("one stream", "two streams"):
            spans = {(line["row"], int(line["batch"])): (float(line["start_ms"]), float(line["end_ms"]))
                     for line in lines if line["schedule"] == schedule}
            self.assertEqual(len(spans), 12)
            for batch in range(6):
                copy, compute = spans["copy", batch], spans["compute", batch]
                self.assertLessEqual(copy[1], compute[0], "a product begins when its batch is there")
                self.assertGreaterEqual(copy[1] - copy[0], 20, "2 MiB over a link of 100 MB/s")
                if batch < 5:
                    after = spans["copy", batch + 1][0]
                    (self.assertLess if schedule == "two streams" else self.assertGreaterEqual)(after, compute[1])

    def test_directory_that_is_not_there(self):
        done = run("_overlap", "--device", "sim", "--timeline", "/no/such/t.csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such directory: /no/such", done.stdout + done.stderr)


class Devices(unittest.TestCase):
    def test_the_cpu_skips_overlap_and_says_why(self):
        done = run("_overlap", "--device", "cpu")
        self.assertEqual(done.returncode, 77)
        self.assertIn("skipped: the cpu copies nothing to itself and has no pinned memory", done.stdout)

    def test_auto_is_never_the_cpu(self):
        self.assertRegex(run("", "--device", "auto").stdout, r"\Adevice: (cuda:\d+|sim:0 \(SIMULATED: no GPU can be used here.*)\n")


if __name__ == "__main__":
    unittest.main()
