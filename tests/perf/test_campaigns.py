# SPDX-License-Identifier: MIT
"""aa and inject with the fake isobit_ab."""

import contextlib
import json
from pathlib import Path

from conftest import Tool

NAMES = [f"op/{n}x{n}/avx2/t1" for n in range(1, 9)]


def test_aa(tool: Tool) -> None:
    tool.model(noise=0.01)
    done = tool.run("aa", "a.so", "--runs", "2", "--seed", "5", "--processes", "18")
    assert done.returncode == 0, done.stderr
    found = tool.result("aa/aa.json")
    assert len(found["runs"]) == 2 and found["false_regression_runs"] == 0
    assert "0 of 2 runs with a false REGRESSION" in done.stdout
    (path,) = (tool.folder / "perf" / "noise").iterdir()
    noise = json.loads(path.read_text())
    assert path.name == f"{noise['fingerprint']}.json" and list(noise["benches"]) == NAMES
    for bench in noise["benches"].values():
        assert bench["n"] >= 24 and 0.003 < bench["mad"] < 0.012
        assert 0.002 < bench["p95"] < 0.012 and bench["mde"] > 0.02
    # goes on: the third only
    first = tool.result("aa/run-001.json")
    assert tool.run("aa", "a.so", "--runs", "3", "--processes", "18").returncode == 0
    assert tool.result("aa/run-001.json") == first
    assert len(tool.result("aa/aa.json")["runs"]) == 3
    assert tool.run("aa", "b.so", "--runs", "3").returncode == 2
    assert tool.run("ab", "a.so", "b.so", "--seed", "1").returncode == 0
    assert tool.result()["benches"][0]["noise"] == json.loads(
        path.read_text())["benches"][NAMES[0]]["p95"]


def test_neighbour(tool: Tool) -> None:
    """Beside every second run, and gone with it."""
    done = tool.run("aa", "a.so", "--runs", "2", "--seed", "5", "--processes", "12", "--neighbour",
                    "--no-noise")
    assert done.returncode == 0, done.stderr
    assert [tool.result(f"aa/run-00{n}.json")["settings"]["neighbour"] for n in (1, 2)] == [
        False, True]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # of a process that has just ended
            assert b"isobit_perf.neighbour" not in path.read_bytes()


def test_noise_of_another_machine(tool: Tool) -> None:
    assert tool.run("aa", "a.so", "--seed", "1").returncode == 0
    (path,) = (tool.folder / "perf" / "noise").iterdir()
    path.write_text(path.read_text().replace(path.stem, "0" * 16))
    done = tool.run("ab", "a.so", "b.so")
    assert done.returncode == 5 and "0000000000000000" in done.stderr


def test_aa_tells_false_alarms(tool: Tool) -> None:
    tool.model(slow={NAMES[0]: 10})  # a program that favours a side
    done = tool.run("aa", "a.so", "--no-noise", "--seed", "1")
    assert done.returncode == 1 and "1 of 1 runs with a false REGRESSION" in done.stdout
    assert not (tool.folder / "perf" / "noise").exists()


def test_inject(tool: Tool) -> None:
    done = tool.run("inject", "a.so", "--percent", "2,5,10", "--runs", "3", "--seed", "2",
                    "--processes", "18")
    assert done.returncode == 0, done.stderr + done.stdout
    found = tool.result("inject/inject.json")
    two, five, ten = found["scores"]
    assert (five["found"], ten["found"], found["blamed"]) == (3, 3, 0)
    assert two["found"] == 0 and two["runs"] == 3
    assert len(ten["seconds"]) == 3 and all(0.08 < change < 0.12 for change in ten["changes"])
    injected = [tool.result(f"inject/run-00{i}.json")["settings"]["inject"] for i in (1, 2, 3)]
    assert len({name for run in injected for name in run}) > 3  # others in each run


def test_others(tool: Tool) -> None:
    """The U test alarms where the machine is slower a minute later, and 20 % sees no 10 %."""
    assert tool.run("others", "inject").returncode == 2
    tool.model(noise=0.002)
    again = ("inject", "a.so", "--percent", "10,30", "--seed", "2", "--processes", "12", "--runs")
    assert tool.run(*again, "1").returncode == 0
    tool.model(noise=0.002, base=1.02)
    assert tool.run(*again, "2").returncode == 0
    done = tool.run("others", "inject")
    assert done.returncode == 0, done.stderr
    ours, u_test, threshold = tool.result("inject/others.json")["rules"]
    assert ours["false_runs"] == threshold["false_runs"] == 0
    assert u_test["false_runs"] == 1 and u_test["false_alarms"] == len(NAMES) - 2
    assert ours["found"] == u_test["found"] == {"10": 1, "30": 1}
    assert threshold["found"] == {"10": 0, "30": 1}
    assert " 1 of 1 |" in done.stdout


def test_inject_that_is_not_found(tool: Tool) -> None:
    tool.model(noise=0.2)
    done = tool.run("inject", "a.so", "--percent", "3", "--processes", "12", "--seed", "1")
    assert done.returncode == 1 and "| 0" not in done.stderr
    assert tool.result("inject/inject.json")["scores"][0]["found"] == 0


def test_inject_all(tool: Tool) -> None:
    tool.model(noise=0.003)
    done = tool.run("inject", "a.so", "--all", "1", "--seed", "1")
    assert done.returncode == 0 and "found in 1 of 1 runs" in done.stdout, done.stderr
    assert tool.run("inject", "a.so", "--all", "1", "--percent", "3").returncode == 2
    many = ",".join(str(p) for p in range(1, 10))
    assert tool.run("inject", "a.so", "-o", "x", "--percent", many).returncode == 2
