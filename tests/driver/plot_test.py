"""./gradus plot: which results it takes, and that one command draws them."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import made
from driver import __main__ as command_line
from driver import packages, plot, results, shell

try:
    HAVE_MATPLOTLIB = bool(shell.python_with("matplotlib", "python3-matplotlib", "the test"))
except shell.Failure:
    HAVE_MATPLOTLIB = False


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def run_named(self, run, day, machine=None):
        """A folder of results that were measured on a day."""
        folder = self.root / "results" / (machine or results.machine()) / run
        folder.mkdir(parents=True)
        (folder / "ops_x.json").write_text(results.text_of(made.report({"A": [1, 2]}, launches=1, date=f"2026-11-{day}T00:00:00")))
        return folder

    def plot(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = command_line.main(["plot", *arguments])
        return status, out.getvalue()

    def test_the_newest_of_this_machine_by_what_the_files_say(self):
        with mock.patch.object(plot, "ROOT", self.root):
            self.run_named("reference", 10)
            newest = self.run_named("zzz", 20)
            self.run_named("aaa", 15)
            self.run_named("other", 25, machine="other-machine")
            (newest.parent / "empty").mkdir()
            self.assertEqual(plot.newest("plot"), newest)

    def test_where_there_are_none_it_says_what_to_do(self):
        self.run_named("reference", 10, machine="other-machine")
        with mock.patch.object(plot, "ROOT", self.root):
            status, said = self.plot()
        self.assertEqual(status, 2)
        self.assertIn("./gradus bench measures this machine", said)
        self.assertIn("./gradus plot --results results/other-machine/reference", said)

    def test_wrong_places(self):
        self.assertEqual(self.plot("--results", str(self.root / "none")), (2, mock.ANY))
        self.assertIn("is not a folder", self.plot("--results", __file__)[1])

    def test_without_matplotlib_it_names_the_command(self):
        shell.python_with.cache_clear()
        self.addCleanup(shell.python_with.cache_clear)
        with mock.patch.object(shell, "output_of", lambda *_: ""):
            status, said = self.plot("--results", str(self.root))
        self.assertEqual(status, 2)
        self.assertIn("./gradus setup --report, or sudo apt-get install -y --no-install-recommends python3-matplotlib", said)

    def test_setup_report_installs_what_plot_and_compare_need(self):
        self.assertLessEqual({"python3-matplotlib", "python3-scipy"}, set(packages.REPORT))

    @unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed")
    def test_one_command_draws_twice_the_same(self):
        folder = self.run_named("mine", 30)
        command = [sys.executable, "-B", made.ROOT / "lib" / "driver", "plot", "--results", folder]
        drawn = []
        for _ in range(2):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
            drawn.append([(folder / f"ops_x.{ending}").read_bytes() for ending in ("svg", "png", "csv")])
        self.assertEqual(drawn[0], drawn[1])
        (folder / "ops_x.json").write_text("{")
        broken = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        self.assertEqual(broken.returncode, 1)
        self.assertIn("ops_x.json: is not JSON", broken.stderr)


if __name__ == "__main__":
    unittest.main()
