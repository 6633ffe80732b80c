#!/usr/bin/env python3
"""Ceilings, verdicts and speed-ups. Each rule is shown two made measurements that must give opposite verdicts."""
import json
import pathlib
import tempfile
import unittest

import made
from driver import ceilings, conclusions, results, schema, speedups, verdicts

LESSON_1 = results.convert(made.google(
    made.row("Copy/cpu/threads:2/real_time", 1, "s", bytes_per_second=20e9),
    made.row("Triad/cpu/threads:2/real_time", 1, "s", bytes_per_second=10e9),
    made.row("Matmul/float32/cpu/threads:2/real_time", 1, "s", flops=100e9),
    made.row("Matmul/bfloat16/cpu/threads:2/real_time", 1, "s", flops=200e9),
    made.row("TensorCopy/cuda0/threads:0/real_time", 1, "s", bytes_per_second=4e12), executable="01_env_check_bench"))
LESSON_2 = results.convert(made.google(
    made.row("SmallestOp/cpu/real_time", 1, "us"), made.row("SmallestOp/cuda/real_time", 5, "us"),
    made.row("HostToDevice_pageable/cuda/bytes:1024/real_time", 10, "us", bytes_per_second=1024 / 10e-6),
    made.row("HostToDevice_pageable/cuda/bytes:1048576/real_time", 100, "us", bytes_per_second=1048576 / 100e-6),
    made.row("HostToDevice_pinned/cuda/bytes:1048576/real_time", 50, "us", bytes_per_second=1048576 / 50e-6),
    executable="02_device_transfer_bench"))
KNOWN = ceilings.limits([LESSON_1, LESSON_2])


def case_of(row, known=KNOWN):
    """The one case of a report that has been concluded."""
    report = results.new_report(made.CONTEXT, None, {})
    results.add_launch(report, made.google(row))
    conclusions.draw(report, known)
    return report["cases"][0]


class Ceilings(unittest.TestCase):
    def share(self, row, known=KNOWN):
        return case_of(row, known)["share_of_ceiling"]

    def test_share_of_the_same_device_and_threads(self):
        both = made.row("A/threads:2", 2, "s", bytes_per_second=5e9, flops=25e9)
        self.assertEqual(self.share(both), {"memory": {"of": "Copy/cpu/threads:2", "share": 0.25},
                                            "compute": {"of": "Matmul/float32/cpu/threads:2", "share": 0.25}})
        self.assertEqual(self.share(made.row("A", 2, "s", flops=50e9))["compute"]["share"], 0.5)  # 2 by default
        self.assertEqual(self.share(made.row("A/cuda/n:4", 1, "s", bytes_per_second=1e12))["memory"]["share"], 0.25)

    def test_a_matrix_product_is_compared_with_that_of_its_dtype(self):
        self.assertEqual(self.share(made.row("A/bfloat16", 1, "s", flops=50e9))["compute"]["share"], 0.25)
        self.assertIsNone(self.share(made.row("A/float64", 1, "s", flops=50e9)))

    def test_nothing_where_nothing_is_known(self):
        for row in (made.row("A/threads:1", 1, "s", flops=1e9), made.row("A/sim_SIMULATED", 1, "s", flops=1e9), made.row("A", 1)):
            self.assertIsNone(self.share(row))
        self.assertIsNone(self.share(made.row("A", 1, "s", flops=1e9), ceilings.limits([])))

    def test_other_programs_set_no_ceiling(self):
        other = results.convert(made.google(made.row("Copy/cpu/threads:2", 1, "s", bytes_per_second=20e9)))
        self.assertEqual(ceilings.limits([other, None]), ceilings.limits([]))

    def test_copies_at_the_rate_of_their_size(self):
        for copied, seconds in ((1024, 10e-6), (2048, 20e-6), (1 << 20, 100e-6), (1 << 24, 1600e-6)):
            case = case_of(made.row("A/cuda", 1, "s", copied_bytes=copied))
            self.assertAlmostEqual(ceilings.copy_seconds(case, KNOWN), seconds)
        self.assertEqual(ceilings.copy_seconds(case_of(made.row("A", 1, "s", copied_bytes=0)), KNOWN), 0)
        self.assertIsNone(ceilings.copy_seconds(case_of(made.row("A/cuda", 1, "s")), KNOWN))


class Verdicts(unittest.TestCase):
    def assert_opposite(self, yes, no, part):
        """Of two measurements that differ in time alone, one is bound by `part` and the other is not."""
        self.assertTrue(case_of(yes)["verdict"].startswith(f"{part}-bound"), case_of(yes)["verdict"])
        self.assertFalse(case_of(no)["verdict"].startswith(f"{part}-bound"), case_of(no)["verdict"])

    def test_launch(self):
        self.assert_opposite(made.row("Step", 40, "us", launches=30), made.row("Step", 100, "us", launches=30), "launch")
        self.assertEqual(case_of(made.row("Step", 40, "us", launches=30))["verdict"], "launch-bound: 75% starting operations")
        self.assert_opposite(made.row("Step/cuda", 200, "us", launches=30), made.row("Step/cuda", 400, "us", launches=30), "launch")

    def test_transfer(self):
        slow, fast = (made.row("A/cuda", time, "us", copied_bytes=1 << 20) for time in (400, 150))
        self.assert_opposite(fast, slow, "transfer")

    def test_memory(self):
        self.assert_opposite(made.row("A", 1, "s", bytes_per_second=15e9), made.row("A", 1, "s", bytes_per_second=5e9), "memory")

    def test_compute(self):
        self.assert_opposite(made.row("A", 1, "s", flops=80e9), made.row("A", 1, "s", flops=10e9), "compute")

    def test_loader(self):
        self.assert_opposite(made.row("Epoch", 1, "s", waiting_share=0.7), made.row("Epoch", 1, "s", waiting_share=0.2), "loader")

    def test_the_largest_part_decides(self):
        row = made.row("A", 100, "us", launches=60, flops=90e9, bytes_per_second=12e9)
        self.assertEqual(case_of(row)["verdict"], "compute-bound: 90% of the rate of a matrix product")
        self.assertEqual(case_of(row | {"flops": 1e9, "bytes_per_second": 1e9})["verdict"], "launch-bound: 60% starting operations")

    def test_none_of_them_gives_the_shares(self):
        row = made.row("A", 100, "us", launches=10, flops=20e9)
        self.assertEqual(case_of(row)["verdict"],
                         "bound by none of these: 10% starting operations, 20% of the rate of a matrix product")

    def test_what_is_not_known_is_said(self):
        self.assertEqual(case_of(made.row("A", 1, "s", launches=3), ceilings.limits([]))["verdict"], verdicts.UNKNOWN)
        self.assertEqual(case_of(made.row("A", 1, "s"))["verdict"], verdicts.UNKNOWN)
        self.assertIsNone(case_of(made.row("A", float("nan"), "s"))["verdict"])

    def test_a_counter_that_is_no_number_is_not_known(self):
        self.assertEqual(case_of(made.row("A", 1, "s", launches=float("nan"), waiting_share=float("inf")))["verdict"],
                         verdicts.UNKNOWN)


class BreakEven(unittest.TestCase):
    def test_between_two_sizes(self):
        # Half as fast at 64, twice as fast at 256: equal where the logarithms meet, at 128.
        self.assertAlmostEqual(speedups.break_even({64: 1 / 2, 256: 2}), 128)
        # Three times of four on the way: 64 * 4^(3/4).
        self.assertAlmostEqual(speedups.break_even({64: 1 / 8, 256: 2}), 64 * 4**0.75)

    def test_the_last_crossing_counts(self):
        self.assertAlmostEqual(speedups.break_even({1: 2, 2: 0.5, 4: 0.5, 16: 2}), 8)

    def test_never_always_and_nothing(self):
        self.assertIsNone(speedups.break_even({64: 2, 128: 0.5}))
        self.assertEqual(speedups.break_even({64: 2, 128: 2}), 64)
        self.assertIsNone(speedups.break_even({}))

    def test_in_words(self):
        self.assertEqual(speedups.break_even_in_words("n", {64: 1 / 2, 256: 2}), "break-even at n = 128")
        self.assertEqual(speedups.break_even_in_words("n", {64: 1 / 2, 128: 1 / 2}), "no break-even up to n = 128")
        self.assertEqual(speedups.break_even_in_words("n", {64: 2, 128: 2}), "pays at every n from 64 on")


class Speedups(unittest.TestCase):
    def series(self, seconds):
        """{kind: series} of {case: seconds}; where a kind has several series, the last."""
        report = made.report({name: [time] * 3 for name, time in seconds.items()})
        conclusions.draw(report, KNOWN)
        self.assertEqual(schema.errors(report, json.loads(results.SCHEMA.read_text(encoding="utf-8"))), [])
        return {series["kind"]: series for series in report["speedups"]}

    def test_a_device_over_the_cpu_by_size(self):
        found = self.series({"Matmul/cpu/n:64": 1, "Matmul/cpu/n:256": 8, "MatmulThereAndBack/cuda/n:64": 2,
                             "MatmulThereAndBack/cuda/n:256": 4, "MatmulThereAndBack/cuda/n:512": 4})
        self.assertEqual(list(found), ["device over cpu"])
        series = found["device over cpu"]
        self.assertEqual([(point["at"], point["ratio"], point["over"]) for point in series["points"]],
                         [(64, 0.5, "Matmul/cpu/n:64"), (256, 2, "Matmul/cpu/n:256")])
        self.assertAlmostEqual(series["break_even"], 128)
        self.assertEqual(series["verdict"], "MatmulThereAndBack/cuda/n:256: 2.00 times as fast as Matmul/cpu/n:256 [2.00, 2.00]; "
                         "break-even at n = 128")

    def test_the_line_says_what_bounds_the_faster_case(self):
        report = results.convert(made.google(made.row("A/workers:0", 4, "s"), made.row("A/workers:2", 2, "s", waiting_share=0.6)))
        conclusions.draw(report, KNOWN)
        self.assertEqual(report["speedups"][0]["verdict"], "A/workers:2: 2.00 times as fast as A/workers:0 [2.00, 2.00]; "
                         "loader-bound: 60% waiting for data")

    def test_the_cpu_competes_with_all_its_threads(self):
        found = self.series({"Forward/batch:8/threads:1": 4, "Forward/batch:8/threads:2": 2, "Forward/cuda/batch:8": 1})
        self.assertEqual(found["device over cpu"]["points"][0]["over"], "Forward/batch:8/threads:2")
        self.assertEqual(found["threads over one"]["points"][0]["ratio"], 2)

    def test_by_name_and_by_count(self):
        found = self.series({"CnnStep/threads:1": 2, "CnnStepRowMajor/threads:1": 3, "CnnStepFloor/threads:1": 1,
                             "Epoch/workers:0": 3, "Epoch/workers:2": 2, "H_pinned/cuda/bytes:8": 1, "H_pageable/cuda/bytes:8": 2})
        self.assertEqual({kind: series["points"][0]["ratio"] for kind, series in found.items()},
                         {"channels-last over row-major": 1.5, "beside its floor": 0.5, "workers over none": 1.5,
                          "pinned over pageable": 2})

    def test_the_interval_is_of_the_quartiles(self):
        report = made.report({"A/workers:0": [8, 10, 12, 10, 14], "A/workers:2": [4, 5, 6, 5, 10]}, launches=1)
        conclusions.draw(report, KNOWN)
        point = report["speedups"][0]["points"][0]
        self.assertEqual((point["ratio"], point["low"], point["high"]), (2, 10 / 6, 12 / 5))

    def test_a_case_without_a_time_is_no_side(self):
        self.assertEqual(self.series({"A/workers:0": float("nan"), "A/workers:2": 1}), {})


class Conclusions(unittest.TestCase):
    def test_lessons_1_and_2_of_the_same_run_are_what_counts(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            results.write(LESSON_1, folder / "01_env_check.json")
            results.write(LESSON_2, folder / "02_device_transfer.json")
            results.write(results.convert(made.google(made.row("A/threads:2", 1, "s", flops=80e9))), folder / "09_made.json")
            conclusions.conclude(folder)
            report = results.load(folder / "09_made.json")
            self.assertEqual(report["cases"][0]["verdict"], "compute-bound: 80% of the rate of a matrix product")
            self.assertEqual(conclusions.conclude(folder)[folder / "09_made.json"], report)  # once more changes nothing
            triad = next(case for case in results.load(folder / "01_env_check.json")["cases"] if case["family"] == "Triad")
            self.assertEqual(triad["share_of_ceiling"]["memory"]["share"], 0.5)  # the ceilings say their own


if __name__ == "__main__":
    unittest.main()
