# SPDX-License-Identifier: MIT
"""counts: the comparison of hot loops, tables, JSON and exit status."""
import json
import os
import subprocess
from pathlib import Path

import pytest
from test_loops import CC, TILE, build_avx2, x86_only

from isobit_perf import callgrind, cli, counts
from isobit_perf.callgrind import Count
from isobit_perf.counts import Hot, compare_function, status
from isobit_perf.errors import Exit
from isobit_perf.loops import Loop, Signature


def loop(fmas: int = 8, instructions: int = 20, spills: int = 0) -> Loop:
    return Loop("f", Signature(instructions, fmas, spills=spills), 9, (".Lloop:",))


def test_the_same_loop() -> None:
    assert compare_function("avx2", "f", [loop()], [loop()]).verdict == "SAME"


def test_a_new_spill_is_a_regression() -> None:
    found = compare_function("avx2", "f", [loop()], [loop(spills=2)])
    assert (found.verdict, found.spills) == ("REGRESSION", (0, 2))
    assert "new spills: 0 -> 2" in found.why
    more = compare_function("avx2", "f", [loop(spills=1)], [loop(spills=2)])
    assert more.verdict == "REGRESSION"
    for less in (0, 1):
        found = compare_function("avx2", "f", [loop(spills=2)], [loop(spills=less)])
        assert found.verdict == "CHANGED"


def test_a_spill_in_a_lesser_loop_of_a_micro_kernel_counts() -> None:
    found = compare_function("avx2", "f", [loop(), loop(4)], [loop(), loop(4, spills=1)])
    assert found.verdict == "REGRESSION"
    assert found.a == found.b
    # In a loop without multiply-adds of the same function it does not.
    assert compare_function("avx2", "f", [loop(), loop(0)],
                            [loop(), loop(0, spills=1)]).verdict == "SAME"


def test_a_spill_in_a_function_without_multiply_adds_is_reported() -> None:
    found = compare_function("avx2", "pack", [loop(0)], [loop(0, spills=1)])
    assert found.verdict == "CHANGED" and "new spills" in found.why


def test_functions_that_come_and_go() -> None:
    gone = compare_function("avx2", "f", [loop(spills=1)], [])
    assert (gone.verdict, gone.why) == ("CHANGED", "no loop in B")
    new = compare_function("avx2", "f", [], [loop()])
    assert (new.verdict, new.why) == ("CHANGED", "no loop in A")
    assert compare_function("avx2", "f", [], [loop(spills=1)]).verdict == "REGRESSION"


def test_other_changes_are_reported() -> None:
    found = compare_function("avx2", "f", [loop(8)], [loop(6)])
    assert (found.verdict, found.why) == ("CHANGED", "fewer FMAs an iteration")
    assert compare_function("avx2", "f", [loop()], [loop(8, 21)]).verdict == "CHANGED"


def test_exit_status() -> None:
    def counted(verdict: callgrind.Verdict) -> Count:
        return Count("x", 1, 1, 0.0, verdict)

    same = compare_function("avx2", "f", [loop()], [loop()])
    spilled = compare_function("avx2", "f", [loop()], [loop(spills=1)])
    changed = compare_function("avx2", "f", [loop()], [loop(8, 21)])
    assert status([], [], False) == Exit.SKIP
    assert status([counted("SKIPPED")], [], False) == Exit.SKIP
    assert status([counted("SAME"), counted("SKIPPED")], [], False) == Exit.OK
    assert status([counted("FASTER")], [same, changed], True) == Exit.OK
    assert status([counted("SAME")], [spilled], False) == Exit.REGRESSION
    assert status([counted("ERROR"), counted("REGRESSION")], [], False) == Exit.REGRESSION
    assert status([counted("ERROR")], [same], False) == Exit.TROUBLE
    assert status([counted("INCONCLUSIVE")], [same], False) == Exit.OK
    assert status([counted("INCONCLUSIVE")], [same], True) == Exit.INCONCLUSIVE
    assert status([], [spilled], False, {"avx2/f": "fewer loads"}) == Exit.OK
    assert status([], [spilled], False, {"avx512/f": "fewer loads"}) == Exit.REGRESSION
    assert status([counted("REGRESSION")], [spilled], False, {"avx2/*": "y"}) == Exit.REGRESSION
    assert status([counted("REGRESSION")], [same], False, {"x": "more digits"}) == Exit.OK


def test_tables() -> None:
    hot = [Hot("avx2", "same", loop().signature, loop().signature, (0, 0), "SAME"),
           Hot("avx2", "f", loop().signature, loop(8, 22, 2).signature, (0, 2), "REGRESSION",
               "why", (4.0, 5.5))]
    text = "\n".join(counts.loops_table(hot, False))
    assert "avx2: 2 functions, 1 with the same loop" in text and "| same |" not in text
    assert ("| avx2 | f | 8 | 20 → 22 | 0 | 0 | 0 | 0 → 2 | 0 | 4.00 → 5.50 | REGRESSION: why |"
            in text)
    assert "| same |" in "\n".join(counts.loops_table(hot, True))
    lines = counts.counts_table([Count("x", 1000, 1010, 0.01, "REGRESSION"),
                                 Count("y", None, None, None, "SKIPPED", "no set")])
    assert lines[-2:] == ["| x | 1000 | 1010 | +1.00 % | REGRESSION |",
                          "| y | – | – | – | SKIPPED: no set |"]


@x86_only
def test_a_forced_spill_fails_the_command(tmp_path: Path,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    a, b = build_avx2(tmp_path / "a", 8), build_avx2(tmp_path / "b", 24)
    out = tmp_path / "counts.json"
    assert cli.main(["counts", str(a), str(b), "--only", "loops", "-o", str(out)]) == 1
    assert "| avx2 | tile | 8 → 24 |" in capsys.readouterr().out
    result = json.loads(out.read_text())
    assert (result["v"], result["kind"], result["verdict"]) == (1, "counts", "REGRESSION")
    (row,) = result["loops"]
    assert row["verdict"] == "REGRESSION" and row["a"]["fmas"] == 8 and row["b"]["spills"] > 0
    assert result["a"]["name"] == str(a) and result["threshold"] == 0.005
    assert cli.main(["counts", str(b), str(a), "--only", "loops"]) == 0
    assert cli.main(["counts", str(a), str(a), "--only", "loops"]) == 0


@x86_only
def test_the_builds_for_aarch64_inside_both_are_compared(tmp_path: Path) -> None:
    for side in "ab":
        (tmp_path / side / "aarch64/lib").mkdir(parents=True)
        (tmp_path / side / "lib").mkdir()
    arm_a = tmp_path / "a" / counts.ARM_LIBRARY
    arm_a.write_text("")
    paths = [tmp_path / side / "lib/libisobit.so" for side in "ab"]
    assert counts.pairs(*paths) == [(paths[0], paths[1])]
    arm_b = tmp_path / "b" / counts.ARM_LIBRARY
    arm_b.write_text("")
    assert counts.pairs(*paths) == [(paths[0], paths[1]), (arm_a, arm_b)]


@x86_only
def test_what_is_skipped_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    a = build_avx2(tmp_path / "a", 8)
    program = tmp_path / "isobit_ab"
    program.write_text("#!/bin/sh\necho gemm/64x64x64/avx2/t1\n")
    program.chmod(0o755)
    ask = ["counts", str(a), str(a), "--program"]
    monkeypatch.setattr(callgrind, "missing", lambda: None)
    assert cli.main([*ask, str(tmp_path / "none"), "--only", "instructions"]) == 77
    assert "SKIPPED instructions: " in capsys.readouterr().err
    assert cli.main([*ask, str(program), "--filter", "^softmax"]) == 0  # the loops are compared
    assert "SKIPPED instructions: no benchmark" in capsys.readouterr().err
    monkeypatch.setattr(callgrind, "missing", lambda: "valgrind is missing")
    assert cli.main([*ask, str(program), "--only", "instructions"]) == 77
    assert "SKIPPED instructions: valgrind is missing" in capsys.readouterr().err
    monkeypatch.setenv("OBJDUMP", "no-such-objdump")
    assert cli.main([*ask, str(program)]) == 77
    err = capsys.readouterr().err
    assert "SKIPPED hot loops: no-such-objdump is missing" in err and "valgrind" in err


@x86_only
def test_no_kernels_in_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.c").write_text(TILE % 8)  # the set is the name of the compilation
    path = tmp_path / "lib.so"
    subprocess.run([CC, "-O3", "-mavx2", "-mfma", "-fPIC", "-shared", "-o", str(path),
                    str(tmp_path / "other.c")], check=True)
    assert cli.main(["counts", str(path), str(path), "--only", "loops"]) == 77
    assert "SKIPPED hot loops: no kernels" in capsys.readouterr().err


@pytest.mark.parametrize("more,message", [
    (["--filter", "("], "'('"), (["--threshold", "-1"], "--threshold"),
    (["--threshold", "0"], "is no percentage"), (["--threshold", "nan"], "is no percentage"),
    (["--only", "x"], "--only")])
def test_wrong_usage(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["counts", "/bin", "/bin", *more]) == 2
    assert message in capsys.readouterr().err


def test_broken_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library, though long enough to be one")
    assert cli.main(["counts", str(text), str(text), "--only", "loops"]) == 2
    assert f"{text}: is no ELF file" in capsys.readouterr().err


def test_percentages() -> None:
    assert counts.percent("0.5%") == counts.percent("0.5") == 0.005
    assert counts.percent("2 %") == 0.02


BUILD = Path(os.environ.get("ISOBIT_BUILD", counts.mca.ROOT / "build"))


@pytest.mark.skipif(not (BUILD / "lib/libisobit.so").is_file() or os.uname().machine != "x86_64",
                    reason="needs a build")
def test_the_library_of_this_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["counts", str(BUILD), str(BUILD), "--only", "loops", "--all"]) == 0
    out = capsys.readouterr().out
    tile = next(line for line in out.splitlines() if line.startswith("| avx512 | gemm_rows_14 |"))
    assert tile.split(" | ")[2] == "28"  # 14 rows of two vectors
    assert "| avx2 | gemm_rows_6 | 12 |" in out
