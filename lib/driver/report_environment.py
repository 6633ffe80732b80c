"""The report's table of where and with what its files were measured. A folder may hold files of several runs, and `reference`
often does: what differs between them is shown as it is, with the files that it holds for."""
from . import page


def environment(reports):
    """reports: {path: results file}"""
    facts = {path.stem: facts_of(one) for path, one in reports.items()}
    parts = dict.fromkeys(key.split(": ")[0] for one in facts.values() for key in one)  # in order, each once
    keys = sorted(dict.fromkeys(key for one in facts.values() for key in one), key=lambda key: [*parts].index(key.split(": ")[0]))
    rows = [(key, spoken(key, {name: one[key] for name, one in facts.items() if key in one})) for key in keys]
    without = [path.stem for path, one in reports.items() if not one["environment"]]
    return page.table(["", ""], rows + [("environment not recorded", ", ".join(without))] * bool(without))


def facts_of(one):
    """{what: value}"""
    record = one["environment"] or {}
    cuda = mapping(record.get("cuda"))
    parts = {"host": {**one.get("host", {}), **mapping(record.get("host"))}, "gradus": mapping(record.get("gradus")),
             "build": one.get("build", {}), "peers": mapping(record.get("peers")),
             "cuda": {key: cuda[key] for key in ("usable", "built_with", "driver_release") if key in cuda},
             "library": {key: version for key, value in mapping(cuda.get("libraries")).items()
                         if (version := mapping(value).get("version")) is not None}}
    facts = {"machine": one["machine"], "measured": one["started"], "Gradus": revision(one)}
    facts |= {f"{part}: {key}": value for part, values in parts.items() for key, value in values.items()}
    devices = record.get("devices")
    return facts | dict(map(device, filter(mapping, devices if isinstance(devices, list) else [])))


def device(record):
    """What stays the same while it is used; a simulated one says so in its name."""
    rest = [f"{key} {in_words(key, value)}" for key, value in record.items()
            if key not in ("device", "name", "simulated", "memory_free") and value is not None]
    return f"device: {words(record.get('device'))}", ", ".join([words(record.get("name")), *rest])


def mapping(value):
    return value if isinstance(value, dict) else {}


def spoken(key, values):
    """values: {file: value}. One value of all files is said once, numbers as a range, others with their files."""
    texts = {}
    for name, value in values.items():
        texts.setdefault(in_words(key, value), []).append(name)
    if len(texts) == 1:
        return next(iter(texts))
    if key == "measured":
        return f"{min(texts)} to {max(texts)}"
    numbers = [number for value in values.values() for number in (value if isinstance(value, list) else [value])]
    if all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return f"{in_words(key, min(numbers))} to {in_words(key, max(numbers))}"
    return "; ".join(f"{text} ({', '.join(names)})" for text, names in texts.items())


def in_words(key, value):
    is_size = key.split(": ")[-1].startswith("memory_") and type(value) in (int, float)
    return f"{value / 2**30:.3g} GiB" if is_size else words(value)


def revision(one):
    suite = one["suite"]
    at = f" at {suite['revision']}" if suite["revision"] else ", revision not recorded"
    return f"{words(suite['version'])}{at}{' with changes' * bool(suite['dirty'])}"


def words(value):
    """A value of unknown kind in a cell."""
    if value is None or value == []:
        return "not recorded"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {words(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ("; " if any(isinstance(one, dict) for one in value) else ", ").join(map(words, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
