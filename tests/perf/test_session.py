# SPDX-License-Identifier: MIT
"""Sessions with the fake isobit_ab: verdicts, faults, resuming, exit statuses."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Tool

NAMES = [f"op/{n}x{n}/avx2/t1" for n in range(1, 9)]
SLOW = NAMES[2]


def ab(tool: Tool, *more: str, seed: int = 1) -> "subprocess.CompletedProcess[str]":
    return tool.run("ab", "a.so", "b.so", "--seed", str(seed), *more)


def test_same(tool: Tool) -> None:
    done = ab(tool)
    assert done.returncode == 0, done.stderr
    result = tool.result()
    assert result["verdict"] == "SAME" and result["processes"] == 12 and result["complete"]
    assert {b["verdict"] for b in result["benches"]} == {"SAME"}
    assert [b["bench"] for b in result["benches"]] == NAMES
    assert all(b["n"] == len(b["d"]) == 12 and b["same_output"] for b in result["benches"])
    assert result["settings"]["looks"][:3] == [12, 18, 27]
    assert sum(result["settings"]["shares"]) == pytest.approx(1, abs=1e-4)
    assert "SAME" in done.stdout and "\r" not in done.stderr


@pytest.mark.parametrize("percent,verdict,status", [(10, "REGRESSION", 1), (-10, "FASTER", 0)])
def test_one_changes(tool: Tool, percent: float, verdict: str, status: int) -> None:
    tool.model(slow={SLOW: percent}, drift=0.05)
    done = ab(tool)
    assert done.returncode == status, done.stderr
    found = tool.bench(SLOW)
    assert found["verdict"] == verdict
    assert found["change"] == pytest.approx(percent / 100, abs=0.01)
    assert found["ci"][0] < found["change"] < found["ci"][1]
    assert tool.result()["verdict"] == verdict
    others = [b["verdict"] for b in tool.result()["benches"] if b["bench"] != SLOW]
    assert set(others) == {"SAME"} and f"{SLOW} " in done.stdout


def test_three_percent_takes_more_processes(tool: Tool) -> None:
    tool.model(slow={SLOW: 3.5}, noise=0.012, names=NAMES + [f"more/{n}" for n in range(32)])
    assert ab(tool).returncode == 1
    assert tool.bench(SLOW)["verdict"] == "REGRESSION"
    result = tool.result()
    assert tool.bench(SLOW)["n"] > min(b["n"] for b in result["benches"])
    assert result["processes"] == tool.bench(SLOW)["n"]


def test_many_small_ones_are_found_by_the_geometric_mean(tool: Tool) -> None:
    tool.model(slow={name: 1 for name in NAMES}, noise=0.003)
    done = ab(tool)
    result = tool.result()
    assert {b["verdict"] for b in result["benches"]} == {"SAME"}
    assert result["geomean"]["verdict"] == result["verdict"] == "REGRESSION"
    assert done.returncode == 1


def test_inconclusive(tool: Tool) -> None:
    tool.model(noise=0.2)
    assert ab(tool, "--processes", "12").returncode == 0
    assert tool.result()["verdict"] == "INCONCLUSIVE"
    assert ab(tool, "--processes", "12", "--strict").returncode == 3


def test_budget_ends_it(tool: Tool) -> None:
    tool.model(noise=0.3, delay=0.02)
    assert ab(tool, "--budget", "2s").returncode == 0
    result = tool.result()
    assert result["seconds"] < 4 and result["processes"] < 200
    assert result["verdict"] == "INCONCLUSIVE"


def test_outliers_do_not_count(tool: Tool) -> None:
    tool.model(outliers=0.3)
    assert ab(tool, "--blocks", "40").returncode == 0
    assert max(abs(b["change"]) for b in tool.result()["benches"]) < 0.01


def test_outputs_differ(tool: Tool) -> None:
    tool.model(different=SLOW)
    done = ab(tool)
    assert done.returncode == 4 and tool.result()["verdict"] == "DIFFERENT"
    assert tool.bench(SLOW)["same_output"] is False and "outputs" in done.stdout
    assert ab(tool, "--allow-different").returncode == 0
    assert tool.result()["verdict"] == "SAME"


# -------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("fault,why", [
    ("crash", "crashes: killed by SIGSEGV"), ("hang", "hangs: killed after 0.5 s"),
    ("garbage", "prints garbage: 'Segmentation fault")])
@pytest.mark.parametrize("only", ["b", ""])
def test_a_benchmark_fails(tool: Tool, fault: str, why: str, only: str) -> None:
    tool.model(only=only, **{fault: SLOW})
    done = ab(tool, "--time-limit", "0.5s")
    assert done.returncode == 2, done.stderr
    (error,) = tool.result()["errors"]
    assert error["bench"] == SLOW and error["why"].startswith(why) and error["failed"]
    assert error["which"] == (only or "a")
    assert f"{SLOW} ({error['which'].upper()}): left out: {why}" in done.stdout
    assert len(tool.result()["benches"]) == len(NAMES) - 1  # the others are measured
    assert {b["n"] for b in tool.result()["benches"]} == {12}


def test_a_regression_says_more_than_a_crash(tool: Tool) -> None:
    tool.model(crash=NAMES[0], slow={SLOW: 10})
    assert ab(tool).returncode == 1


@pytest.mark.parametrize("fault,why", [("vanish", "was not measured"),
                                       ("error", "no such instruction set")])
def test_a_benchmark_disappears(tool: Tool, fault: str, why: str) -> None:
    tool.model(**{fault: SLOW})
    assert ab(tool).returncode == 0
    (error,) = tool.result()["errors"]
    assert error["bench"] == SLOW and why in error["why"] and not error["failed"]
    assert len(tool.result()["benches"]) == len(NAMES) - 1


def test_a_crash_that_does_not_come_again(tool: Tool) -> None:
    tool.model(crash=SLOW, first=1)
    assert ab(tool).returncode == 0
    assert tool.result()["errors"] == [] and tool.bench(SLOW)["n"] == 12


def test_all_fail(tool: Tool) -> None:
    tool.model(names=[SLOW], crash=SLOW)
    done = ab(tool)
    assert done.returncode == 2 and "nothing was measured" in done.stderr


def test_full_disk(tool: Tool) -> None:
    done = ab(tool, "-o", "/dev/full")
    assert done.returncode == 2
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr
    assert (Path("/dev/full")).is_char_device()


def test_disk_becomes_full(tool: Tool) -> None:
    """A limit of the file size stands for the disk: what does not fit is not written."""
    ab(tool)
    size = (tool.folder / "ab.journal.jsonl").stat().st_size
    line = ["prlimit", f"--fsize={size // 2}", *tool.argv("ab", "a.so", "b.so", "--seed", "1",
                                                           "-o", "full.json")]
    done = subprocess.run(line, cwd=tool.folder, env=tool.environment(), text=True,
                          capture_output=True, check=False, timeout=100)
    assert done.returncode == 2 and "--resume" in done.stderr, done.stderr
    half = tool.folder / "full.journal.jsonl"
    assert 0 < half.stat().st_size <= size // 2
    assert half.read_text().endswith("\n")
    done = tool.run("ab", "--resume", str(half))
    assert done.returncode == 0, done.stderr
    assert tool.result("full.json")["benches"] == tool.result("ab.json")["benches"]


# ------------------------------------------------------------------------- killed and resumed


def start(tool: Tool, *more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(tool.argv("ab", "a.so", "b.so", "--seed", "1", *more),
                            cwd=tool.folder, env=tool.environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_processes(tool: Tool, count: int, name: str = "ab") -> None:
    path = tool.folder / f"{name}.journal.jsonl"
    for _ in range(1000):
        if path.exists() and path.read_text().count('"type": "end"') >= count:
            return
        time.sleep(0.02)
    raise AssertionError("no processes")


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items()
            if key not in ("started", "seconds", "command")}


def test_killed_and_resumed(tool: Tool) -> None:
    tool.model(noise=0.012, slow={SLOW: 3.5}, delay=0.01)
    assert ab(tool, "-o", "whole.json").returncode == 1
    child = start(tool)
    wait_for_processes(tool, 5)
    child.kill()
    child.communicate()
    assert not (tool.folder / "ab.json").exists()
    with open(tool.folder / "ab.journal.jsonl", "a", encoding="utf-8") as file:
        file.write('{"type": "process", "v": 1}\n{"type": "bench", "ben')  # as a kill leaves it
    done = tool.run("ab", "--resume", "ab.journal.jsonl", cwd=tool.folder)
    assert done.returncode == 1, done.stderr
    assert comparable(tool.result()) == comparable(tool.result("whole.json"))
    ends = [json.loads(line)["process"] for line in
            (tool.folder / "ab.journal.jsonl").read_text().splitlines() if '"type": "end"' in line]
    assert ends == list(range(1, tool.result()["processes"] + 1))  # none was measured again


def test_resume_needs_the_same(tool: Tool) -> None:
    assert ab(tool).returncode == 0
    journal = tool.folder / "ab.journal.jsonl"
    text = journal.read_text()
    (tool.folder / "b.so").write_text("rebuilt")
    done = tool.run("ab", "--resume", "ab.journal.jsonl")
    assert done.returncode == 2 and "b_sha256" in done.stderr
    (tool.folder / "b.so").write_text("b.so")
    head = json.loads(text.splitlines()[0])
    head["machine"]["fingerprint"] = "0" * 16
    journal.write_text(json.dumps(head) + "\n" + text.split("\n", 1)[1])
    assert tool.run("ab", "--resume", "ab.journal.jsonl").returncode == 5
    journal.write_text(text.replace('"type": "bench"', '"type": "bunch"', 1))
    done = tool.run("ab", "--resume", "ab.journal.jsonl")
    assert done.returncode == 2 and ".jsonl:3:" in done.stderr
    assert tool.run("ab", "--resume", "ab.json").returncode == 2


def test_an_old_journal_is_kept(tool: Tool) -> None:
    ab(tool)
    first = (tool.folder / "ab.journal.jsonl").read_text()
    ab(tool, seed=2)
    assert (tool.folder / "ab.journal.jsonl.old").read_text() == first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tool: Tool, number: int) -> None:
    tool.model(noise=0.3, delay=0.01)
    child = start(tool)
    wait_for_processes(tool, 3)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    result = tool.result()
    assert result["processes"] >= 2 and not result["complete"]
    assert result["verdict"] == "INCONCLUSIVE" and "ended early" in out


def measuring(pid: int) -> list[int]:
    """The children that measure; one that lists names ends by itself."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in found if "--benches" in Path(f"/proc/{p}/cmdline").read_text()]


def test_the_child_dies_with_its_parent(tool: Tool) -> None:
    tool.model(hang=NAMES[0])
    parent = start(tool, "--filter", NAMES[0])
    found: list[int] = []
    for _ in range(500):
        found = measuring(parent.pid)
        if found:
            break
        time.sleep(0.02)
    assert found
    time.sleep(1)  # it has said what it says before it hangs: else a closed pipe would end it
    parent.kill()
    parent.communicate()
    for _ in range(200):
        if not os.path.exists(f"/proc/{found[0]}"):
            return
        state = Path(f"/proc/{found[0]}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":  # killed; whoever inherits it has not looked yet
            return
        time.sleep(0.02)
    raise AssertionError("the child goes on")
