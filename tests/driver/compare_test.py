"""./gradus compare: what is called slower, what is not, and what cannot be compared."""
import contextlib
import io
import json
import pathlib
import random
import tempfile
import unittest
from unittest import mock

import made
from driver import __main__ as command_line
from driver import compare, results, shell

try:
    HAVE_SCIPY = bool(shell.python_with("scipy.stats", "python3-scipy", "the test"))
except shell.Failure:
    HAVE_SCIPY = False


def noisy(generator, middle=1e-3, count=9, noise=0.02):
    """Times as they are: skewed, with now and then one that is far too long."""
    return [middle * generator.lognormvariate(0, noise) * (3 if generator.random() < 0.03 else 1) for _ in range(count)]


class Holm(unittest.TestCase):
    def test_against_numbers_worked_by_hand(self):
        # 0.01 * 4, 0.02 * 3, max(0.06, 0.03 * 2), max(0.06, 0.05 * 1)
        for got, want in zip(compare.holm([0.03, 0.01, 0.05, 0.02]), [0.06, 0.04, 0.06, 0.06]):
            self.assertAlmostEqual(got, want)
        self.assertEqual(compare.holm([]), [])
        self.assertEqual(compare.holm([0.9, 0.8]), [1.0, 1.0])


class Word(unittest.TestCase):
    def case(self, *launches):
        samples = [sample for launch in launches for sample in launch]
        return {"samples_s": samples, "launches": [len(launch) for launch in launches],
                "median_s": sorted(samples)[len(samples) // 2]}

    def test_each(self):
        a = self.case([10, 10, 11], [10, 11, 11], [10, 10, 10])
        b = self.case([20, 20, 21], [20, 21, 21], [20, 20, 20])
        self.assertEqual(compare.word_for(a, b, 0.001), "slower")
        self.assertEqual(compare.word_for(b, a, 0.001), "faster")
        self.assertEqual(compare.word_for(a, b, 0.06), "ambiguous")
        self.assertEqual(compare.word_for(a, a, 1), "same")

    def test_a_small_difference_is_none_however_sure_it_is(self):
        a, b = self.case([100] * 3, [100] * 3, [100] * 3), self.case([104] * 3, [104] * 3, [104] * 3)
        self.assertEqual(compare.word_for(a, b, 1e-9), "same")
        self.assertEqual(compare.word_for(b, a, 1e-9), "same")

    def test_one_launch_that_is_like_the_other_side_makes_it_ambiguous(self):
        a = self.case([10] * 3, [10] * 3, [10] * 3)
        for one in (10, 14):  # as fast as those of a; not so, but as far from its own as from those of a
            self.assertEqual(compare.word_for(a, self.case([20] * 3, [one] * 3, [20] * 3), 0.001), "ambiguous")
        self.assertEqual(compare.word_for(a, self.case([20] * 3, [15] * 3, [20] * 3), 0.001), "slower")

    def test_launches_by_their_medians(self):
        self.assertEqual(compare.medians_of_launches({"samples_s": [1, 2, 9, None, 4, 6, None], "launches": [3, 3, 1]}), [2, 5])


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, report):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(report if isinstance(report, str) else results.text_of(report), encoding="utf-8")
        return path

    def compare(self, a, b):
        """(exit status, what was said)"""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = command_line.main(["compare", str(a), str(b)])
        return status, out.getvalue()

    def of(self, a, b, words, status, **context):
        """Compares {name: samples} with the same."""
        got, said = self.compare(self.write("a.json", made.report(a, **context)), self.write("b.json", made.report(b)))
        self.assertEqual(got, status, said)
        self.assertIn(words, said)

    def refused(self, a, b, words):
        for first, second in ((a, b), (b, a)):
            status, said = self.compare(first, second)
            self.assertEqual(status, 2, said)
            self.assertIn(words, said)


@unittest.skipUnless(HAVE_SCIPY, "SciPy is not installed")
class Measured(Compare):
    A = {"Step/threads:1": [1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08]}

    def scaled(self, factor):
        return {name: [factor * sample for sample in times] for name, times in self.A.items()}

    def test_slower_faster_and_the_same(self):
        self.of(self.A, self.scaled(1.5), "slower    a  Step/threads:1  1.04 s to 1.56 s, x 1.500, p = 4.1e-05", 1)
        self.of(self.A, self.scaled(0.6), "faster    a  Step/threads:1", 0)
        self.of(self.A, self.A, "same      a  Step/threads:1", 0)
        self.of(self.A, self.scaled(1.04), "B beside A: none slower; 1 same", 0)

    def test_one_slower_of_many_is_enough(self):
        generator = random.Random(1)
        a = {f"Case/n:{n}": noisy(generator) for n in range(60)}
        b = {f"Case/n:{n}": noisy(generator, 1.3e-3 if n == 17 else 1e-3) for n in range(60)}
        self.of(a, b, "slower    a  Case/n:17", 1)

    def good_of(self, count, draw):
        """How many of `count` comparisons of draw() with draw() have exit status 0. One start of SciPy serves them all."""
        tries = [compare.pair_up({"x": made.report(draw())}, {"x": made.report(draw())}) for _ in range(count)]
        pairs = [(compare.samples(a), compare.samples(b)) for one in tries for _, a, b in one]
        known = dict(zip(map(str, pairs), compare.p_values(pairs)))
        with mock.patch.object(compare, "p_values", lambda wanted: [known[str(pair)] for pair in wanted]):
            return sum(compare.status_of(compare.verdicts(one))[0] == 0 for one in tries)

    def test_two_halves_of_the_same_distribution(self):
        generator = random.Random(2)
        for noise in (0.02, 0.1, 0.3):
            good = self.good_of(60, lambda: {f"Case/n:{n}": noisy(generator, noise=noise) for n in range(30)})
            self.assertGreaterEqual(good, 57, noise)  # 19 of 20

    def test_and_where_launches_differ_among_themselves(self):
        for mood in (0.02, 0.05):
            generator = random.Random(3)

            def launches():
                return [factor * sample for factor in [generator.lognormvariate(0, mood) for _ in range(3)]
                        for sample in noisy(generator, count=3)]
            good = self.good_of(60, lambda: {f"Case/n:{n}": launches() for n in range(10)})
            self.assertGreaterEqual(good, 57, mood)

    def test_two_files_of_the_same_distribution(self):
        generator = random.Random(4)
        a, b = ({f"Case/n:{n}": noisy(generator) for n in range(30)} for _ in range(2))
        self.of(a, b, "none slower", 0)

    def test_equal_samples_in_great_number(self):
        self.of({"A": [1] * 9}, {"A": [2] * 9}, "slower    a  A", 1)  # ties: no exact test
        self.of({"A": [1] * 9}, {"A": [1] * 9}, "same", 0)

    def test_a_case_that_fails_now_is_no_better_than_a_slow_one(self):
        b = made.report(self.A)
        b["cases"][0].update(status="failed", reason="wrong result", median_s=None)
        status, said = self.compare(self.write("a.json", made.report(self.A)), self.write("b.json", b))
        self.assertEqual(status, 1)
        self.assertIn("failed    a  Step/threads:1  in B: wrong result", said)

    def test_folders_case_by_case(self):
        for side, factor in (("a", 1), ("b", 2)):
            self.write(f"{side}/03_x.json", made.report(self.A))
            self.write(f"{side}/04_y.json", made.report(self.scaled(factor)))
            self.write(f"{side}/04_y.lesson.json", "not looked at")
        self.write("b/05_z.json", made.report(self.A))
        status, said = self.compare(self.folder / "a", self.folder / "b")
        self.assertEqual(status, 1)
        for words in ("same      03_x  Step", "slower    04_y  Step", "alone     05_z  Step/threads:1  only in B",
                      "B beside A: slower; 1 alone, 1 same, 1 slower"):
            self.assertIn(words, said)

    def test_differences_of_the_environment_are_named(self):
        b = made.report(self.A)
        b["build"]["compiler"], b["suite"]["dirty"], b["host"]["cores"] = "clang 14", True, 64
        b["host"]["load"] = [9, 9, 9]
        _, said = self.compare(self.write("a.json", made.report(self.A)), self.write("b.json", b))
        lines = [line for line in said.splitlines() if line.startswith("differs")]
        self.assertEqual(lines, ["differs  build.compiler: None against clang 14", "differs  host.cores: 2 against 64",
                                 "differs  suite.dirty: False against True"])
        b["environment"] = {"devices": [{"name": "X", "memory_free": 1}]}
        _, said = self.compare(self.folder / "a.json", self.write("b.json", b))
        self.assertIn("differs  environment: recorded in B only", said)
        a = made.report(self.A)
        a["environment"] = {"devices": [{"name": "Y", "memory_free": 2}]}
        _, said = self.compare(self.write("a.json", a), self.folder / "b.json")
        self.assertIn("differs  environment.devices.0.name: Y against X\n", said)
        self.assertNotIn("memory_free", said)

    def test_a_busy_machine_is_named(self):
        busy = made.report(self.A, load_avg=[7.0, 1, 1])
        _, said = self.compare(self.write("a.json", made.report(self.A)), self.write("b.json", busy))
        self.assertIn("busy     B: load 7.0 on 2 cores", said)
        self.assertNotIn("busy     A", said)

    def test_a_sample_that_is_no_number_is_left_out(self):
        a = made.report({"A": [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]})
        a["cases"][0]["samples_s"][0] = None
        self.assertEqual(self.compare(self.write("a.json", a), self.write("b.json", made.report({"A": [1.5] * 12})))[0], 0)


class Refused(Compare):
    GOOD = {"A": [1] * 9}

    def test_too_few_samples_or_launches(self):
        good = self.write("a.json", made.report(self.GOOD))
        self.refused(good, self.write("b.json", made.report({"A": [1] * 6})), "6 samples of 3 launches, needs 9 of 3")
        self.refused(good, self.write("b.json", made.report(self.GOOD, launches=1)), "9 samples of 1 launches, needs 9 of 3")

    def test_no_case_in_common(self):
        self.refused(self.write("a.json", made.report(self.GOOD)), self.write("b.json", made.report({"B": [1] * 9})),
                     "they have no measured case in common")

    def test_simulated_against_real_and_other_clocks(self):
        simulated, manual = made.report(self.GOOD), made.report(self.GOOD)
        simulated["cases"][0]["simulated"] = True
        manual["cases"][0]["timer"] = "manual"
        good = self.write("a.json", made.report(self.GOOD))
        self.refused(good, self.write("b.json", simulated), "simulated against real")
        self.refused(good, self.write("b.json", manual), "timed by")

    def test_debug_sanitizer_and_unknown_builds(self):
        good = self.write("a.json", made.report(self.GOOD))
        self.refused(good, self.write("b.json", made.report(self.GOOD, gradus_build_type="Debug")), "a build that is Debug, not Release")
        self.refused(good, self.write("b.json", made.report(self.GOOD, gradus_build_type=None)), "a build that is unknown")
        sanitized = made.report(self.GOOD)
        sanitized["build"]["sanitizer"] = "thread"
        self.refused(good, self.write("b.json", sanitized), "Release thread")

    def test_hostile_files(self):
        good = self.write("a.json", made.report(self.GOOD))
        text = good.read_text()
        for bad, words in ((text[:300], "is not JSON"), (text.replace("1.0, 1.0", "NaN, 1.0", 1) if "1.0, 1.0" in text else
                                                         text.replace("1, 1", "NaN, 1", 1), "NaN is not JSON"),
                           ("{}", "is not a results file"), (json.dumps(made.google(made.row("A", 1))), "is not a results file"),
                           (text.replace("gradus-results-1", "gradus-results-9"), "is not a results file")):
            self.refused(good, self.write("b.json", bad), words)
        self.refused(good, self.folder / "none.json", "No such file")
        (self.folder / "empty").mkdir()
        self.refused(good, self.folder / "empty", "holds no benchmark's results")
        binary = self.folder / "binary.json"
        binary.write_bytes(b"\xff\xfe\x00")
        self.refused(good, binary, "is not JSON")

    def test_without_scipy_it_names_the_command(self):
        good = self.write("a.json", made.report(self.GOOD))
        shell.python_with.cache_clear()
        self.addCleanup(shell.python_with.cache_clear)
        with mock.patch.object(shell, "output_of", lambda *_: ""):
            status, said = self.compare(good, good)
        self.assertEqual(status, 2)
        self.assertIn("./gradus setup --report, or sudo apt-get install -y --no-install-recommends python3-scipy", said)


if __name__ == "__main__":
    unittest.main()
