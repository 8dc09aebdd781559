# SPDX-License-Identifier: MIT
"""The files, the command line's errors, the machine, and the suites."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, TOOL, Tool
from isobit_perf import files, machine, progress, schema, selection
from isobit_perf.errors import Exit, PerfError

SIDE = {"name": "HEAD", "commit": None, "path": "x", "version": "1"}
MACHINE = {"fingerprint": "0123456789abcdef", "cpu": "c", "features": ["avx2"], "compiler": "gcc",
           "kernel": "6.1", "threads": 2, "sleef": "3.5"}
BENCH = {"bench": "gemm", "n": 12, "a_ns": 1, "b_ns": 2.5, "change": 0.1, "ci": [0.0, 0.2],
         "p": 0.1, "q": 0.2, "margin": 0.02, "noise": None, "verdict": "SAME",
         "same_output": True, "d": [0.1, 0.2]}
RESULT: dict[str, Any] = {
    "v": 1, "kind": "ab", "a": SIDE, "b": SIDE, "machine": MACHINE, "settings": {"delta": 0.02},
    "seed": 1, "started": "2026-01-01T00:00:00Z", "seconds": 1.5, "processes": 12,
    "verdict": "SAME", "geomean": {"change": 0.0, "ci": None, "verdict": "SAME"},
    "command": "isobit-perf ab", "benches": [BENCH, BENCH], "errors": []}


def changed(*way: Any) -> dict[str, Any]:
    """RESULT with another value at the end of the way; "gone" removes it."""
    copy: dict[str, Any] = json.loads(json.dumps(RESULT))
    place: Any = copy
    for key in way[:-2]:
        place = place[key]
    if way[-1] == "gone":
        del place[way[-2]]
    else:
        place[way[-2]] = way[-1]
    return copy


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ab.json"
    (tmp_path / "first.json").write_text(json.dumps({**RESULT, "unknown": [1]}))
    result = files.read_result(tmp_path / "first.json")
    files.write_result(path, result)
    assert files.read_result(path) == result
    assert result.benches[0].ci == (0.0, 0.2) and result.benches[0].a_ns == 1.0
    assert [p.name for p in path.parent.iterdir()] == ["ab.json"]  # nothing temporary is left


@pytest.mark.parametrize("way,line,text", [
    (("benches", 1, "ci", [0.1]), None, 'key "benches[1].ci" must be a list of 2, not'),
    (("v", True), 2, 'key "v" must be 1, not true'),
    (("benches", 1, "n", "12"), None, 'key "benches[1].n" must be an integer, not "12"'),
    (("benches", 0, "n", True), None, 'key "benches[0].n" must be an integer, not true'),
    (("benches", 0, "verdict", "GOOD"), None, 'must be "REGRESSION" or "FASTER" or'),
    (("benches", 1, "p", "gone"), None, 'key "benches[1].p" is missing'),
    (("machine", []), None, 'key "machine" must be an object, not []'),
    (("v", 2), 2, 'key "v" must be 1, not 2'),
    (("verdict", None), None, 'key "verdict" must be')])
def test_wrong_values_name_their_line(tmp_path: Path, way: tuple[Any, ...], line: int | None,
                                      text: str) -> None:
    path = tmp_path / "ab.json"
    path.write_text(json.dumps(changed(*way), indent=1))
    with pytest.raises(PerfError) as error:
        files.read_result(path)
    assert text in str(error.value) and error.value.status == Exit.TROUBLE
    found = re.match(r".*ab\.json:(\d+): ", str(error.value))
    assert found
    shown = path.read_text().splitlines()[int(found.group(1)) - 1]
    if way[-1] != "gone":
        assert f'"{way[-2]}"' in shown
    assert line in (None, int(found.group(1)))


@pytest.mark.parametrize("text,why", [
    ("", ":1: not JSON"), ("{\n\n]", ":3: not JSON"), ("[]", ":1: the document must be"),
    ('{"v": NaN}', "NaN is no number"), ("[" * 100000, "not JSON"), ("\udcff", "UTF-8")])
def test_no_json(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "ab.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(PerfError, match=re.escape(why)):
        files.read_result(path)


def test_infinity_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "ab.json"
    path.write_text(json.dumps(RESULT).replace("2.5", "1e999"))
    with pytest.raises(PerfError, match=r"benches\[0\]\.b_ns\" is not finite"):
        files.read_result(path)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PerfError, match="/dev/full: cannot be written: No space left"):
        schema.write("/dev/full", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(PerfError, match="cannot be written"):
        schema.write(tmp_path / "file" / "x.json", {})


def test_noise_of_another_fingerprint(tmp_path: Path) -> None:
    path = files.noise_path(tmp_path, "a")
    assert files.read_noise(path, "a") is None
    files.write_noise(path, files.Noise(1, "a", {"x": files.BenchNoise(12, 0.1, 0.2, 0.3)}))
    assert files.read_noise(path, "a") is not None
    with pytest.raises(PerfError) as error:
        files.read_noise(path, "b")
    assert error.value.status == Exit.FINGERPRINT


def test_suites() -> None:
    shapes = ("linear/512x512x512", "linear/16x512x512", "gemm/64x64x64", "softmax/512x512")
    names = [f"{shape}/{isa}/t1" for shape in shapes for isa in ("avx512", "avx2", "scalar")]
    repository = HERE.parents[1] / "perf"
    smoke = selection.select(names, selection.suite_patterns("smoke", repository), None)
    full = selection.select(names, selection.suite_patterns("full", repository), None)
    assert "gemm/64x64x64/scalar/t1" in smoke and "linear/512x512x512/avx2/t1" not in smoke
    assert full == names
    assert selection.select(names, [".*"], "softmax", ["avx2"]) == ["softmax/512x512/avx2/t1"]
    with pytest.raises(PerfError, match="no suite 'x'; there are: smoke, pr, full"):
        selection.suite_patterns("x", repository)


def test_machine() -> None:
    here = machine.describe()
    assert re.fullmatch("[0-9a-f]{16}", here.fingerprint) and here == machine.describe()
    assert here.threads == len(os.sched_getaffinity(0)) and here.cpu and here.kernel
    assert machine.describe(Path("/bin/true")) == here  # no libisobit
    assert len(machine.load()) == 3


@pytest.mark.parametrize("seconds,text", [(0, "0s"), (59.4, "59s"), (80, "1m20s"),
                                          (3601, "60m01s")])
def test_duration(seconds: float, text: str) -> None:
    assert progress.duration(seconds) == text


def test_list(tool: Tool) -> None:
    assert tool.run("list").stdout.split() == [f"op/{n}x{n}/avx2/t1" for n in range(1, 9)]
    assert tool.run("list", "--filter", "3x3").stdout == "op/3x3/avx2/t1\n"
    assert tool.run("list", "--isa", "avx512").returncode == 77
    done = tool.run("list", "--filter", "none")
    assert done.returncode == 2 and "no benchmark is left" in done.stderr
    assert tool.run("list", "--program", "/none").returncode == 77


@pytest.mark.parametrize("arguments", [
    [], ["nothing"], ["ab", "--delta", "2"], ["ab", "--delta", "x"], ["ab", "--budget", "0"],
    ["ab", "--budget", "5x"], ["ab", "--processes", "0"], ["inject", "--percent", "0"],
    ["inject", "--percent", "1,,2"], ["list", "--filter", "("], ["list", "--suite", "no"],
    ["ab", "--resume", "none"], ["bisect", "HEAD"], ["ab", "--fdr", "100%"]])
def test_wrong_usage(tool: Tool, arguments: list[str]) -> None:
    done = tool.run(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    if arguments:
        assert done.stderr.startswith("isobit-perf: ") and done.stderr.count("\n") == 1


def test_the_launcher(tool: Tool) -> None:
    link = tool.folder / "link"
    link.symlink_to(TOOL / "isobit-perf")
    done = subprocess.run([str(link), "--help"], capture_output=True, text=True, check=False,
                          env={**os.environ, "ISOBIT_PYTHON": sys.executable}, cwd=tool.folder)
    assert done.returncode == 0 and "exit status" in done.stdout
