"""A page of HTML out of parts: what is put in is text and is escaped, unless it came from tag() itself."""
import html

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --mark: #b35900; }
@media (prefers-color-scheme: dark) { :root { --mark: #ffb265; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 1rem 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
td:first-child { font-family: ui-monospace, monospace; overflow-wrap: anywhere; min-width: 9rem; }
tr:hover { background: var(--soft); } .mark { color: var(--mark); font-weight: 600; } .note { font-style: italic; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; border-radius: 4px; } figcaption { font-size: .8rem; }
@media print { nav { display: none; } section { break-inside: avoid-page; } .scroll { overflow: visible; } }
"""
VOID = {"img", "meta"}


class Markup(str):
    """Text that is HTML already."""


def escaped(part):
    return part if isinstance(part, Markup) else html.escape(str(part))


def tag(name, /, *parts, cls=None, **attributes):
    """<name attributes>parts</name>"""
    attributes = {**({"class": cls} if cls else {}), **attributes}
    inside = "".join(f' {key}="{html.escape(str(value))}"' for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{inside}>")
    return Markup(f"<{name}{inside}>{''.join(map(escaped, parts))}</{name}>")


def table(head, rows):
    """A table that scrolls by itself where it is too wide. A head of empty words is left out."""
    top = [tag("thead", tag("tr", *(tag("th", word, scope="col") for word in head)))] if any(head) else []
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", *top, body), cls="scroll", tabindex=0)


def page(title, *parts):
    head = tag("head", tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
               tag("title", title), tag("style", Markup(STYLE)))
    return Markup("<!DOCTYPE html>\n") + tag("html", head, tag("body", *parts), lang="en") + "\n"
