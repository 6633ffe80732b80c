#!/usr/bin/env python3
"""Lesson 01 on machines that this one is not: with a driver and GPUs, with damaged libraries, with odd settings.

    env_check_test.py PROGRAMS FAKES     the folders with the lessons' programs and with the fake driver
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FAKES = pathlib.Path(sys.argv.pop(2))
PROGRAM = pathlib.Path(sys.argv.pop(1)) / "01_env_check"
SETTINGS = ("CUDA_VISIBLE_DEVICES", "GRADUS_SIM_DEVICES", "GRADUS_DATA")
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.13", "libcudart.so.12", "libcublasLt.so.13",
             "libcublasLt.so.12", "libcudnn.so.9", "libcudnn.so.8", "libnccl.so.2")
GIB = 2**30


def run(*arguments, libraries=FAKES, **settings):
    env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    env.update(settings, LD_LIBRARY_PATH=str(libraries))
    return subprocess.run([PROGRAM, *arguments], env=env, capture_output=True, text=True, timeout=60)


def without_home(path):
    """A path as records have it, which name nobody's home."""
    home = os.environ.get("HOME", "").rstrip("/")
    return "~" + str(path)[len(home):] if home and str(path).startswith(home + "/") else str(path)


class EnvCheck(unittest.TestCase):
    def record(self, **how):
        """The text and the record of a run that must succeed; by itself the driver is newer than any build."""
        result = run("--json", **{"FAKE_CUDA": "99000", **how})
        self.assertEqual(result.returncode, 0, result.stderr)
        *text, line = result.stdout.splitlines()
        return "\n".join(text), json.loads(line)["environment"]

    def findings(self, record):
        return {finding["code"]: finding for finding in record["cuda"]["findings"]}

    def test_a_driver_and_its_gpus(self):
        text, record = self.record(FAKE_CUDA="12020", FAKE_GPUS="2")
        cuda = record["cuda"]
        self.assertEqual((cuda["driver_supports"], cuda["driver_release"], cuda["gpus_in_machine"]),
                         ("12.2", "535.104.05", 2))
        self.assertEqual(cuda["gpus"], [
            {"name": f"Fake GPU {i}", "capability": "9.0",
             "memory_total": (80 + i) * GIB, "memory_free": (70 + i) * GIB} for i in range(2)])
        self.assertEqual(cuda["libraries"]["driver"], {"file": "libcuda.so.1", "path": without_home(FAKES / "libcuda.so.1"),
                                                       "version": "12.2", "error": None})
        self.assertIn("driver knows CUDA up to: 12.2\ndriver: 535.104.05\n", text)
        self.assertIn(f"driver        12.2       {FAKES / 'libcuda.so.1'}\n", text)
        self.assertNotIn("E-CUDA-NO-DRIVER", self.findings(record))

    def test_gpus_that_this_program_cannot_use_are_shown_all_the_same(self):
        text, record = self.record(FAKE_GPUS="2")
        if not record["cuda"]["built_with"]:
            self.assertIn("(GPU)   Fake GPU 1: 81.00 GiB, 71.00 GiB free\n", text)
            self.assertIn("CUDA available: no\nGPU count: 0\n", text)
            self.assertIn("E-CUDA-BUILD", self.findings(record))

    def test_env_03_all_hidden(self):
        for init in ("0", "100"):  # a driver may say so, or just count none
            _, record = self.record(CUDA_VISIBLE_DEVICES="7", FAKE_VISIBLE="0", FAKE_INIT=init)
            self.assertEqual(self.findings(record)["E-CUDA-HIDDEN"]["cause"],
                             "CUDA_VISIBLE_DEVICES='7' hides all 2 devices: there is no device '7'")
            self.assertEqual(record["cuda"]["cuda_visible_devices"], "7")

    def test_env_03_a_list_cut_short(self):
        _, record = self.record(CUDA_VISIBLE_DEVICES="1,9,0", FAKE_VISIBLE="1")
        self.assertEqual(self.findings(record)["N-CUDA-LIST"]["cause"],
                         "CUDA_VISIBLE_DEVICES='1,9,0' shows 1 of 2 devices: it ends at '9', which is none")

    def test_no_device(self):
        _, record = self.record(FAKE_GPUS="0", FAKE_INIT="100")
        self.assertIn("E-CUDA-NO-DEVICE", self.findings(record))

    def test_a_driver_that_cannot_start(self):
        _, record = self.record(FAKE_INIT="999")
        self.assertEqual(self.findings(record)["E-CUDA-INIT"]["cause"], "cuInit fails with error 999 (CUDA_ERROR_UNKNOWN)")
        self.assertEqual(record["cuda"]["gpus"], [])

    def test_damaged_libraries_are_reported(self):
        whole = (FAKES / "libcuda.so.1").read_bytes()
        for content, words in ((b"", "file too short"), (b"<html>" + bytes(9000), "invalid ELF header"),
                               (whole[:len(whole) // 3], "libcuda.so.1: ")):
            with tempfile.TemporaryDirectory() as folder, self.subTest(words):
                for name in LIBRARIES:
                    (pathlib.Path(folder) / name).write_bytes(content)
                text, record = self.record(libraries=folder)
                self.assertIn(words, self.findings(record)["E-CUDA-DRIVER-BROKEN"]["cause"])
                self.assertIn("\ndriver        damaged    ", text)
                for library in record["cuda"]["libraries"].values():
                    self.assertTrue(library["error"] or not library["path"].startswith(folder))  # or found elsewhere

    def test_a_device_that_was_asked_for_must_be_there(self):
        result = run("--device", "sim:77")
        self.assertEqual(result.returncode, 1)
        self.assertIn("== 6. Which lessons run here ==", result.stdout)  # the report comes first
        self.assertIn("error [E-DEVICE-ORDINAL]", result.stderr)
        self.assertEqual(run("--device", "cpu").returncode, 0)

    def test_a_setting_of_the_simulated_device_that_cannot_be_read(self):
        text, record = self.record(GRADUS_SIM_DEVICES="many")
        self.assertEqual([device["device"] for device in record["devices"] if device["simulated"]], [])
        self.assertRegex(text, r"sim     none: .*GRADUS_SIM_DEVICES.*many")

    def test_the_images_of_lesson_04(self):
        text, _ = self.record(GRADUS_DATA="/some/where")
        self.assertIn("lesson 04 finds its images in /some/where\n", text)


if __name__ == "__main__":
    unittest.main()
