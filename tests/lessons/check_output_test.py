"""Tests of check_output.py."""
import contextlib
import io
import pathlib
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_output as co  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def expected(self, text):
        path = self.root / "03_lesson" / "expected" / "main.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return co.Expected(path)

    def accepts(self, text, output):
        self.expected(text).check(output)

    def refuses(self, text, output, words):
        expected = self.expected(text)
        with self.assertRaises(co.Mismatch) as caught:
            expected.check(output)
        self.assertIn(words, str(caught.exception))

    def bad_file(self, text, words):
        with self.assertRaises(co.BadFile) as caught:
            self.expected(text)
        self.assertIn(words, str(caught.exception))


class Lines(Case):
    def test_text_must_be_equal(self):
        self.accepts("n <1 ± 0>\nhello (a+b)", "n 1\nhello (a+b)  \n")
        self.refuses("n <1 ± 0>\nhello", "n 1\nhallo\n", "expected: hello\n  output:   hallo")

    def test_all_lines_in_order(self):
        self.refuses("<1 ± 0>\nb", "1\n", "the output ends here")
        self.refuses("<1 ± 0>", "1\nb\n", "a line more than expected")
        self.refuses("<1 ± 0>\nb", "b\n1\n", "main.txt:1:")

    def test_regular_expression(self):
        self.accepts("<1 ± 0>\ntime {{[0-9]+(ms|s)}} ok", "1\ntime 12ms ok")
        self.refuses("<1 ± 0>\ntime {{[0-9]+(ms|s)}} ok", "1\ntime 12min ok", "another text")

    def test_groups_in_a_regular_expression_leave_the_numbers_alone(self):
        self.refuses("{{[(]?(a|b)}} <2 ± 0>", "a 3", "3 is not <2 ± 0>")

    def test_angle_brackets_that_are_text(self):
        self.accepts("Tensor<float> <1 ± 0> if a < b", "Tensor<float> 1 if a < b")


class Numbers(Case):
    def test_tolerance_has_two_sides(self):
        for value in ("0.88", "0.9", "0.92", "+9e-1"):
            self.accepts("loss <0.90 ± 0.02>", f"loss {value}")
        for value in ("0.87", "0.93", "nan", "-inf", "-0.9"):
            self.refuses("loss <0.90 ± 0.02>", f"loss {value}", f"{value} is not <0.90 ± 0.02>")

    def test_ascii_percent_and_groups(self):
        self.accepts("<1000 +- 5%> <60,000 ± 0>", "951 60,000")
        self.refuses("<1000 +- 5%>", "1051", "1051 is not")
        self.refuses("<-1000 +- 5%>", "-1051", "-1051 is not")

    def test_one_side(self):
        self.accepts("<1 ± 0> <>= 80> << 2>", "1 80 1.9")
        self.refuses("<1 ± 0> <>= 80>", "1 79.9", "79.9 is not")
        self.refuses("<1 ± 0> << 2>", "1 nan", "nan is not")


class Directions(Case):
    text = "a <a: 2 ± 1>\nb <b: *>\n@ a < b\n@ 2 * a <= b <= 6"

    def test_compares_remembered_numbers(self):
        self.accepts(self.text, "a 2\nb 5")
        self.refuses(self.text, "a 2\nb 1.5", "a < b does not hold: a = 2, b = 1.5")
        self.refuses(self.text, "a 2\nb 3", "2 * a <= b <= 6 does not hold")
        self.refuses(self.text, "a 2\nb nan", "nan is not")


class BadFiles(Case):
    def test_refused(self):
        for text, words in {
            "no numbers": "no number with a two-sided tolerance",
            "<>= 3>": "no number with a two-sided tolerance",
            "<1 ± 0>\n{{.*}}": "matches anything",
            r"<1 ± 0>" "\n" r"x {{\S+}}": "matches anything",
            "<1 ± 0>\n{{[}}": "main.txt:2:",
            "<1 ± 0>\n<*>": "without a name",
            "<1 ± 0> <x: *>": "used by no @ line",
            "<1 ± 0>\n@ y < 2": "no number was named y above",
            "<1 ± 0>\n@ 1 < 2": "no number was named",
            "<x: 1 ± 0>\n@ x": "not a comparison",
            "<1 ± about 2>": "not understood",
            "<1 ± inf>": "must be finite",
            "<1 ± -1>": "not negative",
        }.items():
            with self.subTest(text):
                self.bad_file(text, words)

    def test_a_failure_needs_no_number(self):
        self.accepts("# exit: 2\nerror: no", "error: no")


class Altered(Case):
    def test_every_alteration_is_refused(self):
        expected = self.expected("a <1 ± 0.1>\nb <>= 2>\n{{x+}}")
        self.assertEqual(co.check_altered(expected, "a 1\nb 3\nxxx\n"), 1 + 2 * 3 + 3 + 2)

    def test_a_file_that_accepts_too_much_is_found(self):
        expected = self.expected("a <1 ± 0>\n{{x.*}}")
        with self.assertRaisesRegex(co.Mismatch, "accepted the output with line 2"):
            co.check_altered(expected, "a 1\nxy\n")


class Run(Case):
    def run_main(self, text, script, *arguments):
        self.expected(text)
        program = self.root / "bin" / "03_lesson"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = co.main(["--programs", str(self.root / "bin"), *arguments,
                                  str(self.root / "03_lesson" / "expected" / "main.txt")])
            except SystemExit as leaving:
                status = leaving.code
        return status, out.getvalue() + err.getvalue()

    def test_arguments_and_saved_output(self):
        saved = self.root / "saved"
        status, text = self.run_main("# A comment.\n# run: --n 3\nn <3 ± 0>", 'echo "n $2"', "--save", str(saved))
        self.assertEqual((status, saved.read_text()), (0, "n 3\n"), text)

    def test_each_run_line_is_run(self):
        status, text = self.run_main("# run: 3\n# run: 4\nn <3 ± 0>", 'echo "n $1"')
        self.assertEqual(status, 1)
        self.assertIn("4 is not <3 ± 0>", text)

    def test_exit_status(self):
        self.assertEqual(self.run_main("n <3 ± 0>", "echo n 3; exit 1")[0], 1)
        self.assertEqual(self.run_main("# exit: 2\nerror: bad", "echo error: bad >&2; exit 2")[0], 0)
        self.assertEqual(self.run_main("n <3 ± 0>", "echo no data; exit 77")[0], co.SKIPPED)

    def test_skipped_where_a_path_exists(self):
        status, text = self.run_main(f"# unless: {self.root}\nn <3 ± 0>", "echo n 4")
        self.assertEqual((status, text), (co.SKIPPED, f"skipped: {self.root} is there\n"))
        self.assertEqual(self.run_main(f"# unless: {self.root}/none\nn <3 ± 0>", "echo n 4")[0], 1)

    def test_a_program_that_hangs(self):
        status, text = self.run_main("# timeout: 1\nn <3 ± 0>", "sleep 5 >/dev/null")
        self.assertEqual(status, 1)
        self.assertIn("no end after 1", text)


if __name__ == "__main__":
    unittest.main()
