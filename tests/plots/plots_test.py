#!/usr/bin/env python3
"""The plotting programs of lesson 02: the break-even size, what is refused, and, where matplotlib is, what they draw."""
import contextlib
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLOTS = pathlib.Path(__file__).resolve().parents[2] / "plots"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PLOTS))
import break_even  # noqa: E402
import timeline  # noqa: E402

HAVE_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
TIMELINE = """device,schedule,row,batch,start_ms,end_ms
sim:0,one stream,copy,0,0,2
sim:0,one stream,compute,0,2,5.5
"""


def bench_results(device, there_and_back):
    runs = [{"run_name": f"Matmul/cpu/n:{n}/min_time:0.050/real_time", "real_time": 1000 * t, "time_unit": "us"}
            for n, t in {64: 1, 128: 8}.items()]
    for case, times in (("Matmul", {64: 1, 128: 2}), ("MatmulThereAndBack", there_and_back)):
        runs += [{"run_name": f"{case}/{device}/n:{n}/min_time:0.050/real_time", "real_time": t, "time_unit": "ms"}
                 for n, t in times.items()]
    runs += [{"run_name": "Memcpy/cpu/bytes:1024/real_time", "real_time": 30, "time_unit": "ns"},
             {"run_name": f"HostToDevice_pinned/{device}/bytes:1024/real_time", "real_time": 90, "time_unit": "ns"}]
    return json.dumps({"context": {"date": "2026-11-30T12:00:00"}, "benchmarks": runs})


class BreakEven(unittest.TestCase):
    def test_between_two_sizes(self):
        # Half as fast at 64, twice as fast at 256: equal where the logarithms meet, at 128.
        self.assertAlmostEqual(break_even.break_even({64: 1, 256: 4}, {64: 2, 256: 2}), 128)
        # Three times of four on the way: 64 * 4^(3/4).
        self.assertAlmostEqual(break_even.break_even({64: 1, 256: 2}, {64: 8, 256: 1}), 64 * 4**0.75)

    def test_the_last_crossing_counts(self):
        self.assertAlmostEqual(break_even.break_even({1: 1, 2: 1, 4: 1, 16: 1}, {1: 0.5, 2: 2, 4: 2, 16: 0.5}), 8)

    def test_never_always_and_nothing_in_common(self):
        self.assertIsNone(break_even.break_even({64: 1, 128: 1}, {64: 0.5, 128: 2}))
        self.assertEqual(break_even.break_even({64: 1, 128: 1}, {64: 0.5, 128: 0.5}), 64)
        self.assertIsNone(break_even.break_even({64: 1}, {128: 1}))

    def test_in_words(self):
        self.assertEqual(break_even.verdict({64: 1, 256: 4}, {64: 2, 256: 2}), "break-even at n = 128")
        self.assertEqual(break_even.verdict({64: 1, 128: 1}, {64: 2, 128: 2}), "no break-even up to n = 128")
        self.assertEqual(break_even.verdict({64: 2, 128: 2}, {64: 1, 128: 1}), "pays at every n from 64 on")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def refused(self, read, path, message):
        with self.assertRaises(SystemExit) as caught, contextlib.redirect_stdout(io.StringIO()):
            read(path)
        self.assertIn(message, str(caught.exception))

    def test_timeline_is_read(self):
        device, schedules = timeline.read(self.write("t.csv", TIMELINE))
        self.assertEqual(device, "sim:0")
        self.assertEqual(schedules, {"one stream": {"copy": [(0, 0, 2)], "compute": [(0, 2, 5.5)]}})

    def test_what_is_no_timeline_is_refused(self):
        for text, message in (("", "of 0 devices"), ("a,b\n1,2\n", "is not a timeline"),
                              (TIMELINE.replace("5.5", "nan"), "a span from 2.0 to nan ms"),
                              (TIMELINE.replace("2,5.5", "2,1"), "a span from 2.0 to 1.0 ms"),
                              (TIMELINE + "cuda:0,one stream,copy,0,0,2\n", "of 2 devices")):
            self.refused(timeline.read, self.write("bad.csv", text), message)

    def test_results_without_the_lesson_are_refused(self):
        path = self.write("r.json", json.dumps({"context": {"date": "2026-11-30T12:00:00"}, "benchmarks": []}))
        self.refused(break_even.read, path, "holds no case of lesson 02")

    def draw(self, program, source):
        out = self.folder / "out.svg"
        subprocess.run([sys.executable, "-B", PLOTS / program, source, "--out", out], check=True, timeout=120,
                       stdout=subprocess.DEVNULL)
        return out.read_bytes()

    @unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed")
    def test_the_same_input_gives_the_same_bytes_and_simulated_times_are_marked(self):
        for program, sim, cuda in (
                ("timeline.py", self.write("sim.csv", TIMELINE),
                 self.write("cuda.csv", TIMELINE.replace("sim:0", "cuda:0"))),
                ("break_even.py", self.write("sim.json", bench_results("sim_SIMULATED", {64: 3, 128: 9})),
                 self.write("cuda.json", bench_results("cuda", {64: 4, 128: 2})))):
            drawn = self.draw(program, sim)
            self.assertEqual(drawn, self.draw(program, sim))
            self.assertIn(b">SIMULATED<", drawn)
            self.assertNotIn(b">SIMULATED<", self.draw(program, cuda))

    @unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed")
    def test_the_break_even_is_in_the_title(self):
        crosses = self.write("c.json", bench_results("cuda", {64: 4, 128: 2}))  # 4 times slower, 4 times faster
        self.assertIn(b"break-even at n = 91", self.draw("break_even.py", crosses))
        never = self.write("n.json", bench_results("cuda", {64: 3, 128: 9}))
        self.assertIn(b"no break-even up to n = 128", self.draw("break_even.py", never))


if __name__ == "__main__":
    unittest.main()
