# SPDX-License-Identifier: MIT
"""mca: the table from made-up figures of llvm-mca, its checks and exit status; and the real one."""
import os
import shutil
from pathlib import Path

import pytest

from isobit_perf import cli, mca
from isobit_perf.errors import Exit, PerfError
from isobit_perf.loops import Loop, Signature

# Says 20 cycles for 100 iterations and 20 + 200 * CYCLES for 300, and PEAK for independent FMAs.
FAKE = """#!/bin/sh
cat >"$0.input"
case "$*" in
*=100) total=20 ;;
*) total=$((20 + 200 * {cycles})) ;;
esac
echo "Total Cycles:      $total"
echo "Block RThroughput: {peak}"
"""


def fake(folder: Path, cycles: int = 7, peak: float = 7.0) -> str:
    path = folder / "mca"
    path.write_text(FAKE.format(cycles=cycles, peak=peak))
    path.chmod(0o755)
    return str(path)


def loop(function: str, fmas: int, instructions: int = 20, spills: int = 0) -> Loop:
    signature = Signature(instructions, fmas, spills=spills, stack=1)
    return Loop(function, signature, 9, (".Lloop:", "x"))


def functions(spills: int = 0) -> dict[str, list[Loop]]:
    names = ("gemm_rows_6", "direct_rows_6", "gemm_linear", "packing_l2", "gemm_rows_1",
             "columns_block", "softmax", "layernorm", "gemv", "fma_peak")
    return {name: [loop(name, 14, spills=spills)] for name in names}


def test_a_row(tmp_path: Path) -> None:
    bad: list[str] = []
    table = list(mca.rows("avx2", functions(), fake(tmp_path), bad))
    assert len(table) == 3 * len(mca.ROWS)
    # 14 FMAs in 7 cycles; the units need 7 for the 14 of the peak.
    assert table[0] == "| avx2 | haswell | gemm tile | 14 | 20 | 7.00 | 2.00 | 100.0 % | 0 | 1 |"
    assert bad == []


def test_llvm_mca_gets_the_loop(tmp_path: Path) -> None:
    program = fake(tmp_path)
    assert mca.Simulator(program, "avx2").cycles("haswell", loop("f", 1)) == 7.0
    assert Path(program + ".input").read_text() == ".Lloop:\nx\n"


def test_a_slow_tile_is_bad_only_where_the_model_is_believed(tmp_path: Path) -> None:
    bad: list[str] = []
    list(mca.rows("avx2", functions(), fake(tmp_path, cycles=8), bad))  # 87.5 %
    assert len(bad) == 3 and all("gemm tile: 87.5 %" in line for line in bad)
    bad = []
    all_loops = {**functions(), "gemm_rows_14": [loop("gemm_rows_14", 14)],
                 "direct_rows_8": [loop("direct_rows_8", 14)]}
    list(mca.rows("avx512", all_loops, fake(tmp_path, cycles=8), bad))
    assert bad == []  # each of its models has a remark


def test_vectors_on_the_stack_are_bad(tmp_path: Path) -> None:
    bad: list[str] = []
    table = list(mca.rows("avx2", functions(spills=1), fake(tmp_path), bad))
    # All but the two rows that are known to spill, on three CPUs.
    assert len(bad) == 3 * (len(mca.ROWS) - 2)
    assert sum("| 1 (6) |" in line for line in table) == 3 * 2
    bad = []
    more = {**functions(), "softmax": [loop("softmax", 14, spills=29)]}
    list(mca.rows("avx2", more, fake(tmp_path), bad))
    assert len(bad) == 3 and "softmax: exp: 100.0 %, 29 vectors on the stack" in bad[0]


def test_the_loop_of_a_row() -> None:
    found = {"gemv": [loop("gemv", 8, 10)], "gemv_rows": [loop("gemv_rows", 12, 22),
                                                         loop("gemv_rows", 12, 21)]}
    picked = mca.pick(found, "gemv|gemv_rows")
    assert picked is not None and picked.signature.instructions == 21
    assert mca.pick(found, "gem") is None
    assert mca.pick({"gemv": [loop("gemv", 0)]}, "gemv") is None


def test_a_missing_loop_is_a_failure(tmp_path: Path) -> None:
    less = functions()
    del less["softmax"]
    with pytest.raises(PerfError, match="avx2 has no loop in softmax") as error:
        list(mca.rows("avx2", less, fake(tmp_path), []))
    assert error.value.status == Exit.REGRESSION


@pytest.mark.parametrize("body", ["echo oops >&2; exit 1", "echo nothing",
                                  "echo 'Total Cycles: 0'"])
def test_a_program_that_fails(tmp_path: Path, body: str) -> None:
    path = tmp_path / "mca"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    with pytest.raises(PerfError, match="cannot read a loop for haswell"):
        mca.Simulator(str(path), "avx2").cycles("haswell", loop("f", 1))


def test_usage_and_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mca", "sse2"]) == 2
    assert "there is no set 'sse2'" in capsys.readouterr().err
    monkeypatch.setenv("MCA", str(tmp_path / "none"))
    assert cli.main(["mca", "avx2"]) == 77
    assert "llvm-mca is missing" in capsys.readouterr().err
    monkeypatch.setenv("MCA", fake(tmp_path))
    monkeypatch.setenv("ARM_INCLUDE", str(tmp_path))
    assert cli.main(["mca", "neon"]) == 77
    assert "neon SKIPPED: no sleef.h" in capsys.readouterr().err
    monkeypatch.setenv("CC", "no-such-compiler")
    assert cli.main(["mca", "avx2"]) == 77
    monkeypatch.setenv("CC", "false")
    assert cli.main(["mca", "avx2"]) == 2


@pytest.mark.skipif(shutil.which("llvm-mca-19") is None or os.uname().machine != "x86_64",
                    reason="needs llvm-mca-19 on x86-64")
def test_the_real_tile_of_avx2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MCA", raising=False)
    found = mca.hot_loops(str(mca.compile_kernels("avx2", tmp_path)))["avx2"]
    tile = mca.pick(found, "gemm_rows_6")
    simulator = mca.Simulator("llvm-mca-19", "avx2")
    assert tile is not None and tile.signature.fmas == 12 and tile.signature.spills == 0
    # 12 FMAs on two ports
    assert 6.0 <= simulator.cycles("haswell", tile) < 6.4
    assert simulator.peak("haswell") == 0.5
