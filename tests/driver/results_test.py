"""Results files: their schema, how they are made of Google Benchmark's output, and what is refused."""
import copy
import json
import math
import pathlib
import tempfile
import unittest
from unittest import mock

import made
from driver import google_benchmark, results, schema, shell

SCHEMA = json.loads(results.SCHEMA.read_text(encoding="utf-8"))


def case_of(report, name):
    return next(case for case in report["cases"] if case["name"] == name)


class Names(unittest.TestCase):
    def test_parameters_device_and_timer(self):
        case = google_benchmark.parse_name("Matmul/float32/cpu/n:64/min_time:0.050/real_time")
        self.assertEqual((case["name"], case["family"], case["device"], case["simulated"], case["timer"]),
                         ("Matmul/float32/cpu/n:64", "Matmul", "cpu", False, "wall"))
        self.assertEqual(case["parameters"], {"arg0": "float32", "n": 64})
        case = google_benchmark.parse_name("Copy/cuda1/4/0.5/manual_time")
        self.assertEqual((case["name"], case["device"], case["timer"]), ("Copy/cuda1/4/0.5", "cuda:1", "manual"))
        self.assertEqual(case["parameters"], {"arg0": 4, "arg1": 0.5})

    def test_simulated(self):
        case = google_benchmark.parse_name("Copy/sim_SIMULATED/bytes:1024/repeats:9/iterations:3/real_time")
        self.assertEqual((case["name"], case["device"], case["simulated"]), ("Copy/sim_SIMULATED/bytes:1024", "sim", True))
        self.assertTrue(google_benchmark.parse_name("Copy/sim:1")["simulated"])

    def test_words_that_are_no_numbers_stay_words(self):
        self.assertEqual(google_benchmark.parse_name("A/x:nan/y:inf")["parameters"], {"x": "nan", "y": "inf"})

    def test_numbers_in_names_sort_as_numbers(self):
        names = ["n:8/a", "n:64", "b", "n:8", "2", "a10b", "a9b"]
        self.assertEqual(sorted(names, key=results.natural), ["2", "a9b", "a10b", "b", "n:8", "n:8/a", "n:64"])


class Conversion(unittest.TestCase):
    def test_BEN_03_aggregates_are_no_runs(self):
        name = "Step/64/real_time"
        rows = [made.row(name, time, "ms", repetitions=5) for time in (10, 11, 10, 30, 10)]
        rows += [made.aggregate(name, kind, time, "ms") for kind, time in
                 (("mean", 14.2), ("median", 10), ("stddev", 8.84), ("cv", 0.62))]
        case = case_of(results.convert(made.google(*rows)), "Step/64")
        self.assertEqual(case["median_s"], 10e-3)
        self.assertEqual((min(case["samples_s"]), max(case["samples_s"])), (10e-3, 30e-3))
        self.assertEqual((case["launches"], len(case["samples_s"])), ([5], 5))
        self.assertEqual(case["quartiles_s"], [10e-3, 11e-3])

    def test_BEN_03_only_aggregates_is_no_case(self):
        self.assertEqual(results.convert(made.google(made.aggregate("A", "mean", 1)))["cases"], [])

    def test_BEN_03_units_are_converted_and_the_context_is_kept(self):
        report = results.convert(made.google(made.row("A", 2, "ns"), made.row("B", 2, "us"), made.row("C", 2, "ms"),
                                             made.row("D", 2, "s"), gradus_build_type="Debug"))
        self.assertEqual([case["median_s"] for case in report["cases"]], [2e-9, 2e-6, 2e-3, 2])
        self.assertEqual((report["build"]["type"], report["host"]["cores"], report["started"][:10]), ("Debug", 2, "2026-11-30"))
        with self.assertRaisesRegex(shell.Failure, "row 1 .* 'min'"):
            results.convert(made.google(made.row("A", 2, "min")))

    def test_BEN_01_what_is_no_number_becomes_null_with_a_reason(self):
        rows = [made.row("A", 1, ratio=math.nan, rate=math.inf, label='a"b\\c'), made.row("A", math.nan, ratio=0.5, rate=2)]
        google = google_benchmark.parse(made.text(made.google(*rows)), "x")  # Python reads its bare NaN as well
        report = results.convert(google)
        case = case_of(report, "A")
        self.assertEqual((case["samples_s"], case["median_s"], case["label"]), ([1e-9, None], 1e-9, 'a"b\\c'))
        self.assertEqual(case["counters"], {"ratio": [None, 0.5], "rate": [None, 2]})
        self.assertEqual(case["invalid"], {"counters.ratio[0]": "nan", "counters.rate[0]": "inf", "samples_s[1]": "nan",
                                           "cpu_samples_s[1]": "nan"})
        text = results.text_of(report)
        self.assertEqual(json.loads(text, parse_constant=results.strict), report)
        self.assertEqual(schema.errors(report, SCHEMA), [])

    def test_BEN_01_no_runs_errors_and_skips(self):
        self.assertEqual(results.convert(made.google())["cases"], [])
        report = results.convert(made.google(
            {"name": "A/real_time", "run_name": "A/real_time", "error_occurred": True, "error_message": "wrong result before timing"},
            {"name": "B", "error_occurred": True, "error_message": "skipped: no GPU"},
            {"name": "C", "skipped": True, "skip_message": "too large"}, made.row("D", math.inf), skipped_sim="simulated"))
        self.assertEqual([(case["name"], case["status"], case["reason"], case["check"]) for case in report["cases"]],
                         [("A", "failed", "wrong result before timing", "failed"), ("B", "skipped", "no GPU", None),
                          ("C", "skipped", "too large", None), ("D", "failed", "no sample is a number", None),
                          ("sim", "skipped", "simulated", None)])
        self.assertEqual(schema.errors(report, SCHEMA), [])

    def test_BEN_01_unescaped_and_cut_text_is_an_error_that_says_where(self):
        whole = made.text(made.google(made.row("A", 1), made.row("B", 2)))
        for text in (whole.replace('"secret"', '"se"cret"'), whole[:-20], "", "[1, 2]", '{"context": {}}',
                     '{"context": 1, "benchmarks": []}'):
            with self.assertRaisesRegex(shell.Failure, "out.json: is not"):
                google_benchmark.parse(text, "out.json")
        for rows in (["x"], [{"time": 1}], [{"name": "A", "real_time": 1, "time_unit": "ns"}]):
            with self.assertRaisesRegex(shell.Failure, "row 1"):
                results.convert({"context": made.CONTEXT, "benchmarks": rows})

    def test_of_a_program_that_was_stopped_whole_rows_are_kept(self):
        whole = made.text(made.google(made.row("A", 1), made.row("B", 2)))
        first = whole.index('"name": "B"')
        self.assertEqual([row["name"] for row in google_benchmark.parse_cut(whole[:first])["benchmarks"]], ["A"])
        self.assertEqual([row["name"] for row in google_benchmark.parse_cut(whole)["benchmarks"]], ["A", "B"])
        for cut in ("", whole[:40], whole[:whole.index('"name": "A"')]):
            self.assertIsNone(google_benchmark.parse_cut(cut))
        for end in range(len(whole)):  # wherever it was cut
            google_benchmark.parse_cut(whole[:end])

    def test_a_case_without_all_its_repetitions_is_left_out(self):
        cases = {}
        google_benchmark.add_launch(cases, made.google(made.row("A", 1), made.row("A", 2), made.row("B", 3)), repetitions=2)
        self.assertEqual(list(cases), ["A"])

    def test_two_cases_of_one_name_are_refused(self):
        with self.assertRaisesRegex(shell.Failure, "two cases called A"):
            results.convert(made.google(made.row("A/min_time:1.000", 1), made.row("A/min_time:2.000", 1)))

    def test_work_of_an_iteration_from_rates(self):
        case = case_of(results.convert(made.google(
            made.row("A", 3, "ms", items_per_second=256 / 3e-3, bytes_per_second=1e12, flops=2 * 2048**3 / 3e-3, checked=1,
                     peak_bytes=4096))), "A")
        self.assertEqual(case["work"], {"items": 256, "bytes": 3 * 10**9, "flops": 2 * 2048**3})
        self.assertEqual((case["check"], case["memory"], case["counters"]), ("passed", {"peak_bytes": 4096}, {}))

    def test_a_time_of_0_is_none(self):
        case = case_of(results.convert(made.google(made.row("A", 0), made.row("A", 2, cpu_time=0))), "A")
        self.assertEqual((case["samples_s"], case["cpu_samples_s"], case["median_s"]), ([None, 2e-9], [0, 0], 2e-9))

    def test_launches_are_added(self):
        report = made.report({"A": [3, 1, 2, 6, 5, 4]}, launches=3)
        case = case_of(report, "A")
        self.assertEqual((case["launches"], case["samples_s"], case["median_s"]), ([2, 2, 2], [3, 1, 2, 6, 5, 4], 3.5))
        self.assertEqual(report["host"]["load"], [0.5, 0.5, 0.5])

    def test_another_processor_is_another_machine(self):
        names = {results.machine()}
        with mock.patch.object(results, "processor", lambda: "model : 17"):
            names.add(results.machine())
        with mock.patch.object(results.socket, "gethostname", lambda: "another"):
            names.add(results.machine())
        self.assertEqual(len(names), 3)

    def test_the_host_is_not_named(self):
        self.assertNotIn("secret", results.text_of(results.convert(made.google(made.row("A", 1)))))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "r.json"

    def refused(self, text, words):
        self.path.write_text(text, encoding="utf-8")
        with self.assertRaisesRegex(shell.Failure, words) as caught:
            results.load(self.path)
        self.assertEqual(caught.exception.status, 2)

    def test_written_is_read(self):
        report = made.report({"A/n:64": [1, 2, 3]})
        results.write(report, self.path)
        self.assertEqual(results.load(self.path), report)
        self.assertIn('"samples_s": [1.0, 2.0, 3.0]', self.path.read_text())

    def test_what_is_wrong_is_not_written(self):
        results.write(made.report({"A": [1]}), self.path)
        before = self.path.read_text()
        for change in ({"kind": "benchmrk"}, {"cases": {}}, {"machine": 3}, {"more": 1}):
            with self.assertRaises(shell.Failure):
                results.write({**made.report({"A": [1]}), **change}, self.path)
        with self.assertRaises(shell.Failure):
            results.write({**made.report({"A": [1]}), "started": "yesterday"}, self.path)
        nan = made.report({"A": [1]})
        nan["cases"][0]["counters"] = {"x": [math.nan]}
        with self.assertRaisesRegex(shell.Failure, "not finite"):
            results.write(nan, self.path)
        self.assertEqual(self.path.read_text(), before)

    def test_hostile_files(self):
        whole = results.text_of(made.report({"A": [1, 2, 3]}))
        for text, words in ((whole[:200], "is not JSON"), ("", "is not JSON"), ("[" * 100000, "is not JSON"),
                            (whole.replace("1.0, 2.0", "NaN, 2.0"), "NaN is not JSON"), ("[]", "expected object"),
                            (whole.replace("1.0, 2.0", "-1.0, 2.0"), r"samples_s\[0\]: -1.0 is below 0"),
                            (whole.replace("1.0, 2.0", "1e999, 2.0"), "not finite"),
                            (whole.replace("gradus-results-1", "gradus-results-2"), "expected 'gradus-results-1'"),
                            (json.dumps(made.google(made.row("A", 1))), "lacks 'schema'"),
                            (whole.replace('"timer": "wall"', '"timer": "sundial"'), r"cases\[0\].timer"),
                            (whole.replace('"wall"', '"wall", "surprise": 1'), "knows no such field")):
            self.refused(text, words)
        self.path.unlink()
        with self.assertRaisesRegex(shell.Failure, "No such file"):
            results.load(self.path)

    def test_committed_results_fit_the_schema(self):
        committed = sorted(made.ROOT.glob("results/*/reference/*.json"))
        self.assertTrue(committed)
        for path in committed:
            results.load(path)


class Schema(unittest.TestCase):
    def test_each_word(self):
        number = {"type": "number"}
        for fits, fails, rule in (
                (1, "1", number), (1, True, {"type": "integer"}), (1, 1.5, {"type": "integer"}),
                (None, 0, {"type": ["string", "null"]}), (1, True, {"const": 1}), (0, False, {"enum": [0, "a"]}),
                ("ab", "ba", {"pattern": "^a"}), (2, math.nan, {"minimum": 2}), ({"a": 1}, {}, {"required": ["a"]}),
                ({"a": 1}, {"a": ""}, {"properties": {"a": number}}), ({}, {"a": 1}, {"additionalProperties": False}),
                ({"a": 1}, {"a": ""}, {"additionalProperties": number}), ([1], [1, ""], {"items": number}),
                ([1], [], {"minItems": 1}), ("a", 1, {"oneOf": [{"type": "string"}, {"type": "null"}]}),
                (1, "", {"$ref": "#/$defs/n", "$defs": {"n": number}})):
            self.assertEqual(schema.errors(fits, rule), [], rule)
            self.assertEqual(len(schema.errors(fails, rule)), 1, rule)

    def test_a_word_that_it_does_not_know_is_not_passed_over(self):
        with self.assertRaisesRegex(AssertionError, "maximum"):
            schema.errors(1, {"maximum": 3})

    def test_agrees_with_the_jsonschema_package(self):
        try:
            from jsonschema import Draft202012Validator
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        Draft202012Validator.check_schema(SCHEMA)
        theirs = Draft202012Validator(SCHEMA)
        good = made.report({"A/n:64": [1, 2, 3]})
        for place, value in ((None, None), ("kind", "x"), ("cases", None), ("cases.0.samples_s", [-1]), ("cases.0.check", "maybe"),
                             ("cases.0.device", "gpu"), ("run.launches", 0), ("run.launches", 1.5), ("host.load", [None]),
                             ("cases.0.parameters", {"n": True}), ("cases.0.memory", {}), ("cases.0.quartiles_s", [1])):
            report = copy.deepcopy(good)
            if place:
                *path, last = [int(word) if word.isdigit() else word for word in place.split(".")]
                inner = report
                for word in path:
                    inner = inner[word]
                inner[last] = value
            self.assertEqual(not schema.errors(report, SCHEMA), theirs.is_valid(report), place)


if __name__ == "__main__":
    unittest.main()
