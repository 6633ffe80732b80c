#!/usr/bin/env python3
"""Lesson 04 when things go wrong: interrupted, killed, on a full disk, with bad files; and going on afterwards.

    train_loop_test.py PROGRAMS     the folder with the lessons' programs

Trains on 512 made images, an epoch of which takes a fraction of a second.
"""
import json
import math
import os
import pathlib
import pty
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path("build/release/lessons")
PROGRAM = PROGRAMS / "04_train_loop"
INSTALLED = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES = "train-images-idx3-ubyte"


def write_set(folder, split, count, rng, side=28):
    """Noise with a bright bar in the row that the label says."""
    labels = bytes(i % 10 for i in range(count))
    images = bytearray(rng.randbytes(count * side * side))
    for i, label in enumerate(labels):
        start = i * side * side + side * (2 + 2 * label)
        images[start:start + side] = b"\xff" * side
    (folder / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, side, side) + images)
    (folder / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels)


def limit_files():
    """For a child: no file beyond 1 MB, as on a disk that is nearly full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def header_of(raw):
    """A checkpoint's JSON header, and where its data begin."""
    size = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + size]), 8 + size


def sealed(raw):
    """The checkpoint with the checksum that its contents have now (lib/gradus/io/checkpoint.cpp)."""
    header, start = header_of(raw)
    metadata = header.pop("__metadata__")
    texts = [text for key in sorted(metadata) if key != "gradus.crc32" for text in (key, metadata[key])]
    crc = zlib.crc32("".join(text + "\0" for text in texts).encode())
    for name, entry in header.items():
        dtype = {"F32": "float32", "F64": "float64", "U8": "uint8"}[entry["dtype"]]
        crc = zlib.crc32("".join(text + "\0" for text in (name, dtype, str(entry["shape"]))).encode(), crc)
        begin, end = entry["data_offsets"]
        crc = zlib.crc32(raw[start + begin:start + end], crc)
    return raw.replace(f'"gradus.crc32":"{metadata["gradus.crc32"]}"'.encode(), f'"gradus.crc32":"{crc:08x}"'.encode())


def epoch_lines(output):
    return [line for line in output.splitlines() if line.startswith("Epoch")]


class TrainLoop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.data = pathlib.Path(cls.shared.name) / "data"
        cls.data.mkdir()
        write_set(cls.data, "train", 512, random.Random(1))
        write_set(cls.data, "t10k", 128, random.Random(2))
        cls.after_one = pathlib.Path(cls.shared.name) / "after_one.ckpt"
        cls.first = cls.start("--epochs", "1", "--checkpoint", cls.after_one)

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.checkpoint = self.folder / "run.ckpt"
        shutil.copy(self.after_one, self.checkpoint)

    @classmethod
    def command(cls, *arguments, data=None):
        return [PROGRAM, "--device", "cpu", "--data", data or cls.data, *arguments]

    @classmethod
    def start(cls, *arguments, data=None, **options):
        return subprocess.run(cls.command(*arguments, data=data), text=True, timeout=120, stderr=subprocess.PIPE,
                              **{"stdout": subprocess.PIPE, **options})

    def run_well(self, *arguments):
        result = self.start(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def run_badly(self, *arguments, message, status=1, **options):
        """The run must fail with `status` and this regular expression in its message."""
        result = self.start(*arguments, **options)
        self.assertEqual(result.returncode, status, f"{result.stdout}\n{result.stderr}")
        self.assertRegex(result.stderr, message)
        return result

    def resumable(self, epochs_done):
        """The checkpoint is whole and goes on after that epoch."""
        output = self.run_well("--resume", self.checkpoint, "--epochs", str(epochs_done + 1))
        self.assertIn(f"resumed after epoch {epochs_done} of {epochs_done + 1}\n", output)
        self.assertEqual(len(epoch_lines(output)), 1, output)

    def assert_untouched(self):
        self.assertEqual(self.checkpoint.read_bytes(), self.after_one.read_bytes())
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.checkpoint.name])

    # Going on

    def test_resume_continues_bit_for_bit(self):
        straight, curve = self.folder / "straight.ckpt", self.folder / "curve.csv"
        whole = self.run_well("--epochs", "2", "--checkpoint", straight, "--curve", curve)
        whole_curve = curve.read_text()
        curve.write_text("".join(whole_curve.splitlines(keepends=True)[:2]))  # as the first epoch left it
        rest = self.run_well("--epochs", "2", "--resume", self.checkpoint, "--checkpoint", self.checkpoint,
                             "--curve", curve)
        self.assertEqual(epoch_lines(self.first.stdout) + epoch_lines(rest), epoch_lines(whole))
        self.assertEqual(self.checkpoint.read_bytes(), straight.read_bytes())
        self.assertEqual(curve.read_text(), whole_curve)
        self.assertEqual(len(whole_curve.splitlines()), 3)

    def test_resume_of_a_finished_run(self):
        output = self.run_well("--epochs", "1", "--resume", self.checkpoint, "--checkpoint", self.checkpoint)
        self.assertIn("nothing is left to do", output)
        self.assertEqual(epoch_lines(output), [])
        self.assert_untouched()

    def test_another_seed_gives_other_numbers(self):
        self.assertEqual(epoch_lines(self.run_well("--epochs", "1")), epoch_lines(self.first.stdout))
        self.assertNotEqual(epoch_lines(self.run_well("--epochs", "1", "--seed", "1")), epoch_lines(self.first.stdout))

    def test_another_run_does_not_go_on(self):
        for flag, was, now in (("--seed", 0, 1), ("--batch-size", 256, 128)):
            self.run_badly("--resume", self.checkpoint, flag, str(now),
                           message=rf"E-RESUME.*{self.checkpoint}: its run had {flag} {was}, this one has {now}\n")
        self.run_badly("--resume", self.checkpoint, data="made",
                       message=r"E-RESUME.*its run had batches an epoch 2, this one has \d\d")
        self.assert_untouched()

    # Interrupted

    def test_ctrl_c_ends_between_two_steps(self):
        self.interrupted(signal.SIGINT, "Ctrl-C", 130)

    def test_sigterm_ends_between_two_steps(self):
        self.interrupted(signal.SIGTERM, "SIGTERM", 143)

    def interrupted(self, number, name, status):
        process = subprocess.Popen(self.command("--epochs", "1000", "--checkpoint", self.checkpoint), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not process.stdout.readline().startswith("Epoch"):
            self.assertIsNone(process.poll(), "ended before the first epoch was printed")
        process.send_signal(number)
        message = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, status, message)
        found = re.search(rf"error \[E-INTERRUPTED\]: interrupted \({name}\) in epoch (\d+)/1000", message)
        self.assertTrue(found, message)
        self.assertIn("--resume FILE", message)
        self.resumable(int(found[1]) - 1)

    def test_kill_during_a_save(self):
        process = subprocess.Popen(self.command("--epochs", "1000", "--resume", self.checkpoint, "--checkpoint",
                                                self.checkpoint), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not any(".tmp-" in name for name in os.listdir(self.folder)):
            self.assertLess(time.monotonic(), deadline, "no save was seen")
        process.kill()
        process.wait()
        self.assertIn(self.saved_epoch(), (1, 2))
        self.resumable(self.saved_epoch())

    def saved_epoch(self):
        header, _ = header_of(self.checkpoint.read_bytes())
        return int(re.search(r"\d+", header["__metadata__"]["progress/epoch"])[0])

    # Full disks

    def test_full_disk_keeps_the_checkpoint_before(self):
        result = self.run_badly("--epochs", "2", "--resume", self.checkpoint, "--checkpoint", self.checkpoint,
                                message=rf"E-FILE.*{self.checkpoint}", preexec_fn=limit_files)
        self.assertEqual(len(epoch_lines(result.stdout)), 1)
        self.assert_untouched()

    def test_full_devices(self):
        self.run_badly("--epochs", "1", "--checkpoint", "/dev/full", message="/dev/full.*No space left on device")
        result = self.run_badly("--epochs", "1", "--curve", "/dev/full", message="/dev/full.*No space left on device")
        self.assertEqual(epoch_lines(result.stdout), [], "found only after an epoch")
        with open("/dev/full", "w") as full:
            self.run_badly("--epochs", "1", message="the output could not be written", stdout=full)

    def test_folders_that_are_not_there_are_found_before_training(self):
        missing = self.folder / "none" / "file"
        for flag in ("--checkpoint", "--curve"):
            result = self.run_badly(flag, missing, message=f"{flag}.*none", status=2)
            self.assertEqual(result.stdout, "")

    # Bad files

    def bad_data(self, name, content, message):
        data = self.folder / "data"
        shutil.copytree(self.data, data)
        (data / name).write_bytes(content((data / name).read_bytes()))
        result = self.run_badly("--checkpoint", self.checkpoint, data=data, message=message)
        self.assertIn(str(data / name), result.stderr)
        shutil.rmtree(data)
        self.assert_untouched()

    def test_bad_data_files(self):
        self.bad_data(IMAGES, lambda raw: raw[:100000], r"E-TRUNCATED")
        self.bad_data(IMAGES, lambda raw: b"<!DOCTYPE html><html>not found</html>", r"E-FORMAT.*web page")
        self.bad_data("train-labels-idx1-ubyte", lambda raw: raw[:-1] + b"\x0a", r"E-DATA.*label 10 at index 511")

    def test_data_that_the_network_cannot_take(self):
        for split, count, side, message in (("train", 0, 28, "its training set has 0 images"),
                                            ("t10k", 0, 28, "its test set has 0 images"),
                                            ("train", 8, 27, "its training images are 27 x 27.*28 x 28")):
            data = self.folder / "data"
            shutil.copytree(self.data, data)
            write_set(data, split, count, random.Random(3), side)
            result = self.run_badly("--checkpoint", self.checkpoint, data=data, message=rf"E-DATA.*{data}: {message}")
            self.assertIn("--data names a directory", result.stderr)
            shutil.rmtree(data)
            self.assert_untouched()

    @unittest.skipIf(INSTALLED.exists(), "the data set is installed")
    def test_no_data_set(self):
        environment = {name: value for name, value in os.environ.items() if name != "GRADUS_DATA"}
        result = subprocess.run([PROGRAM], env=environment, text=True, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 77)
        self.assertIn("--data made", result.stderr)

    def test_bad_checkpoints(self):
        raw = self.checkpoint.read_bytes()
        for content, message in ((sealed(raw.replace(b"model/features.0.weight", b"model/features.9.weight")),
                                  "E-STATE-DICT.*{path}(.|\n)*features.9.weight"),
                                 (raw[:-1] + bytes([raw[-1] ^ 1]), "E-CHECKSUM.*{path}: is damaged"),
                                 (raw.replace(b'"gradus.checkpoint":"2"', b'"gradus.checkpoint":"1"'),
                                  "E-CHECKPOINT.*{path}: is a checkpoint of version 1(.|\n)*had no checksum"),
                                 (raw[:len(raw) // 2], "E-TRUNCATED.*{path}"),
                                 (b"not a checkpoint", "E-FORMAT.*{path}|E-TRUNCATED.*{path}")):
            self.checkpoint.write_bytes(content)
            self.run_badly("--resume", self.checkpoint, message=message.format(path=re.escape(str(self.checkpoint))))
        self.run_badly("--resume", self.folder / "none.ckpt", message="--resume.*none.ckpt", status=2)

    def test_a_loss_that_is_not_finite_stops_training(self):
        raw = bytearray(self.checkpoint.read_bytes())
        header, start = header_of(raw)
        begin, end = header["model/classifier.4.bias"]["data_offsets"]
        raw[start + begin:start + end] = struct.pack("<f", math.nan) * ((end - begin) // 4)
        raw = sealed(raw)
        self.checkpoint.write_bytes(raw)
        self.run_badly("--resume", self.checkpoint, "--checkpoint", self.checkpoint,
                       message="E-NONFINITE.*epoch 2/10: the training loss is nan")
        self.assertEqual(self.checkpoint.read_bytes(), raw)

    # Flags

    def test_what_is_no_seed_is_refused(self):
        for text in ("-1", "18446744073709551616", "1.5", "one"):
            self.run_badly("--seed", text, message=f"'{text}' is not a whole number from 0 to", status=2)

    def test_the_smallest_loop_heeds_epochs_and_says_what_it_does_not_heed(self):
        program = PROGRAMS / "04_train_loop_minimal"
        lines = subprocess.run([program, "--device", "cpu", "--epochs", "2"], text=True, check=True, timeout=60,
                               stdout=subprocess.PIPE).stdout.splitlines()
        self.assertEqual([line[:8] for line in lines if line.startswith("epoch ")], ["epoch 0,", "epoch 1,"])
        text = subprocess.run([program, "--help"], text=True, check=True, timeout=60, stdout=subprocess.PIPE).stdout
        self.assertIn("in this one --data and --quick\nchange nothing.", text)

    def test_workers_do_not_change_the_numbers(self):
        self.assertEqual(epoch_lines(self.run_well("--epochs", "1", "--workers", "0")),
                         epoch_lines(self.first.stdout))

    def test_batches_larger_than_the_data_and_of_unequal_size(self):
        for size in ("100000", "100"):
            self.assertEqual(len(epoch_lines(self.run_well("--epochs", "1", "--batch-size", size))), 1)

    def test_quick_takes_a_small_data_set_whole(self):
        self.assertEqual(epoch_lines(self.run_well("--quick")), epoch_lines(self.first.stdout))

    def test_progress_bar_on_a_terminal_only(self):
        try:
            terminal, stdout = pty.openpty()
        except OSError as error:  # a container without /dev/pts
            self.skipTest(f"no terminal to draw on: {error}")
        process = subprocess.Popen(self.command("--epochs", "2", "--batch-size", "16"), stdout=stdout)
        os.close(stdout)
        drawn = b""
        try:
            while chunk := os.read(terminal, 4096):
                drawn += chunk
        except OSError:  # how Linux says that the other end was closed
            pass
        os.close(terminal)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(drawn, rb"\r\x1b\[Kepoch 1/2 \[=* *\] +\d+ %  \d+ samples/s  \d+ s left")
        self.assertEqual(len(re.findall(rb"\r\x1b\[KEpoch 0[12]", drawn)), 2, "the bar is cleared before a line")
        self.assertNotIn("samples/s", self.first.stdout)

    def test_json_says_what_was_printed(self):
        line = json.loads(self.run_well("--epochs", "1", "--json").splitlines()[-1])
        self.assertEqual((line["lesson"], line["seed"], line["results"]["epoch"]), ("04_train_loop", 0, [1]))
        numbers = [line["results"][name][0] for name in ("train_loss", "train_accuracy", "val_loss", "val_accuracy")]
        printed = re.findall(r"\d+\.\d+", epoch_lines(self.first.stdout)[0])
        self.assertEqual([f"{number:.4f}" for number in numbers], printed)


if __name__ == "__main__":
    unittest.main()
