#!/usr/bin/env python3
"""./gradus report: what is on the page, that hostile results stay text, and that a browser shows it."""
import contextlib
import html
import html.parser
import io
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import made
from driver import __main__ as command_line
from driver import conclusions, report, results, shell

HOSTILE = '<script>alert("x")</script>&"\''
VOID = {"img", "meta"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="700" height="300" viewBox="0 0 700 300"></svg>'

# Put into a copy of the page, so that the browser tells what it made of it.
PROBE = """<script>addEventListener("load", () => document.documentElement.dataset.probe = JSON.stringify({
  inner: innerWidth, page: document.documentElement.scrollWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches,
  back: getComputedStyle(document.querySelector("img")).backgroundColor,
  pictures: [...document.images].map(one => [one.naturalWidth, one.clientWidth, one.clientHeight])}))</script>"""

try:
    HAVE_MATPLOTLIB = bool(shell.python_with("matplotlib", "python3-matplotlib", "the test"))
except shell.Failure:
    HAVE_MATPLOTLIB = False


class Reader(html.parser.HTMLParser):
    """Collects a page's words, ids and addresses, and refuses tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.ids, self.addresses, self.tags = [], [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open += [tag] if tag not in VOID else []
        self.ids += [value for key, value in attrs if key == "id"]
        self.addresses += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        rows = [made.row("Step/threads:1", 2, "s", checked=1, peak_bytes=5e6), made.row("Step/threads:2", 1, "s", flops=8e9),
                made.row(f"Odd {HOSTILE}", 1, label=HOSTILE, ratio=float("nan")), made.row("Copy/sim_SIMULATED", 3, "us"),
                {"name": "B", "run_name": "B", "error_occurred": True, "error_message": f"skipped: no GPU {HOSTILE}"}]
        results.write(results.convert(made.google(*rows), environment={"host": {"cpu": HOSTILE, "governor": None}}),
                      self.folder / "09_made.json")
        lesson = {"schema": results.NAME, "kind": "lesson", "program": "09_made", "machine": "made", "started": "2026-12-01T00:00:00",
                  "suite": results.suite("0.1.0", "abc"), "environment": None, "run": {"arguments": [], "seed": None},
                  "status": "measured", "reason": None, "results": {"C01_x": [0.5, None, HOSTILE]}}
        results.write(lesson, self.folder / "09_made.lesson.json")
        results.write({**lesson, "status": "skipped", "reason": "no device"}, self.folder / "08_made.lesson.json")
        conclusions.conclude(self.folder)

    def report(self, *arguments, status=0, figures=None):
        """figures: {name: SVG} instead of those that matplotlib would draw."""
        def draw(_, into):
            for name, svg in (figures or {}).items():
                (into / name).write_text(svg)
            return "" if figures else "No figures today."
        out = io.StringIO()
        command = ["report", "--results", str(self.folder), *arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), mock.patch.object(report, "draw", draw):
            self.assertEqual(command_line.main(command), status, out.getvalue())
        return out.getvalue()

    def page(self, **more):
        self.report(**more)
        return (self.folder / "report.html").read_text(encoding="utf-8")

    def edit(self, change, name="09_made.json"):
        """Changes a results file by hand, as somebody might."""
        one = json.loads((self.folder / name).read_text(encoding="utf-8"))
        change(one)
        (self.folder / name).write_text(json.dumps(one))

    def case(self, **fields):
        self.edit(lambda one: one["cases"][0].update(fields))

    def test_everything_is_on_the_page(self):
        words = Reader(self.page()).words
        for text in ("Step/threads:1", "2 s", "2 s to 2 s", "passed", "5 MB", "SIMULATED times say nothing about a GPU",
                     "Step/threads:2: 2.00 times as fast as Step/threads:1 [2.00, 2.00]", "threads over one",
                     "C01_x", f"0.5, not recorded, {HOSTILE}", "No figures today.", "not recorded"):
            self.assertIn(text, words)
        at = words.index("B")
        self.assertEqual(words[at:at + 3], ["B", "skipped", f"no GPU {HOSTILE}"])
        at = words.index("no number: counters.ratio[0]")
        self.assertEqual(words[at + 1], "nan")
        self.assertIn("no device", words)

    def test_hostile_results_stay_text_and_nothing_is_fetched(self):
        page = self.page()
        reader = Reader(page)
        self.assertNotIn("script", reader.tags)
        self.assertIn(f"Odd {HOSTILE}", reader.words)
        self.assertEqual(len(reader.ids), len(set(reader.ids)))
        self.assertTrue(all(address.startswith(("#", "data:image/")) for address in reader.addresses), reader.addresses)
        self.assertEqual({address[1:] for address in reader.addresses if address.startswith("#")}, set(reader.ids))
        self.assertNotIn("url(", page)

    def test_the_same_results_give_the_same_bytes(self):
        self.assertEqual(self.page(), self.page())

    def test_wrong_places_and_damaged_files(self):
        self.assertIn("cannot write", self.report("--out", "/nowhere/x.html", status=2))
        (self.folder / "ops_cut.json").write_text('{"schema": ')
        self.assertIn("ops_cut.json: is not JSON", self.report(status=2))
        self.assertFalse((self.folder / "report.html").exists())
        for path in self.folder.iterdir():
            path.unlink()
        self.assertIn("holds no results", self.report(status=2))

    def test_odd_values_break_neither_page_nor_reader(self):
        self.case(name="half \ud800 of a pair")
        self.assertIn("half ? of a pair", Reader(self.page()).words)
        measured = {"status": "measured", "reason": None, "name": "Instant"}
        self.case(**measured, median_s=0, quartiles_s=[0, 0])
        at = (words := Reader(self.page()).words).index("Instant")
        self.assertEqual(words[at + 1:at + 3], ["0 ns", "0 ns to 0 ns"])
        self.case(median_s=None, quartiles_s=None)
        at = (words := Reader(self.page()).words).index("Instant")
        self.assertEqual(words[at + 1], "no number")
        for devices in (5, "x", {"a": 1}, [5, None, {"device": None}]):
            self.edit(lambda one, devices=devices: one["environment"].update(devices=devices))
            self.page()
        (self.folder / "report.html").unlink()
        for fields, says in (({"memory": {"peak_bytes": 10 ** 400}}, "not finite"),
                             ({"memory": None, "median_s": 1}, "a median without quartiles"),
                             ({"quartiles_s": [1, 2, 3]}, "has 3 items, needs 2")):
            self.case(**fields)
            self.assertIn(says, self.report(status=2))
        self.assertFalse((self.folder / "report.html").exists())

    def test_files_named_as_sections_have_ids_of_their_own(self):
        for name in ("environment", "left-out", "lessons", 'a b"<i>', "a-b--i-"):
            shutil.copy(self.folder / "09_made.json", self.folder / f"{name}.json")
        reader = Reader(self.page())
        self.assertEqual(len(reader.ids), len(set(reader.ids)))
        self.assertEqual(sorted(address[1:] for address in reader.addresses), sorted(reader.ids))
        self.assertFalse(any(re.search(r"\s", one) for one in reader.ids))

    def test_files_of_several_runs_keep_their_environments(self):
        shutil.copy(self.folder / "09_made.json", self.folder / "10_other.json")
        self.edit(lambda one: (one["environment"]["host"].update(cpu="Other"), one["host"].update(mhz=3000),
                               one.update(started="2026-12-24T00:00:00")), "10_other.json")
        words = Reader(self.page()).words
        self.assertIn(f"{HOSTILE} (09_made); Other (10_other)", words)
        self.assertIn("2600 to 3000", words)
        self.assertIn("2026-11-30T12:00:00+00:00 to 2026-12-24T00:00:00", words)
        self.assertEqual(words[words.index("environment not recorded") + 1], "08_made.lesson, 09_made.lesson")

    def test_what_a_reader_must_not_miss(self):
        self.edit(lambda one: (one["run"].update(quick=True, finished=False), one["build"].update(type="Debug")))
        shutil.copy(self.folder / "09_made.json", self.folder / "11_cut.unfinished.json")
        words = Reader(self.page()).words
        for text in ("QUICK: no times to quote", "NOT FINISHED", "Debug BUILD: no times to quote", "not finished"):
            self.assertIn(text, words)
        self.edit(lambda one: [case.update(name="Plain", device="sim") for case in one["cases"] if case["simulated"]])
        words = Reader(self.page()).words
        self.assertEqual(words[words.index("Plain") + 1], "3 us SIMULATED")

    def test_figures_lie_in_the_page_with_the_file_that_they_belong_to(self):
        names = ("09_made.svg", "09_made_curve.svg", "09_madeup.svg")
        reader = Reader(self.page(figures=dict.fromkeys(names, "<svg/>")))
        pictures = [address for address in reader.addresses if address.startswith("data:")]
        self.assertEqual(pictures, ["data:image/svg+xml;base64,PHN2Zy8+"] * 3)
        at = [reader.words.index(word) for word in ("09_made", "09_made_curve", "Cases", "What the lessons measured", "09_madeup")]
        self.assertEqual(at, sorted(at))

    @unittest.skipUnless(HAVE_MATPLOTLIB, "matplotlib is not installed")
    def test_it_draws_the_figures_and_leaves_none_lying_about(self):
        before = sorted(self.folder.iterdir())
        with contextlib.redirect_stdout(io.StringIO()):
            command_line.main(["report", "--results", str(self.folder)])
        self.assertIn('alt="09_made: ', (self.folder / "report.html").read_text(encoding="utf-8"))
        self.assertEqual(sorted(self.folder.iterdir()), sorted([*before, self.folder / "report.html"]))

    def test_without_matplotlib_it_says_how_to_get_it(self):
        shell.python_with.cache_clear()
        self.addCleanup(shell.python_with.cache_clear)
        with mock.patch.object(shell, "output_of", lambda *_: ""):
            said = report.draw(self.folder, self.folder)
        self.assertIn("No figures: a page with figures needs matplotlib", said)
        self.assertIn("./gradus setup --report", said)

    def browser(self, address, *flags):
        """The page as chromium made it, what its console says, and what the page (not chromium for itself) asked for."""
        log = self.folder / "net.log"
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND",
                   "--enable-logging=stderr", f"--log-net-log={log}",
                   f"--user-data-dir={self.folder / 'profile'}", *flags, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        asked = re.findall(r'"initiator":"(?!not an origin)[^\n]*?"url":"(?!file:|data:)([^"]*)"',
                           log.read_text(encoding="utf-8", errors="replace"))
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line], asked

    @unittest.skipUnless(shutil.which("chromium"), "there is no chromium (./gradus setup --dev)")
    def test_a_browser_shows_it_and_asks_for_nothing(self):
        control = self.folder / "control.html"
        control.write_text('<img src="http://gradus.invalid/x.png"><script>console.error("heard")</script>')
        _, console, asked = self.browser(control.as_uri(), "--dump-dom")
        self.assertIn("heard", "".join(console))
        self.assertEqual(set(asked), {"http://gradus.invalid/x.png"})
        page = self.page(figures={"09_made.svg": SVG})
        address = (self.folder / "report.html").as_uri()
        shown, console, asked = self.browser(address, "--dump-dom")
        self.assertIn("Step/threads:2: 2.00 times as fast", shown)
        self.assertNotIn("<script", shown)
        self.assertEqual(console, [])
        self.assertEqual(asked, [])
        probe = self.folder / "probe.html"
        probe.write_text(re.sub('<meta http-equiv[^>]*>', PROBE, page), encoding="utf-8")
        for width in (1280, 390):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.measure(probe, width, dark)

    def measure(self, probe, width, dark):
        shown, _, _ = self.browser(probe.as_uri(), "--dump-dom", f"--window-size={width},900",
                                   f"--blink-settings=preferredColorScheme={0 if dark else 1}")
        made = json.loads(html.unescape(re.search(r'data-probe="([^"]*)"', shown)[1]))
        self.assertEqual(made["dark"], dark)
        self.assertLessEqual(made["page"], made["inner"])  # tables and figures move by themselves, the page does not
        [(natural, wide, high)] = made["pictures"]
        self.assertEqual(natural, 700)
        self.assertGreater(min(wide, high), 200)
        self.assertEqual(made["back"], "rgb(255, 255, 255)")


if __name__ == "__main__":
    unittest.main()
