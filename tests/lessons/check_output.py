#!/usr/bin/env python3
"""Compares a lesson's output with its expected/*.txt. The format is described in README.md beside this file.

    check_output.py --programs DIR --save OUT EXPECTED     run the program and compare; the output is kept in OUT
    check_output.py --altered OUT EXPECTED                 alter the kept output and see each alteration refused
"""
import argparse
import math
import operator
import pathlib
import re
import shlex
import subprocess
import sys

SKIPPED = 77
NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
NAME = r"[A-Za-z_]\w*"
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
# A regular expression that matches all of these accepts any word, so it checks nothing.
PROBES = ("qzx", "-17.25e3", "~!%")


class BadFile(Exception):
    """The expected file itself is wrong."""


class Mismatch(Exception):
    """The output is not what the file says."""


def to_float(text):
    return float(text.replace(",", ""))


class Literal:
    def __init__(self, text):
        self.text, self.pattern = text, re.escape(text)


class Regex:
    def __init__(self, text):
        try:
            compiled = re.compile(text)
        except re.error as error:
            raise BadFile(f"{{{{{text}}}}}: {error}") from None
        if all(compiled.fullmatch(probe) for probe in PROBES):
            raise BadFile(f"{{{{{text}}}}} matches anything: say what is expected")
        self.pattern = f"(?:{text})"


class Number:
    """<name: 0.9 ± 0.1>, <0.9 ± 5%>, <>= 80> or <name: *>."""

    TOKEN = re.compile(rf"<(?:({NAME}): *)?(?:({NUMBER}) *(?:±|\+-) *({NUMBER}) *(%?)|([<>]=?) *({NUMBER})|(\*))>")

    def __init__(self, match):
        self.name, centre, tolerance, percent, self.compare, bound, self.any = match.groups()
        self.written = match.group()
        self.two_sided = centre is not None
        if self.two_sided:
            self.centre = to_float(centre)
            self.tolerance = to_float(tolerance) * (abs(self.centre) / 100 if percent else 1)
            if not (math.isfinite(self.centre) and 0 <= self.tolerance < math.inf):
                raise BadFile(f"{self.written}: centre and tolerance must be finite, the tolerance not negative")
        elif bound:
            self.bound = to_float(bound)
        elif not self.name:
            raise BadFile("<*> without a name checks nothing")

    def accepts(self, text):
        value = to_float(text)
        if self.two_sided:  # written so that nan fails; the slack is for decimal fractions such as 0.90 + 0.02
            return abs(value - self.centre) <= self.tolerance * (1 + 1e-9) + 1e-12 * abs(self.centre)
        return COMPARE[self.compare](value, self.bound) if self.compare else math.isfinite(value)

    def refused_values(self):
        """Texts that accepts() must refuse."""
        if self.two_sided:
            step = 1.5 * self.tolerance + max(1e-6 * abs(self.centre), 1e-9)
            return [f"{self.centre + step:.12g}", f"{self.centre - step:.12g}", "nan"]
        if self.compare:
            beyond = self.bound + (1 if "<" in self.compare else -1) * (abs(self.bound) + 1)
            return [f"{beyond:.12g}", "nan"]
        return ["nan"]


class Line:
    """One expected line: literal text, regular expressions and numbers."""

    TOKEN = re.compile(r"\{\{.*?\}\}(?!\})|" + Number.TOKEN.pattern)
    LOOKS_LIKE_NUMBER = re.compile(r"<[^<>]*(?:±|\+-)[^<>]*>")

    def __init__(self, text, at):
        self.text, self.at, self.tokens = text, at, []
        end = 0
        for match in self.TOKEN.finditer(text):
            self._literal(text[end:match.start()])
            token = match.group()
            self.tokens.append(Regex(token[2:-2]) if token.startswith("{{")
                               else Number(Number.TOKEN.fullmatch(token)))
            end = match.end()
        self._literal(text[end:])
        self.numbers = [token for token in self.tokens if isinstance(token, Number)]
        for i, number in enumerate(self.numbers):  # by name, since a regular expression may have groups of its own
            number.group = f"number_{i}"
            number.pattern = f"(?P<{number.group}>{NUMBER})"
        self.pattern = re.compile("".join(token.pattern for token in self.tokens))

    def _literal(self, text):
        if "{{" in text or self.LOOKS_LIKE_NUMBER.search(text):
            raise BadFile(f"not understood: {text.strip()}")
        if text:
            self.tokens.append(Literal(text))

    def match(self, output, values):
        found = self.pattern.fullmatch(output)
        if not found:
            raise Mismatch("expected another text")
        for number in self.numbers:
            text = found.group(number.group)
            if not number.accepts(text):
                raise Mismatch(f"{text} is not {number.written}")
            if number.name:
                values[number.name] = to_float(text)


class Direction:
    """@ a < b, @ 2 * a <= b < c."""

    SIDE = re.compile(rf"(?:({NUMBER}) *\* *)?({NAME})|({NUMBER})")

    def __init__(self, text, at, known):
        self.text, self.at = text, at
        parts = re.split(r"\s*(<=|>=|==|<|>)\s*", text[1:].strip())
        self.sides = [self.SIDE.fullmatch(side) for side in parts[0::2]]
        self.compares = [COMPARE[symbol] for symbol in parts[1::2]]
        if not self.compares or not all(self.sides):
            raise BadFile(f"not a comparison: {text}")
        self.names = {side.group(2) for side in self.sides if side.group(2)}
        unknown = self.names - known
        if unknown or not self.names:
            raise BadFile(f"{text}: no number was named {', '.join(sorted(unknown)) or 'in it'} above")

    def check(self, values):
        numbers = [to_float(side.group(3)) if side.group(3) else
                   to_float(side.group(1) or "1") * values[side.group(2)] for side in self.sides]
        for compare, left, right in zip(self.compares, numbers, numbers[1:]):
            if not compare(left, right):
                raise Mismatch(f"{self.text[1:].strip()} does not hold: " +
                               ", ".join(f"{name} = {values[name]:g}" for name in sorted(self.names)))


class Expected:
    """An expected file: header fields and body."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.runs, self.program, self.exit, self.timeout = [], self.path.parent.parent.name, 0, 300
        self.unless = None
        lines = self.path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        start = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        for line in lines[:start]:
            self._header(line)
        self.body, known, used = [], set(), set()
        for at, text in enumerate(lines[start:], start + 1):
            try:
                entry = Direction(text, at, known) if text.startswith("@") else Line(text.rstrip(), at)
            except BadFile as error:
                raise BadFile(f"{self.path}:{at}: {error}") from None
            self.body.append(entry)
            used |= getattr(entry, "names", set())
            known |= {number.name for number in getattr(entry, "numbers", []) if number.name}
        self.runs = self.runs or [[]]
        self._check_strength(used)

    def _header(self, line):
        field = re.fullmatch(r"# (run|program|exit|timeout|unless): *(.*)", line)
        if not field:
            return
        key, value = field.groups()
        if key == "run":
            self.runs.append(shlex.split(value))
        else:
            setattr(self, key, value if key in ("program", "unless") else int(value))

    def _check_strength(self, used):
        numbers = [number for entry in self.body for number in getattr(entry, "numbers", [])]
        if self.exit == 0 and not any(number.two_sided for number in numbers):
            raise BadFile(f"{self.path}: no number with a two-sided tolerance, such as <0.90 ± 0.02>")
        for number in numbers:
            if number.any and number.name not in used:
                raise BadFile(f"{self.path}: {number.written} is used by no @ line, so it checks nothing")

    def check(self, output):
        """Raises Mismatch, naming the first line that differs."""
        lines = [line.rstrip() for line in output.rstrip("\n").split("\n")]
        values, at = {}, 0
        for entry in self.body:
            try:
                if isinstance(entry, Direction):
                    entry.check(values)
                    continue
                if at == len(lines):
                    raise Mismatch("the output ends here")
                entry.match(lines[at], values)
            except Mismatch as error:
                got = lines[at] if at < len(lines) and isinstance(entry, Line) else ""
                raise Mismatch(f"{self.path}:{entry.at}: {error}\n  expected: {entry.text}\n"
                               f"  output:   {got}") from None
            at += 1
        if at < len(lines):
            raise Mismatch(f"{self.path}: a line more than expected\n  output:   {lines[at]}")


def alterations(expected, output):
    """Yields (what was done, altered output); check() must refuse each."""
    lines = [line.rstrip() for line in output.rstrip("\n").split("\n")]

    def with_line(at, text):
        return "\n".join(lines[:at] + ([text] if text is not None else []) + lines[at + 1:])

    yield "an extra line at the end", "\n".join(lines + ["something else"])
    for at, entry in enumerate(entry for entry in expected.body if isinstance(entry, Line)):
        where = f"line {at + 1} ({entry.text})"
        yield f"{where} left out", with_line(at, None)
        yield f"{where} with other text", with_line(at, lines[at] + " something else")
        found = entry.pattern.fullmatch(lines[at])
        for number in entry.numbers:
            start, end = found.span(number.group)
            for value in number.refused_values():
                yield f"{where} with {value}", with_line(at, lines[at][:start] + value + lines[at][end:])


def check_altered(expected, output):
    expected.check(output)
    count = 0
    for what, altered in alterations(expected, output):
        count += 1
        try:
            expected.check(altered)
        except Mismatch:
            continue
        raise Mismatch(f"{expected.path}: accepted the output with {what}")
    return count


def run_program(expected, programs, arguments):
    command = [str(pathlib.Path(programs) / expected.program), *arguments]
    print("$", shlex.join(command), flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if expected.exit else None,
                            text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=expected.timeout)
    print(result.stdout, end="", flush=True)
    if result.returncode == SKIPPED and expected.exit != SKIPPED:
        sys.exit(SKIPPED)
    if result.returncode != expected.exit:
        raise Mismatch(f"{expected.program}: exit status {result.returncode}, expected {expected.exit}")
    return result.stdout


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("expected")
    parser.add_argument("--programs", help="the folder with the lessons' programs")
    parser.add_argument("--save", help="keep the output in this file")
    parser.add_argument("--altered", help="a kept output to alter")
    options = parser.parse_args(arguments)
    try:
        expected = Expected(options.expected)
        if expected.unless and pathlib.Path(expected.unless).exists():
            print(f"skipped: {expected.unless} is there")
            return SKIPPED
        if options.altered:
            output = pathlib.Path(options.altered).read_text(encoding="utf-8")
            print(f"{check_altered(expected, output)} alterations refused")
            return 0
        for run in expected.runs:
            output = run_program(expected, options.programs, run)
            if options.save:
                pathlib.Path(options.save).write_text(output, encoding="utf-8")
            expected.check(output)
    except (BadFile, Mismatch) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired as error:
        print(f"{options.expected}: no end after {error.timeout} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
