# SPDX-License-Identifier: MIT
"""doctor: each check on made-up files of a machine, and the canary on made-up programs."""
import os
from pathlib import Path

import pytest

from isobit_perf import cli, doctor
from isobit_perf.doctor import Canary, Line, Root

CPU = "sys/devices/system/cpu"
QUIET = {
    f"{CPU}/online": "0-3,6",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/smt/active": "0",
    "proc/loadavg": "0.10 0.20 0.30 1/100 999",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/perf_event_paranoid": "2",
    "sys/bus/event_source/devices/cpu/type": "4",
    "sys/class/power_supply/AC0/type": "Mains",
    "sys/class/power_supply/AC0/online": "1",
    "proc/stat": "cpu  100 0 50 1000 0 0 0 10 0 0\ncpu0 1 2 3\n",
    "proc/self/cgroup": "0::/user/me\n",
    "sys/fs/cgroup/user/me/cpu.stat": "usage_usec 5\nnr_throttled 7\n",
}


def fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")


def lines(folder: Path, changes: dict[str, str] | None = None,
          canary: Canary = Canary(0.001, 0.002, 9),
          during: dict[str, str] | None = None) -> dict[str, Line]:
    fill(folder, {**QUIET, **(changes or {})})

    def run() -> Canary:
        fill(folder, during or {})
        return canary

    return {line.name: line for line in doctor.examine(Root(folder), run)}


def test_a_quiet_machine_is_ok(tmp_path: Path) -> None:
    found = lines(tmp_path)
    assert {line.status for line in found.values()} == {"OK"}
    assert len(found) == 13
    assert found["CPUs"].text == "5 online"


@pytest.mark.parametrize("name,file,text,advice", [
    ("CPUs", f"{CPU}/online", "0", "machine with two"),
    ("governor", f"{CPU}/cpu1/cpufreq/scaling_governor", "powersave", "-g performance"),
    ("turbo", f"{CPU}/intel_pstate/no_turbo", "0", "echo 1 >/sys"),
    ("SMT", f"{CPU}/smt/active", "1", "smt/control"),
    ("load", "proc/loadavg", "0.51 0 0 1/1 1", "stop other programs"),
    ("huge pages", "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]",
     "echo madvise"),
    ("ASLR", "proc/sys/kernel/randomize_va_space", "0", "randomize_va_space=2"),
    ("ASLR", "proc/sys/kernel/randomize_va_space", "1", "randomize_va_space=2"),
    ("PMU", "proc/sys/kernel/perf_event_paranoid", "3", "perf_event_paranoid=2"),
    ("AC power", "sys/class/power_supply/AC0/online", "0", "connect"),
])
def test_each_warning(tmp_path: Path, name: str, file: str, text: str, advice: str) -> None:
    found = lines(tmp_path, {file: text})
    assert [line.name for line in found.values() if line.status == "WARN"] == [name]
    assert advice in found[name].advice


def test_boost_of_other_drivers(tmp_path: Path) -> None:
    fill(tmp_path, {f"{CPU}/cpufreq/boost": "1"})
    assert doctor.turbo(Root(tmp_path)).status == "WARN"
    fill(tmp_path, {f"{CPU}/cpufreq/boost": "0"})
    assert doctor.turbo(Root(tmp_path)).status == "OK"


def test_a_battery_without_mains(tmp_path: Path) -> None:
    base = "sys/class/power_supply/BAT0"
    fill(tmp_path, {f"{base}/type": "Battery", f"{base}/status": "Discharging"})
    assert doctor.power(Root(tmp_path)).status == "WARN"
    fill(tmp_path, {f"{base}/status": "Full"})
    assert doctor.power(Root(tmp_path)).status == "OK"


def test_only_what_happens_meanwhile_counts(tmp_path: Path) -> None:
    # 100 ticks pass, 1 of them stolen, then 2: the ticks before do not matter.
    stat = "cpu  {} 0 50 1000 0 0 0 {} 0 0"
    assert lines(tmp_path, during={"proc/stat": stat.format(199, 11)})["steal"].status == "OK"
    found = lines(tmp_path, during={"proc/stat": stat.format(198, 12)})["steal"]
    assert (found.status, found.text) == ("WARN", "2.0 %")
    stat_file = "sys/fs/cgroup/user/me/cpu.stat"
    found = lines(tmp_path, during={stat_file: "nr_throttled 9"})["throttling"]
    assert (found.status, found.text) == ("WARN", "2 times")


def test_a_cgroup_of_version_1(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/deep", "proc/stat": "cpu 1 2"}
    fill(tmp_path, {**files, "sys/fs/cgroup/cpu,cpuacct/deep/cpu.stat": "nr_throttled 3"})
    assert doctor._throttled(Root(tmp_path)) == 3


@pytest.mark.parametrize("name,canary", [("FMA loop", Canary(0.031, 0.0, 9)),
                                         ("copy", Canary(0.0, 0.031, 9))])
def test_a_noisy_canary(tmp_path: Path, name: str, canary: Canary) -> None:
    found = lines(tmp_path, canary=canary)
    assert [n for n, line in found.items() if line.status == "WARN"] == [name]
    assert found[name].text == "varies by 3.1 % in 9 runs"


@pytest.mark.parametrize("text", [None, "", "garbage", "-", "99999999999999999999x", "\0/\0:::"])
def test_missing_files_and_garbage_are_unknown(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        fill(tmp_path, {name: text for name in QUIET})
    found = doctor.examine(Root(tmp_path), lambda: Canary(why="none"))
    names = {line.name for line in found if line.status == "unknown"}
    assert len(found) == 13
    assert {"steal", "throttling", "FMA loop", "copy"} <= names
    if text is None:
        assert len(names) == 13


def test_spread_is_of_the_slow_tenth() -> None:
    assert doctor.spread([100.0] * 90 + [150.0] * 10) == pytest.approx(0.05)
    assert doctor.spread([100.0] * 11) == 0.0
    assert doctor.spread([100.0, 110.0, 120.0]) == pytest.approx(0.18)


def program(folder: Path, body: str) -> str:
    """A made-up isobit_ab in a build folder with a library."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/libisobit.so").write_text("")
    path = folder / "bin/isobit_ab"
    path.write_text(f"#!/bin/sh\nif [ \"$1\" = --list ]; then echo gemm/16x16x16/x/t1; exit; fi\n"
                    f"{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("body,why", [
    ("exit 3", "the canary failed"), ("echo nonsense", "the canary failed"),
    ("echo '{\"type\":\"end\"}'", "prints no canary"),
    ("echo '{\"canary\":[0,0]}'", "the canary failed"),
    ("echo '{\"canary\":7}'", "the canary failed")])
def test_a_canary_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str,
                                      why: str) -> None:
    monkeypatch.setattr(doctor, "SECONDS", 0.0)
    found = doctor.run_canary(program(tmp_path, body))
    assert found.runs == 0 and why in found.why


def test_the_canary_of_isobit_ab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a made-up program: it knows the options."""
    program = Path(os.environ.get("ISOBIT_BUILD", "build")) / "bin" / "isobit_ab"
    if not program.exists():
        pytest.skip(f"no {program}")
    monkeypatch.setattr(doctor, "SECONDS", 0.0)
    found = doctor.run_canary(str(program))
    assert found.runs == 1, found.why


def test_the_canary_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SECONDS", 0.2)
    found = doctor.run_canary(program(
        tmp_path, "echo '{\"type\":\"bench\",\"canary\":[50,100]}'\n"
                  "echo '{\"type\":\"bench\",\"canary\":[100,100]}'"))
    assert found.runs >= 2 and found.fma == pytest.approx(1.0) and found.copy == 0.0


def test_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, QUIET)
    ask = ["doctor", "--root", str(tmp_path), "--program", str(tmp_path / "none")]
    assert cli.main([*ask, "--strict"]) == 0  # what is unknown is no warning
    fill(tmp_path, {"proc/loadavg": "9.5 1 1 1/1 1"})
    assert cli.main(ask) == 0
    assert cli.main([*ask, "--strict"]) == 1
    out = capsys.readouterr().out
    assert "WARN    load        9.5" in out and "stop other programs" in out
    assert "no such program" in out
