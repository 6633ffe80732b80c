#!/usr/bin/env python3
"""Tests of snippets.py: it must see every way in which a page can drift from its source."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "snippets.py"

SOURCE = """int before;
  // [snippet body]
  int x = 1;
    // [snippet inner]
    int y = 2;
    // [/snippet inner]
  // [/snippet body]
int after;
"""
BODY = "int x = 1;\n  int y = 2;\n"


def page(block, reference="code.cpp#body"):
    return f"Text.\n\n<!-- snippet: {reference} -->\n```cpp\n{block}```\n\nMore text.\n"


class Snippets(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "docs").mkdir()
        (self.root / "code.cpp").write_text(SOURCE)
        self.addCleanup(self.folder.cleanup)

    def run_on(self, text, *options):
        self.page = self.root / "docs" / "page.md"
        self.page.write_text(text)
        return subprocess.run([sys.executable, TOOL, "--root", self.root, *options], capture_output=True, text=True)

    def assert_refused(self, text, message):
        done = self.run_on(text)
        self.assertEqual(done.returncode, 1)
        self.assertIn(message, done.stderr)

    def test_a_page_that_agrees(self):
        done = self.run_on(page(BODY))
        self.assertEqual((done.returncode, done.stdout), (0, "1 snippets\n"), done.stderr)
        self.assertEqual(self.run_on(page("int y = 2;\n", "code.cpp#inner")).returncode, 0)

    def test_a_page_that_drifted_is_shown_and_rewritten(self):
        old = page("int x = 0;\n")
        self.assert_refused(old, "-int x = 0;\n+int x = 1;")
        self.assertEqual(self.page.read_text(), old)
        self.assertEqual(self.run_on(old, "--update").returncode, 0)
        self.assertEqual(self.page.read_text(), page(BODY))

    def test_a_whole_file(self):
        (self.root / "all.txt").write_text("one\ntwo\n")
        self.assertEqual(self.run_on(page("one\ntwo\n", "all.txt")).returncode, 0)
        self.assert_refused(page("one\n", "all.txt"), "+two")

    def test_a_page_without_snippets_is_left_alone(self):
        text = "no newline at its end"
        self.assertEqual(self.run_on(text, "--update").returncode, 0)
        self.assertEqual(self.page.read_text(), text)

    def test_lessons_are_pages_too(self):
        (self.root / "lessons" / "01").mkdir(parents=True)
        (self.root / "lessons" / "01" / "README.md").write_text(page("wrong\n"))
        self.assert_refused("", "lessons/01/README.md: differs")

    def test_references_that_lead_nowhere(self):
        self.assert_refused(page(BODY, "code.cpp#nobody"), "has no snippet 'nobody'")
        self.assert_refused(page(BODY, "gone.cpp#body"), "gone.cpp: no such file")
        self.assert_refused("<!-- snippet code.cpp#body -->\n", "expected <!-- snippet: path#name -->")

    def test_broken_markers_and_blocks(self):
        (self.root / "open.cpp").write_text("// [snippet a]\nint x;\n")
        self.assert_refused(page("int x;\n", "open.cpp#a"), "'a' is not closed")
        (self.root / "twice.cpp").write_text("// [snippet a]\n// [/snippet a]\n// [snippet a]\n// [/snippet a]\n")
        self.assert_refused(page("", "twice.cpp#a"), "'a' begins twice")
        self.assert_refused("<!-- snippet: code.cpp#body -->\nno block\n", "followed by a block")
        self.assert_refused("<!-- snippet: code.cpp#body -->\n```cpp\nint x;\n", "not closed")


if __name__ == "__main__":
    unittest.main()
