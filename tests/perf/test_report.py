# SPDX-License-Identifier: MIT
"""report: every format, every escape, every size, and the files that are no result."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic
from isobit_perf import changepoints, cli, text
from synthetic import FINGERPRINT, MEAN_NAME, bench, result

FORMATS = ("md", "html", "svg", "csv", "junit", "gha", "bmf")
OF_HISTORY = tuple(f for f in FORMATS if f != "junit")
SHOWN = text.printable(MEAN_NAME)  # as a reader sees it
MEAN = result(
    [bench(MEAN_NAME, 0.05, "REGRESSION", same_output=False),
     bench("x" * 300, 3.4, "REGRESSION", ci=[2.0, 5.0], margin=0.3),
     bench("no/interval", 0.01, "INCONCLUSIVE", ci=None, q=1.0, noise=None, same_output=None),
     bench("faster", -0.1, "FASTER"), bench("same", 0.0, "SAME")],
    verdict="DIFFERENT", complete=False, command=f"isobit-perf ab --bench '{MEAN_NAME}'",
    geomean={"change": 0.01, "ci": None, "verdict": "INCONCLUSIVE"},
    a={"name": "<i>A</i>|", "commit": None, "path": "/tmp/" + "z" * 200, "version": ""},
    settings={"delta": "<b>", "fdr": None, "extra<": [1, "</script>"]},
    errors=[{"bench": MEAN_NAME, "which": "b", "why": "status <3>\n|", "failed": True},
            {"bench": "gone", "which": "", "why": "A lacks it"}])


def write(folder: Path, document: Any, formats: tuple[str, ...] = FORMATS,
          expected: int = 0) -> dict[str, str]:
    """All formats of a result; their texts."""
    file = synthetic.write_json(folder / "ab.json", document)
    options = [part for f in formats for part in (f"--{f}", str(folder / f"out.{f}"))]
    assert cli.main(["report", str(file), *options]) == expected
    return {f: (folder / f"out.{f}").read_text(encoding="utf-8")
            for f in formats if (folder / f"out.{f}").exists()}


def of_history(folder: Path, lines: list[dict[str, Any]], *more: str) -> dict[str, str]:
    """All formats of a history."""
    synthetic.write_lines(folder / "db" / f"{FINGERPRINT}.jsonl", lines)
    options = [part for f in OF_HISTORY for part in (f"--{f}", str(folder / f"out.{f}"))]
    assert cli.main(["report", "history", "--db", str(folder / "db"), "--repository",
                     str(folder), *options, *more]) == 0
    return {f: (folder / f"out.{f}").read_text(encoding="utf-8") for f in OF_HISTORY}


class Page(HTMLParser):
    """Checks that elements nest, and keeps texts, attributes and identifiers."""

    VOID = {"meta", "br"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def count(self, tag: str) -> int:
        return sum(t == tag for t, _ in self.tags)


def check_page(page: str) -> Page:
    """Nothing from elsewhere, one script, identifiers that are unique and referred to."""
    found = Page(page)
    assert found.count("script") == 1 and found.count("i") == found.count("link") == 0
    ids = [a["id"] for _, a in found.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    for tag, attributes in found.tags:
        for key, value in attributes.items():
            assert not key.startswith("on") and key not in ("src", "background"), (tag, key)
            if key.endswith("href"):
                assert value is not None and value[0] == "#" and value[1:] in ids
        for name in re.findall(r"url\(([^)]*)\)", attributes.get("clip-path") or ""):
            assert name[0] == "#" and name[1:] in ids
    assert "url(" not in re.sub(r"url\(#", "", page) and "@import" not in page
    policy = next(a["content"] for t, a in found.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none';")
    return found


def xmllint(content: str, folder: Path, *options: str) -> None:
    if not shutil.which("xmllint"):
        ET.fromstring(content.encode())
        return
    file = folder / "x.xml"
    file.write_text(content, encoding="utf-8")
    done = subprocess.run(["xmllint", "--noout", "--nonet", *options, str(file)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check_markdown(page: str) -> list[str]:
    """At most 60 lines, all rows of a table with as many cells as its head; the lines."""
    lines = page.split("\n")
    assert len(lines) <= 61 and len(page.encode()) < 65_536
    rows = [line for line in lines if line.startswith("|")]
    assert len({row.count("|") for row in rows}) <= 1
    return lines


@pytest.mark.parametrize("count", [0, 1, 40, 211])
def test_every_format_of_every_size(tmp_path: Path, count: int) -> None:
    document = result(synthetic.many(count), verdict="REGRESSION" if count else "INCONCLUSIVE")
    found = write(tmp_path, document)
    names = [b["bench"] for b in document["benches"]]
    check_markdown(found["md"])
    assert found["md"].count("<tr><td>") + found["md"].count("</tr><tr>") >= min(count, 1)
    page = check_page(found["html"])
    assert page.count("svg") == (2 if count else 0)
    assert sum("data-key" in a for t, a in page.tags if t == "td") == count * 7
    xmllint(found["svg"], tmp_path)
    xmllint(found["junit"], tmp_path, "--schema", str(Path(__file__).parent / "junit.xsd"))
    rows = list(csv.DictReader(io.StringIO(found["csv"])))
    assert [r["bench"] for r in rows] == names
    assert [float(r["change"]) for r in rows] == [b["change"] for b in document["benches"]]
    assert [e["name"] for e in json.loads(found["gha"])] == names
    assert list(json.loads(found["bmf"])) == names


def test_names_of_every_kind_are_escaped(tmp_path: Path) -> None:
    found = write(tmp_path, MEAN)
    lines = check_markdown(found["md"])
    for raw in ("<b>", "<i>", "*y*", "$x_1$", "`|"):
        assert raw not in found["md"]
    row = next(line for line in lines if line.startswith("| <code>a"))
    assert re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), row.split("code>")[1][:-2]) == SHOWN
    page = check_page(found["html"])
    assert page.count("b") == 5  # those of the numbers on top
    shown = "".join(page.text)
    assert shown.count(SHOWN) >= 5 and "<i>A</i>|" in shown
    root = ET.fromstring(found["junit"])
    cases = root.findall(".//testcase")
    assert [c.get("name") for c in cases][0] == SHOWN
    svg = "".join(ET.fromstring(found["svg"]).itertext())
    assert text.shorten("≠ " + SHOWN, 64) in svg
    raw_name = MEAN_NAME.encode("utf-8", "backslashreplace").decode()
    assert next(csv.DictReader(io.StringIO(found["csv"])))["bench"] == raw_name
    assert json.loads(found["gha"])[0]["name"] == MEAN_NAME
    assert MEAN_NAME in json.loads(found["bmf"])


def test_the_markdown_says_what_matters(tmp_path: Path) -> None:
    lines = check_markdown(write(tmp_path, MEAN, ("md",))["md"])
    page = "\n".join(lines)
    assert lines[0].startswith("### 🔴 DIFFERENT: ")
    assert "5 benchmarks: 2 REGRESSION, 1 FASTER, 1 INCONCLUSIVE, 1 SAME" in page
    assert "1 with other outputs, 2 left out" in page and "ended early" in page
    visible = [line for line in lines if line.startswith("| <code>")]
    assert len(visible) == 3 and "REGRESSION, other output" in visible[0]
    assert "faster" in visible[2]
    assert "Geometric mean +1.00 %: INCONCLUSIVE" in page
    assert "Noise floor" in page and "All of 5<" in page and "Again: <code>isobit" in page


def test_many_regressions_and_errors_still_fit(tmp_path: Path) -> None:
    benches = [bench(f"b{i}" + "&" * 40, 0.1 + i / 1000, "REGRESSION") for i in range(400)]
    errors = [{"bench": f"e{i}", "which": "a", "why": "w" * 500} for i in range(50)]
    page = write(tmp_path, result(benches, errors=errors, verdict="REGRESSION",
                                  command="c" * 10_000), ("md",))["md"]
    lines = check_markdown(page)
    assert "| <code>b399" in page and "and 375 more in the full table." in lines
    assert "and 42 more left out" in page
    assert re.search(r"All of 400, the first \d+: a comment holds no more", page)


def test_junit_counts_what_it_holds(tmp_path: Path) -> None:
    suite = ET.fromstring(write(tmp_path, MEAN, ("junit",))["junit"])[0]
    kinds = {kind: len(suite.findall(f"testcase/{kind}"))
             for kind in ("failure", "error", "skipped", "system-out")}
    assert kinds == {"failure": 2, "error": 1, "skipped": 2, "system-out": 2}
    assert (suite.get("tests"), suite.get("failures")) == ("7", "2")
    assert (suite.get("errors"), suite.get("skipped")) == ("1", "2")
    types = [f.get("type") for f in suite.findall("testcase/failure")]
    assert types == ["DIFFERENT", "REGRESSION"]


def test_formats_of_trackers(tmp_path: Path) -> None:
    found = write(tmp_path, result([bench("x", 0.5, "REGRESSION", ci=[0.25, 0.75], a_ns=100.0,
                                          b_ns=150.0)]))
    entry, = json.loads(found["gha"])
    assert entry["value"] == 150 and entry["unit"] == "ns" and "+50.00 %" in entry["extra"]
    assert entry["range"] == "+25.00 % … +75.00 %"
    assert json.loads(found["bmf"]) == {
        "x": {"latency": {"value": 150, "lower_value": 125, "upper_value": 175}}}


def test_the_picture_shows_all_and_what_it_was_drawn_with(tmp_path: Path) -> None:
    svg = write(tmp_path, MEAN | {"settings": {"delta": 0.02, "fdr": 0.05, "confidence": 0.95}},
                ("svg",))["svg"]
    shown = "".join(ET.fromstring(svg).itertext())
    for part in ("margin 2 %", "false discoveries 5 %", "intervals 95 %", "12 processes",
                 "seed 7", FINGERPRINT, "+340.00 %", "-10.00 %", "slower"):
        assert part in shown, part
    order = [shown.index(name) for name in ("xxxx", "no/interval", "same\n", "faster\n")]
    assert order == sorted(order)  # the slowest on top


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    file = synthetic.write_json(tmp_path / "ab.json", MEAN)
    outputs = []
    for run, seed in enumerate("12"):  # each in a process with another order of its sets
        options = [part for f in FORMATS for part in (f"--{f}", str(tmp_path / f"{run}.{f}"))]
        subprocess.run([sys.executable, "-m", "isobit_perf", "report", str(file), *options],
                       check=True, env={"PYTHONHASHSEED": seed,
                                        "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path)})
        outputs.append([(tmp_path / f"{run}.{f}").read_bytes() for f in FORMATS])
    assert outputs[0] == outputs[1]


def test_without_a_format_it_is_markdown_on_the_terminal(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(synthetic.write_json(tmp_path / "ab.json", MEAN))
    assert cli.main(["report", file]) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("### 🔴 DIFFERENT")
    assert cli.main(["report", file, "--md", "-"]) == 0
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize("content, why", [
    ("", "not JSON"), ('{"v": 1, "ki', "not JSON"), ("[]", "must be an object"),
    (json.dumps(result([]) | {"v": 2}), 'key "v"'), ("{}", "missing"),
    (json.dumps(result([bench("x", float("nan"), "SAME")])), "NaN"),
    (json.dumps(result([])).replace("61.2", "1e999"), "not finite"),
    (json.dumps(result([bench("x", 0.1, "WORSE")])), "benches[0].verdict"),
    (json.dumps(result([bench("x", 0.1, "SAME", a_ns="1")])), "benches[0].a_ns"),
    (json.dumps(result([bench("x", 0.1, "SAME", ci=[1])])), "benches[0].ci"),
    (json.dumps(result([{"bench": "x"}])), "missing"),
    (json.dumps(result([]) | {"benches": {}}), 'key "benches"')])
def test_files_that_are_no_result(tmp_path: Path, content: str, why: str,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ab.json"
    file.write_text(content)
    assert cli.main(["report", str(file), "--html", str(tmp_path / "x.html")]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_values_at_the_edges_are_drawn(tmp_path: Path) -> None:
    found = write(tmp_path, result([
        bench("zero", 0.0, "SAME", ci=[0.0, 0.0], a_ns=0.0, b_ns=0.0, margin=0.0),
        bench("huge", 1e300, "REGRESSION", ci=[1e299, 1e301], b_ns=1e300, margin=1e300),
        bench("gone", -1.0, "FASTER", ci=[-1.0, -1.0], b_ns=1e-300)],
        settings={"delta": 1e300, "fdr": True}, verdict="REGRESSION"))
    check_page(found["html"])
    xmllint(found["svg"], tmp_path)
    check_markdown(found["md"])


def test_without_matplotlib_the_others_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("pictures", "html"):
        monkeypatch.delitem(sys.modules, f"isobit_perf.report.{name}", raising=False)
    assert set(write(tmp_path, MEAN, ("md", "csv", "junit", "gha", "bmf"))) == {
        "md", "csv", "junit", "gha", "bmf"}
    assert write(tmp_path, MEAN, ("svg",), expected=77) == {}
    assert "matplotlib" in capsys.readouterr().err


def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(synthetic.write_json(tmp_path / "ab.json", MEAN))
    assert cli.main(["report", file, "--csv", "/dev/full"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert cli.main(["report", file, "--csv", "/proc/nowhere/x"]) == 2


def history_lines(count: int) -> list[dict[str, Any]]:
    return [line for i in range(count) for line in synthetic.history(
        {30: 1.2} if i == 3 else {}, i, 60 if count < 50 else 8, name=f"gemm/{i}")]


@pytest.mark.parametrize("count", [0, 1, 5, 211])
def test_a_history_in_every_format(tmp_path: Path, count: int) -> None:
    found = of_history(tmp_path, history_lines(count))
    check_markdown(found["md"])
    page = check_page(found["html"])
    assert page.count("svg") == 2 * min(count, 24)
    assert ("Pictures of 24 of 211" in "".join(page.text)) == (count == 211)
    xmllint(found["svg"], tmp_path)
    assert len(json.loads(found["gha"])) == len(json.loads(found["bmf"])) == count
    rows = list(csv.reader(io.StringIO(found["csv"])))
    assert rows[0] == ["time", "commit", *sorted(f"gemm/{i}" for i in range(count))]
    assert [r[1] for r in rows[1:]] == [synthetic.commit(i) for i in range(len(rows) - 1)]


def test_a_history_with_holes_and_mean_names(tmp_path: Path) -> None:
    lines = synthetic.history({}, 1, 10, name=MEAN_NAME) + synthetic.history({}, 1, 10)[3:5]
    for line in lines[::2]:
        del line["ci"]
    lines += [lines[-1] | {"commit": "<b>x", "t": "2026-06-01T00:00:00Z"}]
    found = of_history(tmp_path, lines)
    check_markdown(found["md"])
    shown = "".join(check_page(found["html"]).text)
    assert SHOWN in shown and "<b>x"[:9] in shown
    xmllint(found["svg"], tmp_path)
    rows = list(csv.reader(io.StringIO(found["csv"])))
    assert [bool(r[2]) for r in rows[1:]] == [True] * 10 + [False]
    assert [bool(r[3]) for r in rows[1:]] == [False] * 3 + [True] * 2 + [False] * 5 + [True]


@pytest.mark.skipif(not changepoints.available(), reason=changepoints.HINT)
def test_change_points_are_marked_everywhere(tmp_path: Path) -> None:
    found = of_history(tmp_path, history_lines(5))
    name = synthetic.commit(30)[:9]
    assert f"{name}" in found["md"] and "1 change point in 5 benchmarks" in found["md"]
    svg = "".join(ET.fromstring(found["svg"]).itertext())
    assert re.search(rf"{name} \+(19|20)\.\d %", svg)
    for part in ("p < 1e-05", "at least 1 %", "windows of 50", FINGERPRINT, "60 commits"):
        assert part in svg
    assert svg.index("gemm/3") < svg.index("gemm/0")  # what changed comes first
    assert "1 change point in 5 benchmarks" in found["html"]


def test_no_junit_of_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    synthetic.write_lines(tmp_path / "db" / f"{FINGERPRINT}.jsonl", history_lines(1))
    assert cli.main(["report", "history", "--db", str(tmp_path / "db"), "--junit", "-"]) == 2
    assert "not for the history" in capsys.readouterr().err


@pytest.mark.parametrize("ns, shown", [(0.5, "0.500 ns"), (812.4, "812.4 ns"), (1234, "1.234 µs"),
                                       (999_999, "1000.0 µs"), (5e6, "5.000 ms"), (2e9, "2.000 s"),
                                       (2e12, "2000 s"), (0, "0 ns")])
def test_durations(ns: float, shown: str) -> None:
    assert text.duration(ns) == shown


def test_numbers_and_names() -> None:
    assert text.percent(0.0123) == "+1.23 %" and text.percent(-1e-9) == "0.00 %"
    assert text.printable("a\n\x00é漢\u202e") == "a\\n\\x00é漢\\u202e"
    assert text.shorten("abcdefghij", 5) == "ab…ij" and text.shorten("abc", 3) == "abc"
    assert text.markdown("gemm/64x64/avx2") == "gemm/64x64/avx2"
    assert text.plural(1, "process") == "1 process" and text.plural(2, "process") == "2 processes"
