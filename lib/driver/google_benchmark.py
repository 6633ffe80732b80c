"""What Google Benchmark wrote, read into the cases of a results file (results/schema.json)."""
import json
import math
import re
import statistics

from .shell import Failure

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# How a case was run, not what it is: not part of its name.
RUN = re.compile(r"/(real_time|manual_time|process_time|(min_time|min_warmup_time|repeats|iterations):[^/]+)(?=/|$)")
DEVICE = re.compile(r"(cpu|sim|cuda):?(\d*)(_SIMULATED)?")
NOT_COUNTERS = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
                "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
                "error_occurred", "error_message", "skipped", "skip_message", "items_per_second", "bytes_per_second",
                "flops", "checked", "peak_bytes"}


def number(text):
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def parse_name(raw):
    """What a name says: 'Matmul/float32/cpu/n:64/real_time' is Matmul of float32, n = 64, on the cpu, by the wall clock."""
    name = RUN.sub("", raw)
    family, *parts = name.split("/")
    case = {"name": name, "family": family, "parameters": {}, "device": "cpu", "simulated": "SIMULATED" in name,
            "timer": "manual" if "/manual_time" in raw else "wall"}
    for part in parts:
        device = DEVICE.fullmatch(part)
        key, colon, value = part.partition(":")
        if device:
            case["device"] = device[1] + (f":{device[2]}" if device[2] else "")
            case["simulated"] |= device[1] == "sim"
        elif colon:
            case["parameters"][key] = number(value)
        else:  # an argument without a name: by its place
            case["parameters"][f"arg{sum(k.startswith('arg') for k in case['parameters'])}"] = number(part)
    return case


def new_case(raw, status="measured", reason=None):
    return {**parse_name(raw), "status": status, "reason": reason, "launches": [], "samples_s": [], "cpu_samples_s": [],
            "median_s": None, "quartiles_s": None, "work": {"items": None, "bytes": None, "flops": None}, "counters": {},
            "invalid": {}, "share_of_ceiling": None, "check": None, "memory": None, "verdict": None}


def parse(text, source):
    """Google Benchmark's JSON; a Failure says where it is broken."""
    try:
        report = json.loads(text)  # its bare NaN and Infinity are read as numbers, and dropped by put()
        if not isinstance(report["context"], dict) or not isinstance(report["benchmarks"], list):
            raise TypeError("context and benchmarks are not an object and a list")
        return report
    except ValueError as error:
        raise Failure(f"{source}: is not JSON: {error}", 2) from None
    except (KeyError, TypeError) as error:
        raise Failure(f"{source}: is not what Google Benchmark writes: {error!r}", 2) from None


def parse_cut(text):
    """The same of a program that was stopped: the rows that are whole; None where it had not come to the first one."""
    end = text.rfind("\n    }")
    if '"benchmarks": [' not in text or end < text.index('"benchmarks": ['):
        return None
    try:
        return json.loads(text[:end] + "\n    }]}")
    except ValueError:
        return None


def put(case, field, values, value):
    """Appends a number; what is none becomes null, and case["invalid"] says what it was."""
    above = {"samples_s": 0, "cpu_samples_s": -5e-324}  # a time of 0 is none; a coarse clock of the CPU may say 0
    if isinstance(value, (int, float)) and math.isfinite(value) and value > above.get(field, -math.inf):
        values.append(value)
    else:
        case["invalid"][f"{field}[{len(values)}]"] = str(value)
        values.append(None)


def per_iteration(rates, seconds):
    """Work of one iteration from rates a second; whole where it is whole but for rounding. None without a rate."""
    products = [rate * time for rate, time in zip(rates, seconds)
                if isinstance(rate, (int, float)) and time is not None and math.isfinite(rate * time)]
    if not products:
        return None
    middle = statistics.median(products)
    whole = round(middle)
    return whole if abs(middle - whole) <= 1e-9 * abs(middle) else middle


def rows_of(report):
    """{raw name: [rows]} of the runs; rows of means, medians and deviations are none."""
    by_name = {}
    for at, row in enumerate(report["benchmarks"]):
        try:
            if row.get("run_type") == "aggregate":
                continue
            if "name" not in row:
                raise KeyError("name")
            if not (row.get("error_occurred") or row.get("skipped")):
                row["seconds"] = SECONDS[row["time_unit"]]
                row["real_time"], row["cpu_time"]  # pylint: disable=pointless-statement
        except (KeyError, AttributeError) as error:
            raise Failure(f"row {at + 1} of the benchmark's output has no usable {error}", 2) from None
        by_name.setdefault(row.get("run_name", row["name"]), []).append(row)
    return by_name


def add_launch(cases, report, repetitions=1):
    """Adds a launch to `cases` {name: case}; cases with fewer than `repetitions` rows (the program was stopped) are left out."""
    for key, reason in report["context"].items():
        if key.startswith("skipped_"):
            name = key.removeprefix("skipped_")
            cases[name] = new_case(name, "skipped", str(reason))
    launch = set()
    for raw, rows in rows_of(report).items():
        name = parse_name(raw)["name"]
        if name in launch:
            raise Failure(f"the benchmark has two cases called {name}", 2)
        launch.add(name)
        bad = next((row for row in rows if row.get("error_occurred") or row.get("skipped")), None)
        if bad is not None:
            add_bad(cases, raw, bad)
        elif len(rows) >= repetitions:
            add_rows(cases.setdefault(name, new_case(raw)), rows)


def add_bad(cases, raw, row):
    """A benchmark says SkipWithError for both: a message that begins with "skipped:" is a skip, others are failures."""
    message = str(row.get("error_message") or row.get("skip_message") or "no reason given")
    skipped = bool(row.get("skipped")) or message.startswith("skipped:")
    case = new_case(raw, "skipped" if skipped else "failed", message.removeprefix("skipped:").strip())
    case["check"] = "failed" if message.startswith("wrong") else None
    cases[case["name"]] = case


def add_rows(case, rows):
    if case["status"] != "measured":
        return  # an earlier launch failed: that is what is to be known of it
    for row in rows:
        for field, key in (("samples_s", "real_time"), ("cpu_samples_s", "cpu_time")):
            value = row[key]
            put(case, field, case[field], value * row["seconds"] if isinstance(value, (int, float)) else value)
        for key, value in row.items():
            if key not in NOT_COUNTERS and key != "seconds":
                put(case, f"counters.{key}", case["counters"].setdefault(key, []), value)
    case["launches"].append(len(rows))
    if rows[0].get("label"):
        case["label"] = str(rows[0]["label"])
    seconds = case["samples_s"][-len(rows):]
    for what, key in (("items", "items_per_second"), ("bytes", "bytes_per_second"), ("flops", "flops")):
        case["work"][what] = per_iteration([row.get(key) for row in rows], seconds)
    if all(row.get("checked") == 1 for row in rows):
        case["check"] = "passed"
    peaks = [row["peak_bytes"] for row in rows if "peak_bytes" in row]
    if peaks:
        case["memory"] = {"peak_bytes": max(peaks)}


def summarize(case):
    """Median and quartiles of the samples that are numbers."""
    samples = [sample for sample in case["samples_s"] if sample is not None]
    if not samples:
        if case["status"] == "measured":
            case.update(status="failed", reason="no sample is a number")
        return
    case["median_s"] = statistics.median(samples)
    quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
    case["quartiles_s"] = [quartiles[0], quartiles[2]]
