#!/usr/bin/env python3
"""The plotting programs: what is refused, and, where matplotlib is, what they draw."""
import contextlib
import csv
import io
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

PLOTS = pathlib.Path(__file__).resolve().parents[2] / "plots"
sys.dont_write_bytecode = True
sys.path[:0] = [str(PLOTS), str(PLOTS.parent / "tests" / "driver")]
import draw_all  # noqa: E402
import figure  # noqa: E402
import learning_curve  # noqa: E402
import made  # noqa: E402
import peer_table  # noqa: E402
import timeline  # noqa: E402
from driver import google_benchmark, results, shell  # noqa: E402

try:
    PYTHON = shell.python_with("matplotlib", "python3-matplotlib", "the test")
except shell.Failure:
    PYTHON = None
TIMELINE = """device,schedule,row,batch,start_ms,end_ms
sim:0,one stream,copy,0,0,2
sim:0,one stream,compute,0,2,5.5
"""


def bench_results(device, there_and_back, **context):
    seconds = {f"Matmul/cpu/n:{n}/min_time:0.050/real_time": [t * 1e-3] for n, t in {64: 1, 128: 8}.items()}
    for case, times in (("Matmul", {64: 1, 128: 2}), ("MatmulThereAndBack", there_and_back)):
        seconds |= {f"{case}/{device}/n:{n}/min_time:0.050/real_time": [t * 1e-3] for n, t in times.items()}
    seconds |= {"Memcpy/cpu/bytes:1024/real_time": [30e-9], f"HostToDevice_pinned/{device}/bytes:1024/real_time": [90e-9]}
    return results.text_of(made.report(seconds, launches=1, **context))


def reports(*rows, **context):
    return results.text_of(results.convert(made.google(*rows, **context)))


class PeerTable(unittest.TestCase):
    """docs/performance.md, of made results."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for patch in (mock.patch.object(figure, "ROOT", self.root), mock.patch.object(peer_table, "PAGE", self.root / "page.md")):
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, machine="m", **seconds):
        folder = self.root / "results" / machine / "reference"
        folder.mkdir(parents=True)
        times = {f"small_net_step/batch:32/threads:1/by:{way}": [time] * 9 for way, time in seconds.items()}
        times["matmul/n:256/dtype:float32/threads:1/by:gradus"] = [1.0] * 9
        times["matmul/n:256/dtype:float32/threads:1/by:eager"] = [0.98] * 9
        results.write(made.report(times, launches=1), folder / "peer_torch.json")

    def run_main(self, *arguments):
        with mock.patch.object(sys, "argv", ["peer_table.py", *arguments]):
            peer_table.main()

    def row(self, title):
        return next(line for line in (self.root / "page.md").read_text().splitlines() if line.startswith(f"| {title} "))

    def test_the_rival_is_the_fastest_way_and_bounds_are_met_or_missed(self):
        self.write(gradus=1.0, eager=40.0, fused=20.0)
        self.run_main()
        self.assertEqual(self.row("small_net_step batch 32"),
                         "| small_net_step batch 32 | 1 | 1 s | 20 s | fused | 20.00 [20.00, 20.00] | 15 x, met |")
        self.assertIn("\n| small_net_step batch 32 | 1 | eager 40 s, fused 20 s |\n", (self.root / "page.md").read_text())
        self.assertTrue(self.row("matmul n 256 dtype float32").endswith("| 0.98 [0.98, 0.98] | 1 x, met |"))
        self.assertEqual([peer_table.reached(0.96, 1), peer_table.reached(1.19, 1.2), peer_table.reached(9, None)],
                         ["1 x, missed", "1.2 x, missed", ""])

    def test_check_sees_a_page_that_the_results_do_not_back(self):
        self.run_main("--check")  # neither results nor a page
        (self.root / "page.md").write_text("fast")
        with self.assertRaisesRegex(SystemExit, "0 machines"):
            self.run_main("--check")
        self.write(gradus=1.0, eager=40.0)
        with self.assertRaisesRegex(SystemExit, "differs from the results"):
            self.run_main("--check")
        self.run_main()
        self.run_main("--check")
        self.write("another", gradus=1.0, eager=40.0)
        with self.assertRaisesRegex(SystemExit, "2 machines"):
            self.run_main("--check")


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


class Files(Folder):
    def refused(self, read, path, message):
        with self.assertRaises(shell.Failure) as caught, contextlib.redirect_stdout(io.StringIO()):
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

    def test_what_is_no_learning_curve_is_refused(self):
        head = ",".join(learning_curve.COLUMNS)
        for text, message in ((head, "has no epochs"), ("epoch\n1\n", "is not a learning curve"),
                              (f"{head}\n1,2,3,x,5\n", "is not a learning curve"), (f"{head}\nnan,2,3,4,5\n", "no number")):
            self.refused(learning_curve.read, self.write("bad.csv", text), message)
        self.refused(learning_curve.read, self.folder / "none.csv", "No such file")

    def test_BEN_03_each_machine_has_figures_of_its_own(self):
        self.assertEqual(figure.output_of(figure.ROOT / "results/m/reference/03_x.json"), figure.ROOT / "plots/m/03_x")
        self.assertEqual(figure.output_of(figure.ROOT / "results/m/2026-11-30-abc/03_x.json"),
                         figure.ROOT / "plots/m/2026-11-30-abc/03_x")
        self.assertEqual(figure.output_of(figure.ROOT / "results/n/reference/03_x.json"), figure.ROOT / "plots/n/03_x")
        self.assertEqual(figure.output_of(self.folder / "03_x.json"), self.folder / "03_x")

    def test_BEN_03_footer_and_marks_say_what_a_reader_must_know(self):
        report = results.convert(made.google(made.row("A/sim:0", 1), made.row("B", 1), made.row("B", 2),
                                             gradus_build_type="Debug"), revision="0123abcd-dirty", name="m")
        report["run"].update(quick=True, finished=False)
        self.assertEqual(figure.marks(report, report["cases"]), ["SIMULATED", "QUICK", "UNFINISHED", "DEBUG BUILD"])
        self.assertEqual(figure.footer(report, report["cases"], self.folder / "x.json"),
                         "m · cpu, sim:0 SIMULATED · 2026-11-30 · 0123abcd-dirty · n = 1 to 2\nx.json")
        report["environment"] = {"devices": [{"device": "cpu", "name": "Quick 9000"}, {"device": "sim:0", "name": "of no speed"}]}
        self.assertIn("m · cpu (Quick 9000), sim:0 SIMULATED · ", figure.footer(report, report["cases"], self.folder / "x.json"))

    def test_what_is_drawn_in_which_way(self):
        for name in ("01_env_check.json", "ops_x.json", "01_env_check.lesson.json", "03_model_to_gpu.unfinished.json",
                     "04_train_loop_curve.csv", "other.csv", "04_train_loop.txt"):
            self.write(name, "")
        self.assertEqual([path.name for path, _ in draw_all.sources(self.folder)],
                         ["01_env_check.json", "ops_x.json", "04_train_loop_curve.csv"])


@unittest.skipUnless(PYTHON, "matplotlib is not installed")
class Figures(Folder):

    def draw(self, program, source):
        """The bytes of (SVG, PNG, CSV) of a source."""
        out = self.folder / "out.svg"
        self.run_program(program, source, "--out", out)
        return tuple(path.read_bytes() for path in figure.outputs(out.with_suffix("")))

    def run_program(self, program, *arguments, status=0):
        """What a program printed."""
        done = subprocess.run([PYTHON, "-B", PLOTS / program, *arguments], check=False, timeout=120, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_the_same_input_gives_the_same_bytes_and_simulated_times_are_marked(self):
        for program, sim, cuda in (
                ("timeline.py", self.write("sim.csv", TIMELINE),
                 self.write("cuda.csv", TIMELINE.replace("sim:0", "cuda:0"))),
                ("break_even.py", self.write("sim.json", bench_results("sim_SIMULATED", {64: 3, 128: 9})),
                 self.write("cuda.json", bench_results("cuda", {64: 4, 128: 2})))):
            drawn = self.draw(program, sim)
            self.assertEqual(drawn, self.draw(program, sim))
            self.assertIn(b">SIMULATED<", drawn[0])
            self.assertNotIn(b">SIMULATED<", self.draw(program, cuda)[0])

    def test_the_break_even_is_in_the_title(self):
        crosses = self.write("c.json", bench_results("cuda", {64: 4, 128: 2}))  # 4 times slower, 4 times faster
        self.assertIn(b"break-even at n = 91", self.draw("break_even.py", crosses)[0])
        never = self.write("n.json", bench_results("cuda", {64: 3, 128: 9}))
        self.assertIn(b"no break-even up to n = 128", self.draw("break_even.py", never)[0])

    def test_results_without_the_lesson_are_drawn_by_their_medians(self):
        other = self.write("02_device_transfer.json", reports(made.row("Matmul/cpu/n:64", 1)))
        self.assertIn("lacks the products", self.run_program("break_even.py", other, status=1))
        said = self.run_program("draw_all.py", self.folder)
        self.assertIn("not drawn in that way", said)
        self.assertTrue((self.folder / "02_device_transfer.svg").exists())

    def test_BEN_03_a_point_a_case_with_its_range(self):
        rows = [made.row("Step/64/real_time", time, "ms") for time in (10, 11, 10, 30, 10)]
        rows += [made.aggregate("Step/64/real_time", "mean", 14.2, "ms"), made.row("Other", 5, "us")]
        source = self.write("x.json", reports(*rows, gradus_build_type="Debug"))
        drawn = self.draw("medians.py", source)
        self.assertEqual(drawn, self.draw("medians.py", source))
        table = list(csv.DictReader(io.StringIO(drawn[2].decode())))
        self.assertEqual([row["case"] for row in table], ["Other", "Step/64"])
        self.assertEqual([float(table[1][key]) for key in ("median_s", "min_s", "max_s", "samples")], [0.01, 0.01, 0.03, 5])
        self.assertAlmostEqual(float(table[0]["median_s"]), 5e-6)
        self.assertIn(b">DEBUG BUILD<", drawn[0])
        self.assertIn(b"2026-11-30", drawn[0])

    def test_BEN_01_bad_rows_are_named_and_the_others_drawn(self):
        google = made.google(made.row("Good", 1), made.row("Counter", 1, ratio=math.nan, label='a"b\\c'), made.row("Time", math.inf),
                             {"name": "Skipped", "error_occurred": True, "error_message": "skipped: no GPU"})
        self.write("x.json", results.text_of(results.convert(google_benchmark.parse(made.text(google), "x"))))
        self.write("empty.json", reports())
        said = self.run_program("draw_all.py", self.folder)
        for words in ("left out Time, failed: no sample is a number", "left out Skipped, skipped: no GPU",
                      "Counter has values that are no numbers: counters.ratio[0] was nan", "holds no case with a time"):
            self.assertIn(words, said)
        self.assertIn(b"Counter", (self.folder / "x.csv").read_bytes())
        self.assertFalse((self.folder / "empty.svg").exists())

    def test_BEN_01_of_a_cut_file_no_old_figure_is_left(self):
        whole = reports(made.row("A", 1))
        good, cut = self.write("good.json", whole), self.write("cut.json", whole)
        self.run_program("draw_all.py", self.folder)
        self.assertTrue((self.folder / "cut.svg").exists())
        cut.write_text(whole[:-100], encoding="utf-8")
        said = self.run_program("draw_all.py", self.folder, status=1)
        self.assertIn("cut.json: is not JSON (cut off, perhaps)", said)
        self.assertEqual([path.exists() for path in figure.outputs(self.folder / "cut")], [False] * 3)
        self.assertTrue(good.with_suffix(".svg").exists())

    def test_an_empty_folder(self):
        self.assertIn("holds no results", self.run_program("draw_all.py", self.folder, status=1))

    def test_each_committed_result_can_be_drawn(self):
        for folder in sorted((figure.ROOT / "results").glob("*/reference")):
            copy = self.folder / folder.name
            copy.mkdir()
            for path, _ in draw_all.sources(folder):
                (copy / path.name).write_bytes(path.read_bytes())
            self.run_program("draw_all.py", copy)
            self.assertTrue(all(path.with_suffix(".svg").exists() for path, _ in draw_all.sources(copy)))


if __name__ == "__main__":
    unittest.main()
