# SPDX-License-Identifier: MIT
"""A/B of two programs of Google Benchmark, and of two environments."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import HERE, Tool
from fake_gbench import NAMES
from isobit_perf import command
from isobit_perf.command import name_filter

PROGRAM = str(HERE / "fake_gbench.py")
FAST = ("--processes", "8", "--first", "8", "--repetitions", "3", "--seed", "3")


def ab(tool: Tool, a: str, b: str, *more: str) -> "subprocess.CompletedProcess[str]":
    return tool.run("ab", "--command", f"{PROGRAM} {a}", f"{PROGRAM} {b}", *FAST, *more)


def test_filter_takes_names_as_they_are() -> None:
    names = ["a.b", "f(x)[1]{2}", "c|d", r"e\f", "x*y+z?", "^g$", "B<int, 2>/-1"]
    assert [n for n in [*names, "aXb", "c", "d"] if re.search(name_filter(names), n)] == names


def test_names_of_a_reporter_that_shortens_them() -> None:
    listed = ["a/8/iterations:1/manual_time", "a/8/16/repeats:3", "b/real_time"]
    found = command._as_listed(command.Execution({"a/8": 1.0, "a/8/16": 2.0, "b/real_time": 3.0},
                                                 {}, {"c": "no"}), listed)
    assert found.times == dict(zip(listed, (1.0, 2.0, 3.0))) and found.errors == {"c": "no"}


def test_same_and_slower(tool: Tool) -> None:
    done = ab(tool, "", "")
    assert done.returncode == 0, done.stderr
    result = tool.result()
    assert result["kind"] == "command" and result["verdict"] == "SAME"
    assert [b["bench"] for b in result["benches"]] == NAMES
    assert 1900 < tool.bench("BM_Sort")["a_ns"] < 2100  # microseconds in nanoseconds
    assert tool.bench("BM_Sort")["same_output"] is None
    done = ab(tool, "", f"--slow '{NAMES[2]}=20'")
    assert done.returncode == 1, done.stderr
    assert tool.bench(NAMES[2])["change"] == pytest.approx(0.2, abs=0.02)


def test_one_side_lacks_a_benchmark(tool: Tool) -> None:
    done = ab(tool, "", "--without BM_Sort")
    assert done.returncode == 0, done.stderr
    assert tool.result()["errors"] == [{"bench": "BM_Sort", "which": "b", "failed": False,
                                        "why": "B has no such benchmark"}]
    assert "BM_Sort (B): left out" in done.stdout and len(tool.result()["benches"]) == 3


@pytest.mark.parametrize("fault,why", [
    ("crash", "crashes: killed by SIGABRT"), ("hang", "hangs: killed after 1"),
    ("garbage", "prints garbage: out.json:1: not JSON")])
def test_a_benchmark_fails(tool: Tool, fault: str, why: str) -> None:
    done = ab(tool, "", f"--fault BM_Sort={fault}", "--time-limit", "1s")
    assert done.returncode == 2, done.stderr
    (error,) = tool.result()["errors"]
    assert error["bench"] == "BM_Sort" and error["which"] == "b" and error["failed"]
    assert error["why"].startswith(why) and len(tool.result()["benches"]) == 3


def test_a_benchmark_says_that_it_cannot(tool: Tool) -> None:
    assert ab(tool, "--fault BM_Sort=skip", "").returncode == 0
    (error,) = tool.result()["errors"]
    assert (error["which"], error["why"]) == ("a", "no device")


@pytest.mark.parametrize("a,b,why", [
    ("/none/such", PROGRAM, "/none/such: no such program"), ("false", PROGRAM, "exit status 1"),
    ("", PROGRAM, "empty command"), ("'", PROGRAM, "No closing quotation"),
    (f"{PROGRAM} --wrong", PROGRAM, "--wrong")])
def test_wrong_commands(tool: Tool, a: str, b: str, why: str) -> None:
    done = tool.run("ab", "--command", a, b)
    assert done.returncode == 2 and why in done.stderr and "Traceback" not in done.stderr


def test_environment(tool: Tool) -> None:
    tool.model(slow_env={"SLOW": 15}, noise=0.002)
    done = tool.run("ab", "a.so", "env:SLOW=1", "--processes", "12", "--seed", "1")
    assert done.returncode == 1, done.stderr
    result = tool.result()
    assert {b["verdict"] for b in result["benches"]} == {"REGRESSION"}
    assert all(b["change"] == pytest.approx(0.15, abs=0.01) and b["same_output"]
               for b in result["benches"])
    assert tool.run("ab", "env:OTHER=1", "a.so", "--processes", "12",
                    "--seed", "1").returncode == 0
    for wrong in ("env:1=2", "env:X"):
        assert tool.run("ab", "a.so", wrong).returncode == 2
    assert tool.run("ab", "env:A=1", "env:B=2").returncode == 2


def test_run_is_google_benchmark_json(tool: Tool) -> None:
    done = tool.run("run", "a.so", "--processes", "3", "--suite", "smoke", "-o", "out/run.json")
    assert done.returncode == 0, done.stderr
    found = tool.result("out/run.json")
    assert {e["name"] for e in found["benchmarks"]} == {"op/1x1/avx2/t1"}
    assert [e["repetition_index"] for e in found["benchmarks"]] == [0, 1, 2]
    assert found["context"]["isobit.fingerprint"] and found["benchmarks"][0]["real_time"] > 0
    assert Path(tool.folder / "out").is_dir()
