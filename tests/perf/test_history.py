# SPDX-License-Identifier: MIT
"""record and history: lines, duplicates, machines, order, change points of known truth."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from isobit_perf import changepoints, cli, historyfile, series, text
from isobit_perf.changepoints import Options
from isobit_perf.errors import PerfError
from synthetic import FINGERPRINT

otava = pytest.mark.skipif(not changepoints.available(), reason=changepoints.HINT)
SHA = "c" * 40


def run_file(folder: Path, **context: Any) -> Path:
    known = {"isobit.commit": SHA, "isobit.fingerprint": FINGERPRINT} | context
    return synthetic.write_json(folder / "run.json", synthetic.gbench(
        {"gemm/64/avx512/t1": 800.0, "softmax/9/neon/t1": 50.0}, 9, 3, **known))


def record(folder: Path, file: Path, *more: str) -> int:
    return cli.main(["record", str(file), "--db", str(folder / "db"), *more])


def lines_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "db" / f"{FINGERPRINT}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def store(folder: Path, lines: list[dict[str, Any]], name: str = FINGERPRINT) -> Path:
    return synthetic.write_lines(folder / "db" / f"{name}.jsonl", lines)


def show(folder: Path, *more: str) -> int:
    return cli.main(["history", "--db", str(folder / "db"), "--repository", str(folder), *more])


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository of 40 commits; its folder and their names, the oldest first."""
    stream = b"".join(
        b"commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 9\nchange %02d\n\n"
        % (1_700_000_000 + i, i) for i in range(40))
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=stream, check=True)
    log = subprocess.run([*git, "log", "--reverse", "--format=%H"], check=True,
                         capture_output=True, text=True)
    return tmp_path, log.stdout.split()


def test_a_run_becomes_lines(tmp_path: Path) -> None:
    assert record(tmp_path, run_file(tmp_path)) == 0
    gemm, softmax = lines_of(tmp_path)
    assert gemm["bench"] == "gemm/64/avx512/t1" and gemm["isa"] == "avx512"
    assert softmax["isa"] == "neon"
    assert gemm["commit"] == SHA and gemm["fp"] == FINGERPRINT and gemm["n"] == 9
    assert gemm["t"] == "2026-05-01T10:00:00Z"  # the file says 12:00 +02:00
    assert gemm["min_ns"] < gemm["ci"][0] < gemm["med_ns"] < gemm["ci"][1]
    assert abs(gemm["med_ns"] / 800 - 1) < 0.02


def test_what_run_adds_is_kept(tmp_path: Path) -> None:
    file = run_file(tmp_path)
    document = json.loads(file.read_text())
    for e in document["benchmarks"]:
        e |= {"isobit.work": {"flops": 8e4, "bytes": 1}, "isobit.canary": [120.5, 3],
              "isobit.hash": "00ff"}
    synthetic.write_json(file, document)
    assert record(tmp_path, file) == 0
    line = lines_of(tmp_path)[0]
    assert line["gflops"] == pytest.approx(8e4 / line["med_ns"])
    assert line["canary_ns"] == 120.5 and line["hash"] == "00ff"


def test_the_interval_of_a_median_holds_it() -> None:
    random = np.random.default_rng(3)
    intervals = [historyfile._median_interval(list(random.normal(5, 1, 12))) for _ in range(500)]
    assert 470 <= sum(i is not None and i[0] <= 5 <= i[1] for i in intervals) < 500
    assert historyfile._median_interval([1.0] * 5) is None
    assert historyfile._median_interval([3.0, 1, 2, 6, 5, 4]) == (1, 6)


def test_a_result_records_b(tmp_path: Path) -> None:
    file = synthetic.write_json(tmp_path / "ab.json", synthetic.result(
        [synthetic.bench("gemm/avx2/t1", 0.1, "REGRESSION")]))
    assert record(tmp_path, file) == 0
    line, = lines_of(tmp_path)
    assert line["commit"] == "b" * 40 and line["med_ns"] == pytest.approx(812.4 * 1.1)
    assert "ci" not in line and line["isa"] == "avx2"


def test_duplicates_are_left_out_unless_asked_for(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = run_file(tmp_path)
    assert record(tmp_path, file) == 0 and record(tmp_path, file) == 0
    assert "0 lines added, 2 already there" in capsys.readouterr().out
    assert len(lines_of(tmp_path)) == 2
    assert record(tmp_path, file, "--again") == 0
    assert len(lines_of(tmp_path)) == 4


def test_a_last_line_without_its_end_is_not_glued_to(tmp_path: Path) -> None:
    path = store(tmp_path, synthetic.history({}, 1, 3))
    path.write_text(path.read_text().rstrip("\n"))
    assert record(tmp_path, run_file(tmp_path)) == 0
    assert len(lines_of(tmp_path)) == 5


def test_records_at_once_lose_nothing(tmp_path: Path) -> None:
    files = []
    for i in range(6):
        folder = tmp_path / str(i)
        folder.mkdir()
        files.append(run_file(folder, **{"isobit.commit": synthetic.commit(i)}))
    def one(file: Path) -> int:
        return subprocess.run(
            [sys.executable, "-m", "isobit_perf", "record", str(file), "--db",
             str(tmp_path / "db")], stdout=subprocess.DEVNULL, check=False).returncode
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(one, files)) == [0] * 6
    assert len(lines_of(tmp_path)) == 12
    assert [p.name for p in (tmp_path / "db").iterdir()] == [f"{FINGERPRINT}.jsonl"]


def test_a_failed_write_leaves_the_history_as_it_was(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(tmp_path, synthetic.history({}, 1, 3))
    before = path.read_bytes()
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", full)
    assert record(tmp_path, run_file(tmp_path)) == 2
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_a_run_without_commit(tmp_path: Path, repository: tuple[Path, list[str]],
                              capsys: pytest.CaptureFixture[str]) -> None:
    file = run_file(tmp_path, **{"isobit.commit": None})
    assert record(tmp_path, file) == 2
    assert "give --commit" in capsys.readouterr().err
    folder, names = repository
    assert record(tmp_path, file, "--commit", "main~1", "--repository", str(folder)) == 0
    assert lines_of(tmp_path)[0]["commit"] == names[-2]
    assert record(tmp_path, file, "--commit", "--x", "--repository", str(folder)) == 2
    assert record(tmp_path, file, "--commit", "nosuch", "--repository", str(folder)) == 2
    assert "no revision" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../evil", "", "a/b", "x" * 99])
def test_a_fingerprint_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(PerfError):
        historyfile.file_of(tmp_path, name)
    if name:
        assert record(tmp_path, run_file(tmp_path, **{"isobit.fingerprint": name})) == 2
        assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"benches": 3}', '{"benchmarks": []}'])
def test_nothing_to_record(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    assert record(tmp_path, file, "--commit", "HEAD") == 2
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("change, why", [
    ({"v": 2}, "v"), ({"med_ns": 0}, "above 0"), ({"med_ns": "1"}, "med_ns"),
    ({"t": "yesterday"}, '"t" is not a time'), ({"commit": ""}, "empty"), ({"bench": ""}, "empty"),
    ({"n": 1.5}, "n"), ({"ci": [1]}, "ci"), ({"med_ns": float("nan")}, "NaN"),
    ({"med_ns": float("inf")}, "Infinity"), ({"med_ns": None}, "med_ns")])
def test_bad_lines_are_named(tmp_path: Path, change: dict[str, Any], why: str,
                             capsys: pytest.CaptureFixture[str]) -> None:
    lines = synthetic.history({}, 1, 4)
    lines[2] |= change
    path = store(tmp_path, lines)
    assert show(tmp_path) == 2
    error = capsys.readouterr().err
    assert f"{path}:3: " in error and why in error


def test_a_truncated_file_and_an_empty_one(tmp_path: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    path = store(tmp_path, synthetic.history({}, 1, 4))
    path.write_text(path.read_text()[:-40])
    assert show(tmp_path) == 2
    assert f"{path}:4: not JSON" in capsys.readouterr().err
    path.write_text("")
    assert show(tmp_path) == 0
    assert "no benchmark matches" in capsys.readouterr().out


def test_two_machines_are_never_compared(tmp_path: Path,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    assert show(tmp_path) == 2
    assert "no history" in capsys.readouterr().err
    store(tmp_path, synthetic.history({}, 1, 4))
    assert show(tmp_path) == 0  # the only one
    other = [line | {"fp": "ff" * 8} for line in synthetic.history({}, 1, 4)]
    store(tmp_path, other, "ff" * 8)
    assert show(tmp_path) == 5
    assert FINGERPRINT in capsys.readouterr().err
    assert show(tmp_path, "--fingerprint", FINGERPRINT) == 0
    assert show(tmp_path, "--fingerprint", "0" * 16) == 2
    store(tmp_path, synthetic.history({}, 1, 4) + other)  # one file of two machines
    assert show(tmp_path, "--fingerprint", FINGERPRINT) == 5
    assert record(tmp_path, run_file(tmp_path)) == 5


def load(path: Path, **more: Any) -> series.History:
    return series.load(path, Options(), path.parent, **more)


@otava
@pytest.mark.parametrize("seed", range(10))
def test_a_step_of_5_percent_names_its_commit(tmp_path: Path, seed: int) -> None:
    found = load(store(tmp_path, synthetic.history({37: 1.05}, seed)))
    (one, change), = found.changed()
    # The values beside the step can by chance look like the other side: one commit off at most.
    assert abs(change.index - 37) <= (seed not in (0, 1, 2))
    assert abs(change.change - 0.05) < 0.012 and change.p < 1e-5
    assert one.points[change.index].commit == synthetic.commit(change.index)


@otava
def test_no_step_names_no_commit(tmp_path: Path) -> None:
    lines = [line for seed in range(30)
             for line in synthetic.history({}, seed, name=f"bench {seed}")]
    found = load(store(tmp_path, lines))
    assert len(found.series) == 30 and found.changed() == []


@otava
def test_two_steps_and_small_ones(tmp_path: Path) -> None:
    for seed in range(10):  # neither hides the other
        both = load(store(tmp_path, synthetic.history({20: 1.08, 40: 0.9}, seed)))
        assert [c.index for s in both.series for c in s.changes] == [20, 40]
    assert [c.index for _, c in both.changed()] == [40, 20]  # the newest first
    small = store(tmp_path, synthetic.history({30: 1.006}, 4, noise=0.001))
    assert load(small).changed() == []
    assert series.load(small, Options(min_change=0.003), tmp_path).changed() != []


@otava
def test_one_outlier_is_no_change_point_not_even_the_last(tmp_path: Path) -> None:
    for at in (30, 58, 59):
        lines = synthetic.history({}, 2)
        lines[at]["med_ns"] *= 1.4
        assert at == 58 or load(store(tmp_path, lines)).changed() == []
    constant = [line | {"med_ns": 5.0} for line in synthetic.history({}, 2)]
    assert load(store(tmp_path, constant)).changed() == []
    for line in constant[30:]:
        line["med_ns"] = 6.0
    assert [c.index for _, c in load(store(tmp_path, constant)).changed()] == [30]


def test_without_otava_it_says_how_and_shows_the_table(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(changepoints, "available", lambda: False)
    store(tmp_path, synthetic.history({30: 2.0}, 1))
    assert show(tmp_path) == 0
    shown = capsys.readouterr()
    assert "pip install --no-deps apache-otava" in shown.err
    assert "gemm" in shown.out and "▁" in shown.out
    assert "change points not searched in 1 benchmark" in shown.out


def test_short_series_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changepoints, "available", lambda: True)
    found = load(store(tmp_path, synthetic.history({2: 2.0}, 1, length=4)))
    assert found.changed() == [] and any("fewer than 6 points" in n for n in found.notes)


def test_the_order_is_that_of_git(repository: tuple[Path, list[str]],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changepoints, "available", lambda: False)
    folder, names = repository
    lines = synthetic.history({}, 1, 40)
    for i, line in enumerate(lines):
        line["commit"] = names[39 - i]  # measured the newest first
    path = store(folder, lines)
    found = series.load(path, Options(), folder)
    assert [p.commit for p in found.series[0].points] == names
    assert found.series[0].points[7].subject == "change 07"
    recent = series.load(path, Options(), folder, since=names[30])
    assert [p.commit for p in recent.series[0].points] == names[30:]
    with pytest.raises(PerfError, match="no revision"):
        series.load(path, Options(), folder, since="nosuch")
    store(folder, lines + synthetic.history({}, 1, 1))  # a commit that git does not know
    mixed = series.load(path, Options(), folder)
    assert any("unknown to git" in note for note in mixed.notes)
    assert [p.commit for p in mixed.series[0].points[-39:]] == names[38::-1]  # by time


def test_measurements_of_one_commit_are_one_point(tmp_path: Path) -> None:
    lines = synthetic.history({}, 1, 2)
    again = [lines[0] | {"med_ns": 100.0, "ci": [1.0, 2.0]}, lines[0] | {"med_ns": 1e6}]
    points = load(store(tmp_path, lines + again)).series[0].points
    assert len(points) == 2 and points[0].ns == lines[0]["med_ns"]
    assert points[0].ci == (1.0, lines[0]["ci"][1])


def test_a_choice_of_benchmarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(tmp_path, synthetic.history({}, 1, 4) + synthetic.history({}, 1, 4, name="a<b>\n|"))
    assert show(tmp_path, "--bench", "^a", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [b["bench"] for b in document["benches"]] == ["a<b>\n|"]
    assert show(tmp_path, "--bench", "nothing") == 0
    assert show(tmp_path, "--bench", "(") == 2
    assert show(tmp_path, "--max-p", "2") == 2


@otava
def test_the_table_names_commit_and_subject(repository: tuple[Path, list[str]],
                                            capsys: pytest.CaptureFixture[str]) -> None:
    folder, names = repository
    lines = synthetic.history({20: 1.5}, 1, 40)
    for line, name in zip(lines, names, strict=True):
        line["commit"] = name
    store(folder, lines)
    assert show(folder) == 0
    shown = capsys.readouterr()
    assert f"{names[20][:12]} +49.90 %" in shown.out and "change 20" in shown.out
    assert "▁" in shown.out and "█" in shown.out and shown.err == ""


def test_sparklines() -> None:
    assert text.sparkline([]) == ""
    assert text.sparkline([5.0, 5.0]) == "▅▅"  # no range: the middle
    assert text.sparkline([1, 2, 3]) == "▁▅█"
    assert text.sparkline([100.0, 100.1]) in ("▄▅", "▅▅", "▄▄")
    assert len(text.sparkline(list(range(1, 100)))) == 24
