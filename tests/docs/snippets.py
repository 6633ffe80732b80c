#!/usr/bin/env python3
"""Keeps the code on documentation pages equal to the sources that run.

In a source:             // [snippet name]  ...  // [/snippet name]     (or # for Python, CMake and shell)
In a page (Markdown):    <!-- snippet: lib/gradus/ops/x.cpp#name -->
                         ```cpp
                         ...
                         ```
Without #name the whole file is meant. The block must be the lines between the markers, without common
indentation and without marker lines. Run without arguments to check every page, with --update to rewrite them.
"""

import argparse
import difflib
import pathlib
import re
import sys
import textwrap

REFERENCE = re.compile(r"^<!-- snippet: (?P<path>[^#\s]+)(?:#(?P<name>\S+))? -->$")
MARKER = re.compile(r"^\s*(?://|#)\s*\[(?P<end>/?)snippet (?P<name>[^\]]+)\]\s*$")
FENCE = re.compile(r"^```+\w*$")


class Problem(Exception):
    pass


def extract(source, name, label):
    """The lines of snippet `name` (of the whole file if it is None) in the text `source`."""
    inside, found, lines = name is None, name is None, []
    for line in source.splitlines():
        marker = MARKER.match(line)
        if not marker:
            if inside:
                lines.append(line)
        elif marker["name"] == name and not marker["end"]:
            if found:
                raise Problem(f"{label}: snippet '{name}' begins twice")
            inside = found = True
        elif marker["name"] == name:
            inside = False
    if not found:
        raise Problem(f"{label}: has no snippet '{name}'")
    if inside and name is not None:
        raise Problem(f"{label}: snippet '{name}' is not closed")
    return textwrap.dedent("\n".join(lines)).strip("\n").splitlines()


def read_snippet(root, reference):
    path = root / reference["path"]
    if not path.is_file():
        raise Problem(f"{reference['path']}: no such file")
    return extract(path.read_text(encoding="utf-8"), reference["name"], reference["path"])


def refresh(root, page):
    """The page's text with every snippet as its source has it, and how many there are."""
    lines, out, count, i = page.splitlines(), [], 0, 0
    while i < len(lines):
        out.append(lines[i])
        reference = REFERENCE.match(lines[i].strip())
        i += 1
        if not reference:
            if lines[i - 1].strip().startswith("<!-- snippet"):
                raise Problem(f"line {i}: expected <!-- snippet: path#name -->")
            continue
        count += 1
        if i == len(lines) or not FENCE.match(lines[i]):
            raise Problem(f"line {i}: a snippet is followed by a block in ``` fences")
        fence = re.match("`+", lines[i])[0]
        out.append(lines[i])
        out += read_snippet(root, reference)
        i += 1
        while i < len(lines) and lines[i] != fence:
            i += 1
        if i == len(lines):
            raise Problem(f"line {i}: the block is not closed")
    return "\n".join(out) + "\n", count


def pages(root):
    found = [root / "README.md", root / "CONTRIBUTING.md"]
    for folder in ("docs", "lessons"):
        found += sorted((root / folder).rglob("*.md"))
    return [p for p in found if p.is_file()]


def check_page(root, path, update):
    """Number of snippets in the page; raises Problem where it differs (or rewrites it)."""
    before = path.read_text(encoding="utf-8")
    after, count = refresh(root, before)
    if count == 0 or after == before:
        return count
    if update:
        path.write_text(after, encoding="utf-8")
        return count
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), "page", "sources", lineterm="", n=1)
    raise Problem("differs from its sources; run tests/docs/snippets.py --update\n" + "\n".join(diff))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--update", action="store_true", help="rewrite the pages from the sources")
    args = parser.parse_args()
    count, failed = 0, False
    for path in pages(args.root):
        try:
            count += check_page(args.root, path, args.update)
        except Problem as problem:
            print(f"{path.relative_to(args.root)}: {problem}", file=sys.stderr)
            failed = True
    print(f"{count} snippets")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
