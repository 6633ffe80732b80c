"""A page of HTML out of parts: what is put in is text and is escaped, unless it came from tag() itself."""
import html

# Should something hostile get past the escapes all the same, the browser neither runs nor fetches it.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --mark: #b35900; }
@media (prefers-color-scheme: dark) { :root { --mark: #ffb265; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 1rem 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
th, .short td { overflow-wrap: break-word; }
td:first-child { font-family: ui-monospace, monospace; overflow-wrap: anywhere; min-width: 9rem; }
tr:hover { background: var(--soft); } .mark { color: var(--mark); font-weight: 600; } .note { font-style: italic; }
.short td { white-space: nowrap; } .short td:first-child, .short td:last-child { white-space: normal; }
.short td:last-child { min-width: 12rem; }
figure { margin: 1rem 0; } img { max-width: 100%; min-width: 36rem; background: #fff; border-radius: 4px; }
figcaption { font-size: .8rem; }
@media print {
  :root { color-scheme: light; --mark: #b35900; } nav { display: none; } .scroll { overflow: visible; }
  img { min-width: 0; } figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } .short td { white-space: normal; }
}
"""
VOID = {"img", "meta"}


class Markup(str):
    """Text that is HTML already."""


def escaped(part):
    """Half a surrogate pair, which JSON and file names can hold, is no text: it becomes a question mark."""
    return part if isinstance(part, Markup) else html.escape(str(part).encode("utf-8", "replace").decode())


def tag(name, /, *parts, cls=None, **attributes):
    """<name attributes>parts</name>"""
    attributes = {**({"class": cls} if cls else {}), **attributes}
    inside = "".join(f' {key.replace("_", "-")}="{escaped(value)}"' for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{inside}>")
    return Markup(f"<{name}{inside}>{''.join(map(escaped, parts))}</{name}>")


def scroll(*parts, **attributes):
    """What is too wide for a phone moves by itself, not the page; tabindex: with the keyboard too."""
    return tag("div", *parts, cls="scroll", tabindex=0, **attributes)


def table(head, rows, cls=None):
    """A column that is empty in every row is left out, and so is a head of empty words."""
    rows = [tuple(row) for row in rows]
    filled = [at for at in range(len(head)) if any(row[at] != "" for row in rows)]
    top = [tag("thead", tag("tr", *(tag("th", head[at], scope="col") for at in filled)))] if any(head) else []
    body = tag("tbody", *(tag("tr", *(tag("td", row[at]) for at in filled)) for row in rows))
    return scroll(tag("table", *top, body, cls=cls))


def page(title, *parts):
    head = tag("head", tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
               tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
               tag("title", title), tag("style", Markup(STYLE)))
    return Markup("<!DOCTYPE html>\n") + tag("html", head, tag("body", *parts), lang="en") + "\n"
