# SPDX-License-Identifier: MIT
"""Campaigns that are kept in a file: what adds up, what does not, and the tables of it."""

import json
import re
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import HERE, Tool
from isobit_perf import figures, records
from isobit_perf.errors import PerfError
from isobit_perf.records import Other, Record, RuleSet, Slowdown

RULES = RuleSet("pr", 0.02, 0.005, 0.05, 0.95, [12, 18], 60.0, "00000000", 1, 200, 1e-4, 0.04)
AA = Record(1, "aa", "c1", 1, "2026-05-01T10:00:00+00:00", "f1", "Some CPU", "gcc 12", 2, None,
            "a1", False, 0.5, RULES, 40, 12, 50.0, "SAME", {"SAME": 40}, 0.0001, {}, {}, 0.009)


def keep(path: Path, *found: Record) -> Path:
    for record in found:
        assert records.append(path, record)
    return path


def row(text: str, title: str) -> list[str]:
    """The cells of the row of a table that begins so."""
    line = next(x for x in text.splitlines() if re.match(rf"\|\s*{re.escape(title)}\s*\|", x))
    return [cell.strip() for cell in line.strip("|").split("|")]


def injected(run: int, *slowdowns: Slowdown, **more: object) -> Record:
    """A run of inject."""
    return replace(AA, kind="inject", campaign="c2", run=run, injected=list(slowdowns),
                   **more)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ the tables


def test_the_table_of_aa(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """99 quiet runs, and one alarm beside the neighbour: 1 of 100, the interval of R's
    binom.test(1, 100): 0.0002531 to 0.0544594; of 1 in 50: 0.0005062 to 0.1064696."""
    path = keep(tmp_path / "aa.jsonl", *(replace(AA, run=i, neighbour=i % 2 == 0)
                                         for i in range(1, 100)))
    keep(path, replace(AA, run=100, neighbour=True, verdict="REGRESSION", alarms={"x": 0.03},
                       faster={"y": -0.03}, counts={"SAME": 36, "REGRESSION": 1, "FASTER": 1,
                                                    "INCONCLUSIVE": 2},
                       largest_same=0.0125, seconds=61.0, sha256="a2"))
    assert figures.show(path) == 0  # 1 in 100 is what is promised
    shown = capsys.readouterr().out
    assert row(shown, "alone")[1:5] == ["50", "0", "0 % (0 to 7.11 %)", "0"]
    assert row(shown, "beside the neighbour")[1:6] == [
        "50", "1", "2 % (0.0506 to 10.6 %)", "2", "2 of 2000"]
    assert row(shown, "all")[1:] == ["100", "1", "1 % (0.0253 to 5.45 %)", "2", "2 of 4000",
                                     "1.25 %", "50s", "1m01s"]
    assert "2 builds of the library" in shown
    keep(path, replace(AA, run=101, verdict="REGRESSION"))  # by the geometric mean alone
    assert figures.show(path) == 1


def test_the_table_of_inject(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "power.jsonl"
    for run in range(1, 21):
        verdict = "INCONCLUSIVE" if run == 7 else "REGRESSION"
        said = {"U test, p < 0.05": Other(run % 2, {"3": 1, "1": 0}),
                "20 % slower": Other(0, {"3": 0, "1": 0})}
        keep(path, injected(run, Slowdown("a", 3.0, verdict, 0.0301, 40.0 + run),
                            Slowdown("b", 1.0, "SAME", 0.01, 20.0),
                            verdict="REGRESSION", others=said if run > 1 else None,
                            alarms={"z": 0.03} if run == 5 else {}))
    assert figures.show(path) == 0
    shown = capsys.readouterr().out
    assert row(shown, "3 %")[1:] == ["20", "19", "95 % (75.1 to 99.9 %)", "1", "+3.01 %", "51s",
                                     "1m00s"]
    assert row(shown, "1 %")[1:4] == ["20", "0", "0 % (0 to 16.8 %)"]
    assert "Others blamed: 1 of 760." in shown
    assert row(shown, "isobit-perf")[1:] == ["19", "1", "5.26 % (0.133 to 26 %)", "1", "0 of 19",
                                             "18 of 19"]
    assert row(shown, "U test, p < 0.05")[1:3] == ["19", "9"]
    assert row(shown, "U test, p < 0.05")[4:] == ["9", "0 of 19", "19 of 19"]
    assert row(shown, "20 % slower")[4:] == ["0", "0 of 19", "0 of 19"]
    keep(path, injected(21, Slowdown("a", 3.0, "SAME", 0.0301, 40.0)))
    assert figures.show(path) == 1  # 19 of 21


def test_the_table_of_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(tmp_path / "all.jsonl", *(injected(i, all=1.0, geomean=0.0101,
                                                   verdict="REGRESSION") for i in range(1, 5)))
    assert figures.show(path) == 0
    assert row(capsys.readouterr().out, "1 %")[1:5] == ["4", "4", "100 % (39.8 to 100 %)",
                                                        "+1.01 %"]
    keep(path, injected(5, all=1.0, verdict="INCONCLUSIVE"))
    assert figures.show(path) == 1


def test_machines_and_rules_are_never_mixed(tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(tmp_path / "aa.jsonl", AA, replace(AA, run=2),
                replace(AA, run=3, fp="f2", cpu="Neoverse N1", verdict="REGRESSION"),
                replace(AA, run=4, rules=replace(RULES, delta=0.01)),
                replace(AA, run=5, rules=replace(RULES, version=2)))
    assert figures.show(path) == 1
    tables = re.split(r"^## ", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    assert [row(part, "all")[1:3] for part in tables] == [["2", "0"], ["1", "1"], ["1", "0"],
                                                          ["1", "0"]]
    assert "Neoverse N1" in tables[1] and "delta 1 %" in tables[2]
    assert figures.show(path, "f1") == 0
    assert "Neoverse" not in capsys.readouterr().out
    with pytest.raises(PerfError, match="no run of f3"):
        figures.show(path, "f3")


def test_a_run_that_was_too_short_does_not_count(tmp_path: Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(tmp_path / "aa.jsonl", AA, replace(AA, run=2, processes=11, largest_same=0.5))
    assert figures.show(path) == 0
    shown = capsys.readouterr().out
    assert row(shown, "all")[1] == "1" and "1 of them ended before 12 processes" in shown


# --------------------------------------------------------------------------------------- the file


def test_what_is_there_is_not_added(tmp_path: Path) -> None:
    path = keep(tmp_path / "new" / "aa.jsonl", AA)
    assert not records.append(path, replace(AA, seconds=99.0))
    assert records.append(path, replace(AA, campaign="c3"))
    assert records.read(path) == [AA, replace(AA, campaign="c3")]


def test_a_cut_last_line(tmp_path: Path) -> None:
    """Half a line does not count, and the next one takes its place."""
    path = keep(tmp_path / "aa.jsonl", AA, replace(AA, run=2))
    whole = path.read_text()
    path.write_text(whole[:-40])
    assert records.read(path) == [AA]
    assert records.append(path, replace(AA, run=2))
    assert path.read_text() == whole


def test_a_broken_file(tmp_path: Path) -> None:
    path = keep(tmp_path / "aa.jsonl", AA)
    good = path.read_text()
    for old, new, why in (('"v": 1', '"v": 2', ':1: key "v" must be 1'),
                          ('"looks": [12, 18]', '"looks": []', "without looks"),
                          ('"delta": 0.02', '"delta": "2%"', 'key "rules.delta"'),
                          ('"fp": "f1", ', "", 'key "fp" is missing')):
        path.write_text(good.replace(old, new))
        with pytest.raises(PerfError, match=re.escape(why)):
            records.read(path)
    path.write_text("{}x\n" + good)
    with pytest.raises(PerfError, match=":1: not JSON"):
        records.append(path, replace(AA, run=2))
    assert path.read_text() == "{}x\n" + good  # nothing is thrown away


# ------------------------------------------------------------------------------------ by the tool


def test_aa_keeps_and_adds_up(tool: Tool) -> None:
    tool.model(noise=0.001)
    common = ("aa", "a.so", "--no-noise", "--processes", "12", "--keep", "kept/aa.jsonl")
    done = tool.run(*common, "--runs", "2", "-o", "one", "--neighbour", "--seed", "5")
    assert done.returncode == 0, done.stderr
    path = tool.folder / "kept" / "aa.jsonl"
    first, second = records.read(path)
    assert (first.kind, first.run, second.run, first.commit) == ("aa", 1, 2, None)
    assert (first.neighbour, second.neighbour) == (False, True)
    assert first.counts == {"SAME": 8} and first.processes == 12 and first.verdict == "SAME"
    assert first.others is None and second.others
    assert {name: other.alarms for name, other in second.others.items()} == {
        "U test, p < 0.05": 0, "20 % slower": 0}
    assert row(done.stdout, "beside the neighbour")[1] == "1"
    # The same again: all is there. Its last line lost: read from its folder, not measured.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[1][:50])
    assert tool.run(*common, "--runs", "2", "-o", "one", "--neighbour").returncode == 0
    assert [record.t for record in records.read(path)] == [first.t, second.t]
    # Another day, another folder, another build: the third is enough.
    (tool.folder / "a.so").write_text("another")
    assert tool.run(*common, "--runs", "3", "-o", "two").returncode == 0
    third = records.read(path)[2]
    assert third.run == 1 and third.campaign != first.campaign and third.sha256 != first.sha256
    assert not (tool.folder / "two" / "run-002.json").exists()
    done = tool.run(*common, "--runs", "3", "-o", "three")
    assert done.returncode == 0 and row(done.stdout, "all")[1] == "3"
    assert not (tool.folder / "three" / "run-001.json").exists()
    # Another machine's do not add up.
    path.write_text(path.read_text().replace(first.fp, "f" * 16))
    assert tool.run(*common, "--runs", "1", "-o", "four").returncode == 0
    assert [record.fp == first.fp for record in records.read(path)] == [False] * 3 + [True]
    assert tool.run("campaign", "kept/aa.jsonl").returncode == 0
    assert tool.run("campaign", "kept/none.jsonl").returncode == 2


def test_inject_keeps(tool: Tool) -> None:
    tool.model(noise=0.002)
    common = ("inject", "a.so", "--processes", "12", "--keep", "power.jsonl", "--seed", "2")
    done = tool.run(*common, "--percent", "10,30", "--runs", "2", "-o", "one")
    assert done.returncode == 0, done.stderr
    path = tool.folder / "power.jsonl"
    found = records.read(path)
    assert [sorted(s.percent for s in record.injected) for record in found] == [[10, 30]] * 2
    assert all(s.verdict == "REGRESSION" and abs(s.change - s.percent / 100) < 0.01
               and s.seconds > 0 for record in found for s in record.injected)
    assert found[0].alarms == {} and found[0].kind == "inject" and found[0].all is None
    assert found[1].others and found[1].others["20 % slower"].found == {"10": 0, "30": 1}
    assert row(done.stdout, "10 %")[1:3] == ["2", "2"]
    # Other slowdowns are another campaign, and so is one on all.
    assert tool.run(*common, "--percent", "20", "--runs", "1", "-o", "two").returncode == 0
    done = tool.run(*common, "--all", "1", "--runs", "1", "-o", "three")
    assert done.returncode == 0, done.stderr
    last = records.read(path)[-1]
    assert len(records.read(path)) == 4 and last.all == 1 and last.injected == []
    assert last.verdict == "REGRESSION" and 0.008 < last.geomean < 0.012
    assert all(len(json.dumps(json.loads(line))) < 2000 for line in path.read_text().splitlines())


def test_aa_of_a_command_keeps(tool: Tool) -> None:
    done = tool.run("aa", "--command", str(HERE / "fake_gbench.py"), "--processes", "8", "--first",
                    "8", "--repetitions", "3", "--seed", "3", "--no-noise", "--keep", "aa.jsonl")
    assert done.returncode == 0, done.stderr
    (record,) = records.read(tool.folder / "aa.jsonl")
    assert record.rules.suite == "all" and record.rules.repetitions == 3
    assert record.rules.looks == [8] and record.rules.blocks is None and record.enough()


def test_a_file_that_takes_nothing(tool: Tool) -> None:
    """A run whose record could not be written is kept, and its record is added later."""
    common = ("aa", "a.so", "--no-noise", "--processes", "12")
    (tool.folder / "kept").write_text("a file, not a folder")
    done = tool.run(*common, "--keep", "kept/aa.jsonl", "-o", "one")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    done = tool.run(*common, "--keep", "/dev/full", "-o", "one")
    assert done.returncode == 2 and "/dev/full: not a file" in done.stderr
    first = tool.result("one/run-001.json")["started"]
    assert tool.run(*common, "--keep", "aa.jsonl", "-o", "one").returncode == 0
    assert [record.t for record in records.read(tool.folder / "aa.jsonl")] == [first]


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit of the file size stands for the disk: what does not fit leaves nothing behind."""
    path = keep(tmp_path / "aa.jsonl", AA)
    whole = path.read_text()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (len(whole), len(whole) + 20):  # nothing fits; a part does
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
        try:
            with pytest.raises(PerfError, match="cannot be written: .*the same command adds"):
                records.append(path, replace(AA, run=2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        assert path.read_text() == whole
