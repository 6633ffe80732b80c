#!/usr/bin/env python3
"""./gradus report: what is on the page, that hostile results stay text, and that a browser shows it."""
import contextlib
import html.parser
import io
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import made
from driver import __main__ as command_line
from driver import conclusions, report, results

HOSTILE = '<script>alert("x")</script>&"\''
VOID = {"img", "meta"}


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

    def report(self, *arguments, status=0, figures=False):
        out = io.StringIO()
        no_figures = contextlib.nullcontext() if figures else mock.patch.object(report, "draw", lambda _: "No figures today.")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), no_figures:
            self.assertEqual(command_line.main(["report", "--results", str(self.folder), *arguments]), status, out.getvalue())
        return out.getvalue()

    def page(self, **more):
        self.report(**more)
        return (self.folder / "report.html").read_text(encoding="utf-8")

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

    def test_figures_lie_in_the_page(self):
        (self.folder / "09_made.svg").write_text("<svg/>")
        (self.folder / "09_made_curve.svg").write_text("<svg/>")
        (self.folder / "09_madeup.svg").write_text("<svg/>")
        pictures = [address for address in Reader(self.page()).addresses if address.startswith("data:")]
        self.assertEqual(pictures, ["data:image/svg+xml;base64,PHN2Zy8+"] * 2)

    @unittest.skipUnless(shutil.which("chromium"), "there is no chromium (./gradus setup --dev)")
    def test_a_browser_shows_it(self):
        self.page()
        dark = self.folder / "page.png"
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder / 'profile'}"]
        address = (self.folder / "report.html").as_uri()
        shown = subprocess.run([*browser, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True).stdout
        self.assertIn("Step/threads:2: 2.00 times as fast", shown)
        self.assertNotIn("<script", shown)
        subprocess.run([*browser, "--window-size=390,900", f"--screenshot={dark}", address], capture_output=True, timeout=120,
                       check=True)
        self.assertGreater(dark.stat().st_size, 10_000)  # an empty page of that size has 3 kB


if __name__ == "__main__":
    unittest.main()
