"""Made results: what Google Benchmark would have written, and results files of it."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lib"))
from driver import results  # noqa: E402

CONTEXT = {"date": "2026-11-30T12:00:00+00:00", "host_name": "secret", "executable": "/somewhere/09_made_bench",
           "num_cpus": 2, "mhz_per_cpu": 2600, "cpu_scaling_enabled": False, "caches": [], "load_avg": [0.5, 0.4, 0.3],
           "library_build_type": "debug", "gradus_build_type": "Release", "gradus_threads": "2", "gradus_version": "0.1.0"}


def row(name, time, unit="ns", **more):
    return {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0, "threads": 1,
            "iterations": 10, "real_time": time, "cpu_time": time, "time_unit": unit, **more}


def aggregate(name, kind, time, unit="ns"):
    return {**row(f"{name}_{kind}", time, unit), "run_name": name, "run_type": "aggregate", "aggregate_name": kind}


def google(*rows, **context):
    return {"context": {**CONTEXT, **context}, "benchmarks": list(rows)}


def text(report):
    """As Google Benchmark 1.7 lays it out: a row's end is a line of its own."""
    rows = ",\n".join("    " + json.dumps(one, indent=6)[:-1] + "    }" for one in report["benchmarks"])
    return f'{{\n  "context": {json.dumps(report["context"])},\n  "benchmarks": [\n{rows}\n  ]\n}}\n'


def report(samples, launches=3, **context):
    """A results file of {raw name: [seconds]}, spread evenly over `launches`."""
    return of_rows({name: [{"real_time": one, "cpu_time": one, "time_unit": "s"} for one in times]
                    for name, times in samples.items()}, launches, **context)


def of_rows(rows_of, launches=3, **context):
    made = results.new_report(google(**context)["context"], None, {"launches": launches}, "0123abcd", "-O3", "made-machine")
    for launch in range(launches):
        rows = [row(name, 0, **{}) | one for name, many in rows_of.items()
                for one in many[launch * len(many) // launches:(launch + 1) * len(many) // launches]]
        results.add_launch(made, google(*rows, **context))
    return made


