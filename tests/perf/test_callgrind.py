# SPDX-License-Identifier: MIT
"""callgrind: counts of a program and libraries of ours whose instructions are known."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from isobit_perf import callgrind
from isobit_perf.callgrind import Count
from isobit_perf.errors import PerfError

CC = os.environ.get("CC", "gcc")
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None or os.uname().machine != "x86_64",
    reason="needs valgrind on x86-64")

# As isobit_ab, but its benchmark is the function work() of the library.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) void isobit_ab_counted(void (*work)(void)) { work(); }
int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "--list")) {
        if (!strcmp(argv[3], "scalar"))
            return 77;
        puts("work/1/avx2/t1\nwork/1/avx2/t2");
        return 0;
    }
    if (argc != 5 || strcmp(argv[1], "--count") || strcmp(argv[3], "--a"))
        return 2;
    if (!strcmp(argv[2], "lacks/avx2/t1")) {
        fputs("no such set\n", stderr);
        return 77;
    }
    void *library = dlopen(argv[4], RTLD_NOW | RTLD_LOCAL);
    void (*work)(void) = library ? (void (*)(void))dlsym(library, "work") : 0;
    if (!work) {
        fputs("no library\n", stderr);
        return 1;
    }
    work();
    work();
    if (strcmp(argv[2], "never/avx2/t1"))
        isobit_ab_counted(work);
    return 0;
}
"""
# Two instructions each time; 2 * {n} and a few more.
WORK = r"""
void work(void) {{
    long n = {n};
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n));
}}
"""
# One iteration more in each process that finds the file longer than the last one did.
RESTLESS = r"""
#include <stdio.h>
static long n;
void work(void) {
    static int begun;
    if (!begun) {
        FILE *f = fopen("restless", "a");
        begun = 1;
        fputc('x', f);
        n = 1000 + ftell(f);
        fclose(f);
    }
    long left = n;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
}
"""


def compile_c(folder: Path, name: str, source: str, *options: str) -> Path:
    (folder / f"{name}.c").write_text(source)
    subprocess.run([CC, "-O2", *options, "-o", str(folder / name), str(folder / f"{name}.c"),
                    "-ldl"], check=True)
    return folder / name


@pytest.fixture(name="program", scope="module")
def made_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("program"), "program", PROGRAM)


def work(folder: Path, name: str, n: int) -> Path:
    return compile_c(folder, name, WORK.format(n=n), "-shared", "-fPIC")


@needs_valgrind
def test_exact_counts(tmp_path: Path, program: Path) -> None:
    a, b = work(tmp_path, "a.so", 10000), work(tmp_path, "b_is_longer.so", 10100)
    (found,) = callgrind.count(program, a, b, ["work/1/avx2/t1"], 0.005)
    assert found.a is not None and found.b is not None
    assert found.b - found.a == 200
    assert 20000 < found.a < 20030  # the warm-up is not in it
    assert found.verdict == "REGRESSION" and found.change == pytest.approx(200 / found.a)
    (back,) = callgrind.count(program, b, a, ["work/1/avx2/t1"], 0.005)
    assert (back.a, back.b, back.verdict) == (found.b, found.a, "FASTER")
    (same,) = callgrind.count(program, a, b, ["work/1/avx2/t1"], 0.02)
    assert same.verdict == "SAME"


@needs_valgrind
def test_what_cannot_be_counted(tmp_path: Path, program: Path) -> None:
    a = work(tmp_path, "a.so", 100)
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    names = ["lacks/avx2/t1", "never/avx2/t1", "work/1/avx2/t1"]
    lacks, never, good = callgrind.count(program, a, a, names, 0.005)
    assert (lacks.verdict, lacks.why) == ("SKIPPED", "no such set")
    assert never.verdict == "ERROR" and "never entered isobit_ab_counted" in never.why
    assert good.verdict == "SAME"  # the others go on
    (bad,) = callgrind.count(program, a, broken, names[2:], 0.005)
    assert (bad.verdict, bad.why) == ("ERROR", "exit status 1: no library")


@needs_valgrind
def test_counts_that_do_not_repeat(tmp_path: Path, program: Path) -> None:
    restless = compile_c(tmp_path, "restless.so", RESTLESS, "-shared", "-fPIC")
    (found,) = callgrind.count(program, restless, restless, ["work/1/avx2/t1"], 0.005)
    assert found.verdict == "INCONCLUSIVE" and "not reproducible: A " in found.why


@needs_valgrind
def test_a_program_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hangs"
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    monkeypatch.setattr(callgrind, "SECONDS", 0.2)
    (found,) = callgrind.count(path, path, path, ["x/avx2/t1"], 0.005)
    assert (found.verdict, found.why) == ("ERROR", "not ready after 0 s")


def test_the_environment_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setenv("ISOBIT_ISA", "avx2")
    assert callgrind._environment() == {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_BIND_NOW": "1"}


def test_names_with_one_thread(program: Path) -> None:
    assert callgrind.benches(str(program)) == ["work/1/avx2/t1"]


def test_verdicts() -> None:
    judge = callgrind.judge
    assert judge("x", [1000, 1000], [1005, 1005], 0.005) == Count("x", 1000, 1005, 1005 / 1000 - 1,
                                                                 "SAME")
    assert judge("x", [1000, 1000], [1006, 1006], 0.005).verdict == "REGRESSION"
    assert judge("x", [1000, 1000], [994, 994], 0.005).verdict == "FASTER"
    assert judge("x", [1000, 1001], [2000, 2000], 0.005).verdict == "INCONCLUSIVE"
    assert judge("x", [1000, 1000], [2000, 2001], 0.005).verdict == "INCONCLUSIVE"


def test_output_of_callgrind() -> None:
    good = "version: 1\nevents: Ir\n\nfn=(1)\n0 7\n\ntotals: 7\n"
    assert callgrind.read_total(good, "x") == 7
    for bad in ("", "events: Ir\n", "totals: 7\n", good.replace("Ir", "Dr"),
                good.replace("totals: 7", "totals: x"), good.replace(": 7", ": 0")):
        with pytest.raises(PerfError, match="^x: "):
            callgrind.read_total(bad, "x")


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "valgrind is missing" in str(callgrind.missing())
    (tmp_path / "valgrind").write_text("")
    (tmp_path / "valgrind").chmod(0o755)
    assert "setarch is missing" in str(callgrind.missing())
