# SPDX-License-Identifier: MIT
"""The promises of the verdicts, by simulation with known truth and a fixed seed."""

from collections.abc import Mapping
from math import log, log1p

import numpy as np
import pytest
from isobit_perf.verdicts import Finding, Rules, geomean, judge, looks, shares

NAMES = [f"b{i}" for i in range(40)]
MARGINS = dict.fromkeys(NAMES, 0.02)


def run_suite(rng: np.random.Generator, truth: Mapping[str, float], noise: float,
              rules: Rules) -> dict[str, Finding]:
    """A session without its processes: all looks, those that are decided leave."""
    data: dict[str, list[float]] = {name: [] for name in NAMES}
    decided: dict[str, Finding] = {}
    found: dict[str, Finding] = {}
    done = 0
    for look, processes in enumerate(rules.looks):
        for name in NAMES:
            if name not in decided:
                d = rng.normal(log1p(truth.get(name, 0)), noise, processes - done)
                data[name] += [float(x) for x in d]
        done = processes
        found = judge(data, MARGINS, rules, look, decided)
        decided = {name: f for name, f in found.items() if f.verdict != "INCONCLUSIVE"}
        if len(decided) == len(NAMES):
            break
    return found


def alarms(found: Mapping[str, Finding], *right: str) -> int:
    return sum(f.verdict == "REGRESSION" for name, f in found.items() if name not in right)


def test_looks_and_shares() -> None:
    assert looks(200) == [12, 18, 27, 40, 60, 90, 135, 200]
    assert looks(12) == [12] and looks(13) == [12, 13] and looks(3, 1) == [1, 3]
    for count in range(1, 12):
        assert sum(shares(count)) == pytest.approx(1) and len(shares(count)) == count
    rules = Rules()
    assert [rules.look(n) for n in (1, 12, 13, 18, 200, 999)] == [0, 0, 1, 1, 7, 7]


@pytest.mark.parametrize("noise,suites", [(0.005, 40), (0.02, 60), (0.05, 20)])
def test_no_change_no_alarm(noise: float, suites: int) -> None:
    """A/A: at most one suite in 100 may have a false alarm."""
    rng = np.random.default_rng(1)
    rules = Rules()
    assert sum(alarms(run_suite(rng, {}, noise, rules)) > 0 for _ in range(suites)) <= 1


def test_all_at_the_edge_of_the_margin() -> None:
    """The hardest case that is no regression: every change is exactly the margin.

    Then every REGRESSION is false, and the false discovery rate is the share of suites that have
    one: at most 5 %, and 3 sd more by chance.
    """
    rng = np.random.default_rng(2)
    rules = Rules()
    truth = dict.fromkeys(NAMES, 0.02)
    false = sum(alarms(run_suite(rng, truth, 0.02, rules)) > 0 for _ in range(24))
    assert false <= 24 * 0.05 + 3 * (24 * 0.05 * 0.95) ** 0.5


def test_one_at_the_edge_of_the_margin() -> None:
    rng = np.random.default_rng(3)
    rules = Rules()
    assert sum(alarms(run_suite(rng, {"b7": 0.02}, 0.02, rules)) > 0 for _ in range(100)) <= 2


def test_three_percent_is_found() -> None:
    """Noise of 2 % per process; found in at least 95 of 100 suites, and nobody else blamed."""
    rng = np.random.default_rng(4)
    rules = Rules()
    runs = [run_suite(rng, {"b7": 0.03}, 0.02, rules) for _ in range(100)]
    assert sum(run["b7"].verdict == "REGRESSION" for run in runs) >= 95
    assert sum(alarms(run, "b7") for run in runs) <= 1
    faster = [run_suite(rng, {"b7": -0.03}, 0.02, rules) for _ in range(60)]
    assert sum(run["b7"].verdict == "FASTER" for run in faster) >= 57


def test_ten_percent_is_found_at_the_first_look() -> None:
    rng = np.random.default_rng(5)
    rules = Rules(looks=[12, 18, 27, 40, 60, 90, 135, 200])
    for _ in range(50):
        data = {name: list(rng.normal(log(1.10) if name == "b7" else 0, 0.015, 12))
                for name in NAMES}
        found = judge(data, MARGINS, rules, 0)
        assert found["b7"].verdict == "REGRESSION" and alarms(found, "b7") == 0


def test_heavy_tails_do_not_alarm() -> None:
    rng = np.random.default_rng(6)
    rules = Rules()
    false = 0
    for _ in range(50):
        data = {name: list(0.01 * rng.standard_cauchy(12)) for name in NAMES}
        false += alarms(judge(data, MARGINS, rules, 0)) > 0
    assert false == 0


def test_the_margin_is_the_noise_where_that_is_larger() -> None:
    rng = np.random.default_rng(7)
    data = {"b0": list(rng.normal(log(1.04), 0.002, 12))}
    assert judge(data, {"b0": 0.02}, Rules(), 0)["b0"].verdict == "REGRESSION"
    assert judge(data, {"b0": 0.05}, Rules(), 0)["b0"].verdict == "SAME"


def test_too_few_processes() -> None:
    found = judge({"b0": [0.1, 0.1]}, {"b0": 0.02}, Rules(), 0)["b0"]
    assert found.ci is None and found.verdict == "INCONCLUSIVE"
    assert found.change == pytest.approx(0.10517, abs=1e-5)


def test_what_is_decided_stays() -> None:
    first = judge({"b0": [0.1] * 12, "b1": [0.0] * 12}, MARGINS, Rules(), 0)
    assert [first[name].verdict for name in ("b0", "b1")] == ["REGRESSION", "SAME"]
    later = judge({"b0": [0.1] * 12, "b1": [0.0] * 12}, MARGINS, Rules(), 3, first)
    assert later["b0"] is first["b0"] and later["b1"] is first["b1"]


def test_geomean() -> None:
    rng = np.random.default_rng(8)
    rows = [{name: float(rng.normal(log(1.01), 0.01)) for name in NAMES} for _ in range(12)]
    found = geomean(rows, NAMES, Rules(), 0)
    assert found.verdict == "REGRESSION" and found.ci is not None
    assert found.ci[0] < 0.01 < found.ci[1] and found.change == pytest.approx(0.01, abs=0.002)
    rows += [{"b0": 3.0}] * 20  # later processes, when most have left: they do not count
    del rows[0]["b3"]
    again = geomean(rows, NAMES, Rules(), 0)
    assert again.verdict == "REGRESSION" and again.change == pytest.approx(found.change, abs=1e-3)
    assert geomean([], NAMES, Rules(), 0).ci is None
