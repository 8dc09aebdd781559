# SPDX-License-Identifier: MIT
"""One page of HTML with its style, its pictures and its few lines of script inside.

Nothing is loaded from elsewhere: the page's own policy forbids it. No name of a benchmark comes
near the script.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from .. import text
from ..files import Bench, Result
from ..series import History
from . import pictures

_PANELS = 24  # pictures of a history; each costs some 20 kB
_HERE = Path(__file__).parent


def _esc(value: str) -> str:
    return escape(text.printable(value))


def _themed(svg: str) -> str:
    """The colours of a picture as the variables of the page."""
    names = {color: f"var(--{name})" for name, color in pictures.COLORS.items()}
    pattern = re.compile("|".join(names))
    return pictures.in_tags(svg, lambda tag: pattern.sub(lambda match: names[match[0]], tag))


def _pictures(wide: str, narrow: str) -> str:
    return (f'<div class="wide">{_themed(wide)}</div>\n'
            f'<div class="narrow">{_themed(narrow)}</div>')


def _page(title: str, parts: Iterable[str]) -> str:
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = (_HERE / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en">', '<head>', '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{_esc(title)}</title>', f'<style>\n{style}</style>', '</head>', '<body>',
        *parts, f'<script>{script}</script>', '</body>', '</html>', ''])


def _cell(content: str, key: float | str | None = None, kind: str = "n", label: str = "") -> str:
    data = f' data-key="{escape(str(key))}"' if key is not None else ""
    title = f' data-label="{label}"' if label else ""
    return f'<td class="{kind}"{data}{title}>{content}</td>'


def _table(head: Sequence[tuple[str, str]], rows: Iterable[str]) -> str:
    names = "".join(f'<th class="{kind}" scope="col">{name}</th>' for name, kind in head)
    return (f'<table class="sort">\n<thead><tr>{names}</tr></thead>\n<tbody>\n'
            + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</tbody>\n</table>")


def _tiles(pairs: Iterable[tuple[str, str, str]]) -> str:
    items = "".join(f'<li class="{kind}"><b>{value}</b>{label}</li>'
                    for value, label, kind in pairs)
    return f'<ul class="tiles">{items}</ul>'


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{_esc(v)}</dd>" for k, v in pairs) + "</dl>"


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _bench_row(b: Bench) -> str:
    output = {True: "same", False: "DIFFERENT", None: "–"}[b.same_output]
    return "".join([
        _cell(_esc(b.bench), None, "name"),
        _cell(b.verdict, None, b.verdict),
        _cell(text.percent(b.change), b.change),
        _cell(text.bounds(b), b.ci[0] if b.ci else ""),
        _cell(text.duration(b.a_ns), b.a_ns, label="A"),
        _cell(text.duration(b.b_ns), b.b_ns, label="B"),
        _cell(text.probability(b.q), b.q, label="q"),
        _cell(text.plain_percent(round(b.margin, 5)), b.margin, label="margin"),
        _cell(str(b.n), b.n, label="n"),
        _cell(output, None, "DIFFERENT" if b.same_output is False else "muted", "output")])


def of_result(result: Result) -> str:
    """The page of a comparison."""
    title = f"{result.b.name} against {result.a.name}"
    parts = [f'<h1><span class="verdict {result.verdict}">{result.verdict}</span> '
             f'{_esc(title)}</h1>',
             _tiles([*((str(sum(b.verdict == v for b in result.benches)), v, v)
                       for v in text.VERDICTS),
                     (text.percent(result.geomean.change),
                      "geometric mean" + (f", {text.interval(result.geomean.ci)}"
                                          if result.geomean.ci else ""),
                      result.geomean.verdict)]),
             f"<p>{_esc(text.summary(result))}</p>", f"<p>{_esc(text.noise(result))}</p>"]
    different = [b for b in result.benches if b.same_output is False]
    if different:
        parts += [f'<h2 class="DIFFERENT">A and B compute different outputs in '
                  f'{text.plural(len(different), "benchmark")} (≠)</h2>',
                  _list(f"<code>{_esc(b.bench)}</code>" for b in different)]
    if result.errors:
        parts += ["<h2>Left out</h2>",
                  _list(f"<code>{_esc(e.bench)}</code> {_esc(e.which)} {_esc(e.why)}"
                        for e in result.errors)]
    head = [("benchmark", "name"), ("verdict", ""), ("change", "n"), ("interval", "n"),
            ("A", "n"), ("B", "n"), ("q", "n"), ("margin", "n"), ("n", "n"), ("output", "")]
    if result.benches:
        parts += ["<h2>Changes</h2>", _pictures(pictures.forest(result, "w"),
                                                pictures.forest(result, "n", narrow=True)),
                  "<h2>All benchmarks</h2>",
                  _table(head, (_bench_row(b) for b in text.by_change(result)))]
    parts += ["<h2>How it was measured</h2>",
              _facts([*((k, " ".join(filter(None, (s.name, s.version, s.commit, s.path))))
                        for k, s in (("A", result.a), ("B", result.b))),
                      ("machine", f"{result.machine.cpu}, "
                       f"{text.plural(result.machine.threads, 'thread')}, "
                       f"{result.machine.compiler}, kernel {result.machine.kernel}"),
                      ("fingerprint", result.machine.fingerprint), ("started", result.started),
                      *((_esc(k), str(v)) for k, v in sorted(result.settings.items()))]),
              "<p>Again:</p>", f"<pre><code>{_esc(result.command)}</code></pre>"]
    return _page(f"{result.verdict}: {title}", parts)


def of_history(found: History) -> str:
    """The page of a history: change points, pictures, the last value of all."""
    changed, shown = found.changed(), found.shown(_PANELS)
    parts = [f"<h1>{found.headline()}</h1>",
             f"<p>Machine <code>{_esc(found.fingerprint)}</code>, "
             f"{text.plural(len(found.commits), 'commit')}; p below {found.options.max_p:g}, at "
             f"least {text.plain_percent(found.options.min_change)}, windows of "
             f"{found.options.window} points.</p>"]
    if found.notes:
        parts.append(_list(_esc(note) for note in found.notes))
    if changed:
        head = [("benchmark", "name"), ("commit", ""), ("change", "n"), ("p", "n"),
                ("subject", "")]
        parts += ["<h2>Change points</h2>", _table(head, (
            _cell(_esc(s.bench), None, "name")
            + _cell(f"<code>{_esc(s.points[c.index].commit[:12])}</code>", None, "")
            + _cell(text.percent(c.change), c.change,
                    "n REGRESSION" if c.change > 0 else "n FASTER")
            + _cell(text.probability(c.p), c.p, label="p")
            + _cell(_esc(s.points[c.index].subject), None, "") for s, c in changed))]
    if not found.series:
        return _page("history", [*parts, "<p>No benchmark matches.</p>"])
    parts.append("<h2>Course</h2>")
    for i, s in enumerate(shown):
        parts.append(_pictures(pictures.history(found, [s], f"w{i}"),
                               pictures.history(found, [s], f"n{i}", narrow=True)))
    if len(shown) < len(found.series):
        parts.append(f'<p class="note">Pictures of {len(shown)} of {len(found.series)} '
                     "benchmarks, those with change points first; --bench chooses others.</p>")
    head = [("benchmark", "name"), ("points", "n"), ("first", "n"), ("last", "n"),
            ("course", "")]
    parts += ["<h2>All benchmarks</h2>", _table(head, (
        _cell(_esc(s.bench), None, "name") + _cell(str(len(s.points)), len(s.points), label="n")
        + _cell(text.duration(s.values[0]), s.values[0], label="first")
        + _cell(text.duration(s.values[-1]), s.values[-1], label="last")
        + _cell(text.sparkline(s.values), None, "") for s in found.series))]
    return _page("history", parts)
