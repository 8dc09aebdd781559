# SPDX-License-Identifier: MIT
"""compare: files of Google Benchmark, the U test, the shift and its interval, verdicts."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from isobit_perf import cli, gbench, unpaired
from isobit_perf.compare import judge
from isobit_perf.errors import PerfError
from scipy import stats

NAMES = {f"BM_{i}": 100.0 * (i + 1) for i in range(10)}


def pair(folder: Path, factors: dict[str, float], repetitions: int = 15,
         **more: Any) -> list[str]:
    """Two files, B slower by the factors; the paths."""
    slower = {name: ns * factors.get(name, 1.0) for name, ns in NAMES.items()}
    return [str(synthetic.write_json(folder / f"{side}.json", synthetic.gbench(
        names, repetitions, seed, **more.get(side, {}))))
        for side, names, seed in (("a", NAMES, 1), ("b", slower, 2))]


def read(tmp_path: Path, text: str | bytes) -> gbench.Run:
    path = tmp_path / "x.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return gbench.read(path)


def entry(**changes: Any) -> str:
    """A file of one entry."""
    known = {"name": "BM_x", "run_type": "iteration", "real_time": 2.0, "time_unit": "ns"}
    return json.dumps({"benchmarks": [known | changes]})


def test_a_changed_benchmark_is_found_and_the_others_are_not(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *pair(tmp_path, {"BM_3": 1.08, "BM_5": 0.9}), "--json"]) == 1
    found = {b["bench"]: b for b in json.loads(capsys.readouterr().out)["benches"]}
    assert [n for n, b in found.items() if b["verdict"] == "REGRESSION"] == ["BM_3"]
    assert [n for n, b in found.items() if b["verdict"] == "FASTER"] == ["BM_5"]
    assert abs(found["BM_3"]["change"] - 0.08) < 0.012
    low, high = found["BM_3"]["ci"]
    assert low < 0.08 < high and high - low < 0.03
    assert found["BM_3"]["p"] <= found["BM_3"]["q"]


def test_nothing_changed_is_exit_0_and_says_that_it_is_unpaired(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *pair(tmp_path, {}), "--strict"]) == 0
    shown = capsys.readouterr()
    assert "not paired" in shown.out and "10 SAME" in shown.out
    assert shown.err == ""


def test_few_repetitions_are_warned_of_with_the_least_p(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = pair(tmp_path, {"BM_3": 1.5}, repetitions=3)
    assert cli.main(["compare", *files]) == 0
    assert cli.main(["compare", *files, "--strict"]) == 3
    shown = capsys.readouterr()
    assert "fewer than 9 repetitions" in shown.err and "least possible p is 0.100" in shown.err
    assert "marked ~" in shown.err


def test_nine_repetitions_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *pair(tmp_path, {"BM_3": 1.2}, repetitions=9)]) == 1
    assert "repetitions" not in capsys.readouterr().err


def test_cpu_time_is_another_time(tmp_path: Path) -> None:
    assert cli.main(["compare", *pair(tmp_path, {}), "--time", "cpu"]) == 0
    run = gbench.read(tmp_path / "a.json", "cpu")
    assert run.times["BM_0"] == [200.0] * 15


def test_what_only_one_has_and_what_failed_is_said(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path, {})
    document = json.loads(Path(b).read_text())
    document["benchmarks"] = [e for e in document["benchmarks"] if e["name"] != "BM_1"]
    document["benchmarks"].append({"name": "BM_new", "real_time": 1, "run_type": "iteration"})
    for e in document["benchmarks"]:
        if e["name"] == "BM_2":
            e |= {"error_occurred": True, "error_message": "no\nmemory"}
    synthetic.write_json(Path(b), document)
    assert cli.main(["compare", a, b]) == 0
    shown = capsys.readouterr()
    assert "BM_1 is in" in shown.err and "BM_new is in" in shown.err
    assert "BM_2 failed in" in shown.err and "no\\nmemory" in shown.err
    assert "8 benchmarks" in shown.out


def test_another_host_is_a_warning_another_fingerprint_an_error(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = pair(tmp_path, {}, b={"host_name": "other"})
    assert cli.main(["compare", *files]) == 0
    assert "host_name differs" in capsys.readouterr().err
    files = pair(tmp_path, {}, a={"isobit.fingerprint": "aa"}, b={"isobit.fingerprint": "bb"})
    assert cli.main(["compare", *files]) == 5


def test_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path, {})
    synthetic.write_json(Path(b), {"benchmarks": []})
    assert cli.main(["compare", a, b]) == 2
    assert "no benchmark in common" in capsys.readouterr().err


@pytest.mark.parametrize("text, why", [
    ("", "not JSON"), ('{"benchmarks": [', "not JSON"), (b"\xff\xfe", "UTF-8"),
    ("[]", "not a file of Google Benchmark"), ("{}", "not a file of Google Benchmark"),
    ('{"benchmarks": {}}', "not a file"), ("[" * 100_000, "not JSON"),
    ('{"benchmarks": [], "context": 3}', "context"), ('{"benchmarks": [3]}', "not an object"),
    ('{"benchmarks": [{}]}', 'no "name"'), (entry(name=7), 'no "name"'),
    (entry(real_time="2"), "not a number"), (entry(real_time=True), "not a number"),
    (entry(real_time=None), "not a number"), (entry(real_time=math.nan), "not a time"),
    (entry(real_time=math.inf), "not a time"), (entry(real_time=0), "not a time"),
    (entry(real_time=-1), "not a time"), (entry(real_time=10**400), "not a time"),
    (entry(time_unit="h"), "time_unit"), (entry(time_unit=["ns"]), "time_unit"),
    (entry(run_type="aggregate"), "aggregates only"),
    ('{"benchmarks": [' + "9" * 5000 + "]}", "not JSON"),
])
def test_bad_files(tmp_path: Path, text: str | bytes, why: str) -> None:
    with pytest.raises(PerfError, match=why):
        read(tmp_path, text)


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "/nonexistent/a", "/nonexistent/b"]) == 2
    assert "/nonexistent/a" in capsys.readouterr().err


def test_units_aggregates_and_old_files(tmp_path: Path) -> None:
    text = json.dumps({"benchmarks": [
        {"name": "x", "real_time": 2.0, "time_unit": "us"},
        {"name": "x", "real_time": 3.0, "time_unit": "ms"},
        {"name": "x_mean", "real_time": math.nan, "time_unit": "us"},
        {"name": "x_cv", "run_name": "x", "run_type": "aggregate", "real_time": math.nan}]})
    assert read(tmp_path, text).times == {"x": [2000.0, 3e6]}


def test_a_fingerprint_for_other_programs_leaves_the_clock_rate_out(tmp_path: Path) -> None:
    def of(**context: Any) -> str:
        return read(tmp_path, json.dumps({"benchmarks": [], "context": context})).fingerprint()
    assert of(host_name="h", mhz_per_cpu=1) == of(host_name="h", mhz_per_cpu=2)
    assert of(host_name="h") != of(host_name="g")


@pytest.mark.parametrize("n_a, n_b", [(1, 1), (1, 4), (3, 3), (4, 9), (9, 9)])
def test_samples_with_a_given_u(n_a: int, n_b: int) -> None:
    for u in range(n_a * n_b + 1):
        a, b = unpaired._sample_with_u(u, n_a, n_b)
        assert len({*a, *b}) == n_a + n_b
        assert sum(x < y for x in a for y in b) == u


def test_least_p_is_that_of_samples_apart() -> None:
    for n_a, n_b in ((3, 3), (4, 4), (9, 9), (2, 7)):
        a, b = list(range(n_a)), list(range(100, 100 + n_b))
        exact = stats.mannwhitneyu(a, b, method="exact").pvalue
        assert unpaired.least_p(n_a, n_b) == pytest.approx(exact)
        assert unpaired.u_test(a, b) == pytest.approx(exact)
    assert unpaired.u_test([1.0] * 5, [1.0] * 5) == 1
    assert unpaired.u_test([1.0] * 3, [2.0] * 3) >= unpaired.least_p(3, 3)


def test_the_interval_inverts_the_exact_test() -> None:
    """What lies just inside of it is accepted by SciPy's test, what lies outside is not."""
    random = np.random.default_rng(5)
    for n_a, n_b in ((9, 9), (5, 12), (4, 4)):
        a, b = random.normal(0, 1, n_a), random.normal(0.7, 1, n_b)
        low, high = (math.log1p(e) for e in unpaired.shift(np.exp(a), np.exp(b), 0.95).ci)
        for end, outward in ((low, -1e-9), (high, 1e-9)):
            inside = stats.mannwhitneyu(a, b - (end - outward), method="exact").pvalue
            outside = stats.mannwhitneyu(a, b - (end + outward), method="exact").pvalue
            assert outside <= 0.05 < inside


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(400):
        a, b = np.exp(random.normal(0, 0.02, 9)), np.exp(random.normal(0.03, 0.02, 9))
        low, high = unpaired.shift(a, b, 0.95).ci
        hits += low <= math.expm1(0.03) <= high
    assert hits >= 370


def test_verdicts() -> None:
    def shift(low: float, high: float, attained: bool = True) -> unpaired.Shift:
        return unpaired.Shift(9, 9, 1, 1, (low + high) / 2, (low, high), attained, 0.001, 4e-5)
    assert judge(shift(0.03, 0.05), 0.01, 0.02, 0.05) == "REGRESSION"
    assert judge(shift(0.03, 0.05), 0.06, 0.02, 0.05) == "INCONCLUSIVE"
    assert judge(shift(0.01, 0.05), 0.01, 0.02, 0.05) == "INCONCLUSIVE"
    assert judge(shift(-0.05, -0.03), 0.01, 0.02, 0.05) == "FASTER"
    assert judge(shift(-0.01, 0.015), 0.9, 0.02, 0.05) == "SAME"
    assert judge(shift(-0.01, 0.015, False), 0.9, 0.02, 0.05) == "INCONCLUSIVE"


def test_many_benchmarks_without_a_change_raise_no_alarm(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {f"BM_{i}": 100.0 for i in range(211)}
    files = [str(synthetic.write_json(tmp_path / f"{seed}.json",
                                      synthetic.gbench(names, 10, seed, noise=0.03)))
             for seed in (1, 2)]
    assert cli.main(["compare", *files, "--delta", "0.1%"]) == 0
    assert "211 benchmarks: 0 REGRESSION, 0 FASTER" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--delta", "x"], ["--delta", "nan"], ["--fdr", "0"],
                                       ["--confidence", "100%"], ["--time", "wall"]])
def test_bad_arguments(tmp_path: Path, arguments: list[str]) -> None:
    assert cli.main(["compare", *pair(tmp_path, {}), *arguments]) == 2
