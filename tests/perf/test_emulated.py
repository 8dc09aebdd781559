# SPDX-License-Identifier: MIT
"""Counts of NEON instructions: a program for aarch64 whose instructions are known, under QEMU."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Tool
from isobit_perf import emulated
from isobit_perf.callgrind import Skipped
from isobit_perf.errors import PerfError

CC = "aarch64-linux-gnu-gcc"
pytestmark = pytest.mark.skipif(
    shutil.which(CC) is None or shutil.which(emulated.QEMU) is None,
    reason=f"needs {CC} and qemu-user")

# As isobit_ab; the library is a file with a number n in it, and one call is 2 n + 1 instructions.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void isobit_ab_counted(long n);
__asm__(".text\n.global isobit_ab_counted\n.type isobit_ab_counted, %function\n"
        "isobit_ab_counted:\n1: subs x0, x0, #1\n\tb.ne 1b\n\tret\n"
        ".size isobit_ab_counted, . - isobit_ab_counted\n");
int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "--list")) {
        puts("work/1/neon/t1\nwork/2/neon/t1\nwork/1/neon/t2\nnever/neon/t1\nlacks/neon/t1");
        return 0;
    }
    if (argc != 5 || strcmp(argv[1], "--count") || strcmp(argv[3], "--a"))
        return 2;
    FILE *file = fopen(argv[4], "r");
    long n = 0;
    if (!strncmp(argv[2], "lacks", 5) || !file || fscanf(file, "%ld", &n) != 1) {
        fputs("no such set\n", stderr);
        return 77;
    }
    if (!strncmp(argv[2], "crash", 5))
        abort();
    if (strncmp(argv[2], "never", 5)) {
        isobit_ab_counted(n);
        isobit_ab_counted(n + 5); /* the first one counts */
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    (folder / "ab.c").write_text(PROGRAM)
    found = folder / "aarch64" / "bin" / "isobit_ab"
    found.parent.mkdir(parents=True)
    subprocess.run([CC, "-O1", "-static", "-o", str(found), str(folder / "ab.c")], check=True)
    return found


def test_exact(program: Path, tmp_path: Path) -> None:
    with emulated.counter() as once:
        for n in (1, 2, 1000, 123456):
            (tmp_path / "lib").write_text(f"{n}\n")
            assert once(program, "lib", "work/1/neon/t1", tmp_path) == 2 * n + 1
        with pytest.raises(PerfError, match="never returned from isobit_ab_counted"):
            once(program, "lib", "never/neon/t1", tmp_path)
        with pytest.raises(Skipped, match="no such set"):
            once(program, "lib", "lacks/neon/t1", tmp_path)
        with pytest.raises(PerfError, match="killed by SIGABRT|exit status 134"):
            once(program, "lib", "crash/neon/t1", tmp_path)


def test_names(program: Path) -> None:
    assert emulated.benches(program)[:2] == ["work/1/neon/t1", "work/2/neon/t1"]
    assert emulated.missing(program) is None
    assert "no such program" in (emulated.missing(program.with_name("none")) or "")


def test_the_command(tool: Tool, program: Path) -> None:
    """Build folders with a build for aarch64 in them; 0.5 % more is a regression, less is none."""
    for side, n in (("one", 1000), ("two", 1004), ("three", 1010)):
        for place in ("lib", "aarch64/lib"):
            folder = tool.folder / side / place
            folder.mkdir(parents=True)
            (folder / "libisobit.so").write_text(f"{n}\n")

    def counts(b: str) -> "subprocess.CompletedProcess[str]":
        return tool.run("counts", "one", b, "--only", "instructions", "--filter", "^work|lacks",
                        "--arm-program", str(program), "-o", "counts.json")

    done = counts("two")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third = tool.result("counts.json")["instructions"]
    assert (first["bench"], first["a"], first["b"]) == ("work/1/neon/t1", 2001, 2009)
    assert (first["verdict"], second["verdict"], third["verdict"]) == ("SAME", "SAME", "SKIPPED")
    assert counts("three").returncode == 1  # 1 %
    assert tool.result("counts.json")["instructions"][0]["verdict"] == "REGRESSION"
    done = tool.run("counts", "one", "two", "--only", "instructions", "--filter", "^work",
                    "--arm-program", "none")
    assert done.returncode == 77 and "NEON: none: no such program" in done.stderr
