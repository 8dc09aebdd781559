# SPDX-License-Identifier: MIT
"""Markdown for a comment of a merge request: at most 60 lines, whatever the number of benchmarks.

The full table is one line of HTML: GitHub and GitLab both show it, and it costs one line only.
"""

from collections.abc import Iterable

from .. import text
from ..files import Bench, Result
from ..series import History

_ROWS = 25  # of the visible table
_ERRORS = 8
_CHARACTERS = 50_000  # of the full table; a comment of GitHub holds 65536
_HEAD = ("benchmark", "A", "B", "change", "interval", "q", "verdict")
_SYMBOLS = {"REGRESSION": "🔴", "FASTER": "🟢", "SAME": "⚪", "INCONCLUSIVE": "🟡",
            "DIFFERENT": "🔴"}


def _cells(b: Bench) -> tuple[str, ...]:
    verdict = b.verdict + (", other output" if b.same_output is False else "")
    return (f"<code>{text.markdown(b.bench)}</code>", text.duration(b.a_ns),
            text.duration(b.b_ns), text.percent(b.change), text.bounds(b),
            text.probability(b.q), verdict)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _full(head: Iterable[str], rows: list[tuple[str, ...]]) -> list[str]:
    """A collapsed table; what does not fit is counted."""
    if not rows:
        return []
    shown, size = [], 0
    for cells in rows:
        row = "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        size += len(row.encode())
        if size > _CHARACTERS:
            break
        shown.append(row)
    cut = f", the first {len(shown)}: a comment holds no more" if len(shown) < len(rows) else ""
    names = "".join(f"<th>{name}</th>" for name in head)
    return ["", f"<details><summary>All of {len(rows)}{cut}</summary>", "",
            f"<table><tr>{names}</tr>{''.join(shown)}</table>", "", "</details>"]


def of_result(result: Result) -> str:
    """The verdict, what changed, the means, the noise, and how to do it again."""
    lines = [f"### {_SYMBOLS[result.verdict]} {result.verdict}: "
             f"{text.markdown(result.b.name)} against {text.markdown(result.a.name)}", "",
             text.summary(result), ""]
    ranked = text.by_change(result)
    changed = [b for b in ranked if b.verdict in ("REGRESSION", "FASTER")
               or b.same_output is False]
    if changed:
        lines += [_row(_HEAD), _row(["---"] + ["---:"] * 5 + ["---"])]
        worst = sorted(changed, key=lambda b: (b.same_output is not False,
                                               b.verdict != "REGRESSION", -abs(b.change)))
        lines += [_row(_cells(b)) for b in worst[:_ROWS]]
        if len(worst) > _ROWS:
            lines += ["", f"and {len(worst) - _ROWS} more in the full table."]
        lines.append("")
    accepted = result.settings.get("accepted") or {}
    lines += [f"- accepted: <code>{text.markdown(pattern)}</code> "
              f"{text.markdown(text.shorten(why, 200))}"
              for pattern, why in list(accepted.items())[:_ERRORS]] + [""] * bool(accepted)
    for error in result.errors[:_ERRORS]:
        lines.append(f"- left out: <code>{text.markdown(error.bench)}</code> "
                     f"{text.markdown(text.shorten(f'{error.which} {error.why}', 200))}")
    if len(result.errors) > _ERRORS:
        lines.append(f"- and {len(result.errors) - _ERRORS} more left out")
    lines += [""] * bool(result.errors) + [text.geomean(result), "", text.noise(result)]
    lines += _full(_HEAD, [_cells(b) for b in ranked])
    command = text.markdown(text.shorten(result.command, 2000))
    lines += ["", f"Again: <code>{command}</code>"]
    return "\n".join(lines) + "\n"


def of_history(history: History) -> str:
    """The change points, the newest first; the last value of all."""
    found = history.changed()
    lines = [f"### {history.headline()}", "",
             f"Machine `{text.markdown(history.fingerprint)}`; p below {history.options.max_p:g}, "
             f"at least {text.plain_percent(history.options.min_change)}.", ""]
    if found:
        lines += [_row(("benchmark", "commit", "change", "p", "subject")),
                  _row(("---", "---", "---:", "---:", "---"))]
    for s, c in found[:_ROWS]:
        point = s.points[c.index]
        lines.append(_row((f"<code>{text.markdown(s.bench)}</code>",
                           text.markdown(point.commit[:12]), text.percent(c.change),
                           text.probability(c.p),
                           text.markdown(text.shorten(point.subject, 100)))))
    if len(found) > _ROWS:
        lines += ["", f"and {len(found) - _ROWS} more."]
    lines += [""] * bool(found) + [f"- {text.markdown(note)}" for note in history.notes]
    lines += _full(("benchmark", "points", "last", "course"), [
        (f"<code>{text.markdown(s.bench)}</code>", str(len(s.points)),
         text.duration(s.values[-1]), text.sparkline(s.values)) for s in history.series])
    return "\n".join(lines) + "\n"
