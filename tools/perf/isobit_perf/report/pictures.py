# SPDX-License-Identifier: MIT
"""Pictures by Matplotlib, as SVG with text that stays text. The same input gives the same bytes.

Colours are the constants below, each a value of its own: the HTML page replaces them by
variables, for light and dark.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .. import text
from ..files import Bench, Result
from ..series import History, Series

COLORS = {"page": "#fefefe", "text": "#1f2329", "muted": "#59636f", "grid": "#d1d9e1",
          "band": "#e3e8ee", "REGRESSION": "#c0202b", "FASTER": "#14783c", "SAME": "#57606b",
          "INCONCLUSIVE": "#986801", "line": "#0960da"}
_MARKERS = {"REGRESSION": ">", "FASTER": "<", "SAME": "o", "INCONCLUSIVE": "D"}
_FONTS = ["DejaVu Sans", "Helvetica", "Arial"]
_LETTERS = 42  # of a line of a name above its interval
PANELS = 12  # of a picture of the history


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Settings for one picture; salt makes the names of its parts its own."""
    c = COLORS
    with matplotlib.rc_context({
            "svg.fonttype": "none", "svg.hashsalt": salt, "text.parse_math": False,
            "font.family": "sans-serif", "font.sans-serif": _FONTS, "font.size": 9.0,
            "axes.unicode_minus": True, "axes.edgecolor": c["grid"],
            "axes.labelcolor": c["muted"], "text.color": c["text"],
            "xtick.color": c["muted"], "ytick.color": c["muted"],
            "figure.facecolor": c["page"], "axes.facecolor": c["page"],
            "axes.spines.top": False, "axes.spines.right": False}):
        yield


def in_tags(svg: str, change: Callable[[str], str]) -> str:
    """Changes the tags, and leaves the text between them, which is names, as it is."""
    return re.sub("<[^>]*>", lambda match: change(match[0]), svg)


def _svg(figure: Figure, salt: str, title: str) -> str:
    """The SVG element alone, its identifiers with the salt in front."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # the browser has the glyphs
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, count=1, flags=re.DOTALL)
    svg = in_tags(svg, lambda tag: re.sub(r'(\sid="|"#|url\(#)', rf"\g<1>{salt}-", tag))
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)


def _limit(benches: list[Bench], delta: float) -> float:
    """Half the width of the axis: a few far outliers shall not flatten all others."""
    ends = sorted(max(abs(e) for e in (*(b.ci or ()), b.change)) for b in benches) or [0.0]
    most = ends[int(0.9 * (len(ends) - 1))]
    wide = max(5 * most, 10 * delta)
    return float(max(1.15 * (ends[-1] if ends[-1] <= wide else most), 2 * delta, 0.005))


def forest(result: Result, salt: str, narrow: bool = False) -> str:
    """The change of each benchmark with its interval and its margin, the slowest on top.

    Narrow has the names above the intervals, for a telephone.
    """
    benches = text.by_change(result)
    delta = result.settings.get("delta")
    delta = min(float(delta), 1.0) if isinstance(delta, int | float) else 0.02
    limit = _limit(benches, delta)
    long = any(len(text.printable(b.bench)) > _LETTERS for b in benches)
    width, step = (3.7, 0.5 if long else 0.4) if narrow else (9.6, 0.235)
    above, below = 0.55, 1.2 if narrow else 0.85
    height = max(len(benches), 1) * step + below + above
    with _style(salt):
        figure = Figure(figsize=(width, height))
        left, right = (0.12, 0.12) if narrow else (4.6, 0.95)
        ax = figure.add_axes((left / width, below / height, (width - left - right) / width,
                              1 - (below + above) / height))
        _rows(ax, benches, limit, narrow)
        ax.axvline(0, color=COLORS["muted"], linewidth=0.8, zorder=1)
        for x in (-delta, delta):
            ax.axvline(x, color=COLORS["muted"], linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
        ax.set_xlim(-limit, limit)
        ax.set_ylim(len(benches) - (0.5 if benches else -0.5), -0.8 if narrow else -0.5)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x * 100:+.3g} %" if x else "0"))
        ax.xaxis.set_major_locator(MaxNLocator(5 if narrow else 9, prune="both"))
        ax.grid(axis="x", color=COLORS["grid"], linewidth=0.5)
        ax.set_axisbelow(True)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", labeltop=True, top=True, labelsize=8)
        ax.set_title("faster ←  change of B against A  → slower", fontsize=9,
                     color=COLORS["muted"], pad=6)
        figure.text(0.03 if narrow else 0.6, 0.08 / height,
                    "\n".join(_parameters(result, narrow)), fontsize=7.2, va="bottom",
                    ha="left" if narrow else "center",
                    color=COLORS["muted"], linespacing=1.5)
        return _svg(figure, salt, "change of each benchmark with its interval")


def _parameters(result: Result, narrow: bool) -> list[str]:
    parts = [f"margin {text.setting(result, 'delta')} (dashed) or the benchmark's noise (band)",
             f"false discoveries {text.setting(result, 'fdr')}, "
             f"intervals {text.setting(result, 'confidence')}",
             f"{text.plural(result.processes, 'process')}, seed {result.seed}, "
             f"machine {text.shorten(text.printable(result.machine.fingerprint), 20)}"]
    marks = "▶ regression  ◀ faster  ● same  ◇ inconclusive  ≠ other output"
    return [*parts, marks] if narrow else [f"{parts[0]}, {parts[1]}", parts[2], marks]


def _rows(ax: Axes, benches: list[Bench], limit: float, narrow: bool) -> None:
    """Margins, intervals, marks and labels; what lies outside of the axis gets an arrow."""
    for y, b in enumerate(benches):
        margin = min(b.margin, limit)
        ax.barh(y, 2 * margin, left=-margin, height=0.3 if narrow else 0.72,
                color=COLORS["band"], zorder=0)
        color = COLORS[b.verdict]
        low, high = (max(-limit, min(limit, e)) for e in b.ci or (b.change, b.change))
        ax.plot([low, high], [y, y], color=color, linewidth=1.6, solid_capstyle="butt", zorder=2)
        inside = abs(b.change) <= limit
        ax.plot([b.change if inside else limit * (1 if b.change > 0 else -1)], [y],
                marker=_MARKERS[b.verdict] if inside else (">" if b.change > 0 else "<"),
                markersize=4.5 if inside else 8, color=color, clip_on=False, zorder=3,
                markerfacecolor=color if b.verdict != "INCONCLUSIVE" else COLORS["page"])
        name, value = text.printable(b.bench), text.percent(b.change)
        if b.same_output is False:
            name = "≠ " + name
        if narrow:
            name = text.shorten(name, 2 * _LETTERS)
            name = "\n".join(filter(None, (name[:_LETTERS], name[_LETTERS:])))
            for x, label, side, ink in ((-limit, name, "left", COLORS["text"]),
                                        (limit, value, "right", color)):
                ax.text(x, y - 0.24, label, fontsize=7.2, va="bottom", ha=side, color=ink,
                        linespacing=1.1, zorder=4,
                        bbox={"facecolor": COLORS["page"], "edgecolor": "none", "pad": 0.5})
        else:
            ax.text(1.035, y, value, transform=ax.get_yaxis_transform(), fontsize=8.5,
                    va="center", color=color)
    if narrow:
        ax.set_yticks([])
    else:
        names = [("≠ " if b.same_output is False else "") + text.printable(b.bench)
                 for b in benches]
        ax.set_yticks(range(len(benches)), [text.shorten(n, 64) for n in names], fontsize=8,
                      color=COLORS["text"])
    if not benches:
        ax.text(0.5, 0.5, "no benchmark", transform=ax.transAxes, ha="center", va="center")


def _history_panel(ax: Axes, history: History, series: Series, narrow: bool) -> None:
    divisor, unit = text.unit_of(max(series.values))
    y = [value / divisor for value in series.values]
    x = list(range(len(y)))
    band = [(i, p.ci) for i, p in enumerate(series.points) if p.ci]
    if band:
        ax.fill_between([i for i, _ in band], [ci[0] / divisor for _, ci in band],
                        [ci[1] / divisor for _, ci in band], color=COLORS["band"], zorder=1,
                        linewidth=0)
    ax.plot(x, y, color=COLORS["line"], linewidth=1.2, marker="o", markersize=2.5, zorder=2)
    low, high = min(y), max(y)
    edges = [e / divisor for _, ci in band for e in ci]
    low, high = min([low, *edges]), max([high, *edges])
    room = max(high - low, 0.04 * high)
    ax.set_ylim((low + high) / 2 - 0.62 * room, (low + high) / 2 + 0.85 * room)
    ax.set_xlim(-0.5, max(len(x) - 0.5, 0.5))
    for i, c in enumerate(series.changes):
        color = COLORS["REGRESSION" if c.change > 0 else "FASTER"]
        ax.axvline(c.index - 0.5, color=color, linewidth=1, linestyle=(0, (3, 2)), zorder=1)
        left = c.index > len(x) / 2
        label = f"{series.points[c.index].commit[:9]} {text.percent(c.change, 1)}"
        ax.annotate(text.printable(label), (c.index - 0.5, 1),
                    xytext=(-3 if left else 3, -3 - 9 * (i % 3)),  # neighbours do not collide
                    xycoords=ax.get_xaxis_transform(), textcoords="offset points",
                    ha="right" if left else "left", va="top", fontsize=7.5, color=color)
    every = MaxNLocator(3 if narrow else 8, integer=True).tick_values(0, max(len(x) - 1, 1))
    ticks = [int(t) for t in every if 0 <= t < len(x)]
    ax.set_xticks(ticks, [text.printable(series.points[t].commit[:9]) for t in ticks],
                  fontsize=7.5)
    ax.tick_params(axis="y", labelsize=8)
    ax.annotate(unit, (0, 1), xytext=(-4, 6), xycoords="axes fraction", fontsize=8,
                textcoords="offset points", ha="right", color=COLORS["muted"])
    ax.grid(axis="y", color=COLORS["grid"], linewidth=0.5)
    ax.set_axisbelow(True)
    name = text.shorten(text.printable(series.bench), 42 if narrow else 90)
    ax.set_title(name, loc="left",
                 fontsize=8 if narrow else 9)
    o = history.options
    parts = [f"{text.plural(len(x), 'commit')}, median and interval",
             f"machine {text.shorten(history.fingerprint, 20)}",
             f"change points: p < {o.max_p:g}, at least {text.plain_percent(o.min_change)}, "
             f"windows of {o.window}" if history.searched else "change points not searched"]
    ax.annotate(("\n" if narrow else "; ").join(parts), (0, 0), xytext=(0, -22),
                xycoords="axes fraction", textcoords="offset points", va="top", fontsize=7,
                color=COLORS["muted"], linespacing=1.4)


def history(found: History, chosen: list[Series], salt: str, narrow: bool = False) -> str:
    """Panels, one for each series: the line, its band, and the change points."""
    width, each = (3.7, 2.45) if narrow else (9.6, 2.3)
    height = each * max(len(chosen), 1)
    left, right, above, below = 0.62, 0.12, 0.32, 0.87 if narrow else 0.6
    with _style(salt):
        figure = Figure(figsize=(width, height))
        for i, series in enumerate(chosen):
            box: Any = (left / width, 1 - ((i + 1) * each - below) / height,
                        1 - (left + right) / width, (each - above - below) / height)
            _history_panel(figure.add_axes(box), found, series, narrow)
        if not chosen:
            figure.text(0.5, 0.5, "no benchmark", ha="center", va="center")
        return _svg(figure, salt, "course of the times by commit")


def _file(svg: str) -> str:
    return '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n' + svg


def file_of_result(result: Result) -> str:
    """A file of its own: fixed colours on the colour of the page."""
    return _file(forest(result, "forest"))


def file_of_history(found: History) -> str:
    """As file_of_result; the series that changed first, not all of many."""
    return _file(history(found, found.shown(PANELS), "history"))
