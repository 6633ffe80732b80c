"""learn: builds the lessons and runs them, one after the other."""
import re
import time

from . import build, packages, shell
from .shell import ROOT, Failure, say

SKIPPED = 77  # a program's exit status for "cannot run here"
DEVICE = re.compile(r"auto|cpu|mps|(sim|cuda)(:\d+)?")


def all_lessons():
    """{"03": "03_model_to_gpu", …} of the lessons that have a program."""
    folders = sorted((ROOT / "lessons").glob("[0-9][0-9]_*"))
    return {folder.name[:2]: folder.name for folder in folders if any(folder.glob("*.cpp"))}


def chosen(names):
    """The lessons that were asked for: by "3", "03" or "03_model_to_gpu"; all without names."""
    known = all_lessons()
    numbers = []
    for name in names:
        number = name.split("_")[0].zfill(2)
        if number not in known or ("_" in name and name != known[number]):
            raise Failure(f"no lesson '{name}'; there are {', '.join(known.values())}", 2)
        numbers.append(number)
    return [known[number] for number in sorted(set(numbers) or known)]


def programs_of(lesson):
    """The lesson's programs in order: main.cpp first, then its parts by name."""
    parts = sorted(path.stem for path in (ROOT / "lessons" / lesson).glob("*.cpp"))
    parts.sort(key=lambda part: part != "main")
    return [lesson if part == "main" else f"{lesson}_{part}" for part in parts]


def run_program(program, arguments):
    start = time.monotonic()
    status = shell.run([build.BUILD / "release" / "lessons" / program, *arguments])
    word = {0: "passed", SKIPPED: "skipped"}.get(status, f"failed (exit status {status})")
    return word, time.monotonic() - start


def learn(options):
    lessons = chosen(options.lessons)
    if not DEVICE.fullmatch(options.device):
        raise Failure(f"--device: expected auto, cpu, sim, sim:N, cuda or cuda:N, got '{options.device}'", 2)
    packages.ensure(packages.LEARN, "./gradus learn")
    if not build.cache("release"):
        say("The first build takes about 3 minutes on 2 cores.")
    build.configure("release", ["LESSONS"], "AUTO" if options.cuda or build.has_driver() else "OFF")
    build.build("release", [f"lesson_{lesson[:2]}" for lesson in lessons])
    arguments = ["--device", options.device, *(["--quick"] if options.quick else []), *options.rest]
    results = []
    for lesson in lessons:
        for program in programs_of(lesson):
            say(f"\n===== {program} =====")
            results.append((program, *run_program(program, arguments)))
    return summary(results)


def summary(results):
    say("\n===== summary =====")
    width = max(len(program) for program, _, _ in results)
    for program, word, seconds in results:
        say(f"{program:<{width}}  {word}, {shell.duration(seconds)}")
    failed = sum(word.startswith("failed") for _, word, _ in results)
    say(f"{len(results) - failed} of {len(results)} programs without failure. Read on in lessons/<name>/README.md.")
    return 1 if failed else 0
