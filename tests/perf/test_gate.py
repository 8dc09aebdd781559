# SPDX-License-Identifier: MIT
""".ci/gate.sh in a repository of its own, with a ./run that only notes how it was called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

GATE = Path(__file__).resolve().parents[2] / ".ci" / "gate.sh"
RUN = """#!/bin/sh
echo "$@" >"$CALLED"
[ -z "${SLEEP:-}" ] || exec sleep "$SLEEP"
exit "${CODE:-0}"
"""


COUNTS = """#!/bin/sh
echo "$@" >"$CALLED.counts"
exit "${COUNTS:-0}"
"""


class Project:
    """A repository whose main has landed one commit, and HEAD as a test wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.called = folder / "called"
        (self.folder / ".ci").mkdir(parents=True)
        shutil.copy(GATE, self.folder / ".ci" / "gate.sh")
        (self.folder / "tools" / "perf").mkdir(parents=True)
        for name, text in (("run", RUN), ("tools/perf/isobit-perf", COUNTS)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.first = self.commit("kernels/gemm.c", "int one;\n")

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org",
                               *arguments], cwd=self.folder, text=True, check=True,
                              capture_output=True).stdout.strip()

    def commit(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"change {name}")
        return self.git("rev-parse", "HEAD")

    def land(self, commit: str) -> None:
        """origin/main is there."""
        self.git("update-ref", "refs/remotes/origin/main", commit)

    def gate(self, **environment: str) -> tuple[int, str]:
        """Its exit status and all that it says."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("ISOBIT_", "GIT_"))}
        done = subprocess.run([".ci/gate.sh"], cwd=self.folder, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env={**clean, "CALLED": str(self.called), **environment})
        return done.returncode, done.stdout

    def arguments(self) -> list[str]:
        """How ./run was called; none if it was not."""
        return self.called.read_text().split() if self.called.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_against_what_has_landed(project: Project) -> None:
    project.land(project.first)
    project.commit("kernels/gemm.c", "int two;\n")
    project.commit("kernels/gemm.c", "int three;\n")
    assert project.gate()[0] == 0
    assert project.arguments() == ["perf", project.first, "HEAD", "--suite", "smoke", "--budget",
                                   "3m", "--strict"]


def test_main_that_went_on_is_not_to_blame(project: Project) -> None:
    branch = project.commit("kernels/gemm.c", "int branch;\n")
    project.git("checkout", "-q", project.first)
    project.land(project.commit("kernels/gemm.c", "int main_went_on;\n"))
    project.git("checkout", "-q", branch)
    assert project.gate()[0] == 0 and project.arguments()[1] == project.first


def test_against_the_parent(project: Project) -> None:
    """Without an origin, and on main itself."""
    second = project.commit("kernels/gemm.c", "int two;\n")
    third = project.commit("kernels/gemm.c", "int three;\n")
    assert project.gate()[0] == 0 and project.arguments()[1] == second
    project.land(third)
    assert project.gate()[0] == 0 and project.arguments()[1] == second
    project.land(third)
    project.git("checkout", "-q", second)  # older than main
    assert project.gate()[0] == 0 and project.arguments()[1] == project.first


def test_the_base_that_is_said(project: Project) -> None:
    project.commit("kernels/gemm.c", "int two;\n")
    project.commit("kernels/gemm.c", "int three;\n")
    assert project.gate(ISOBIT_PERF_BASE=project.first)[0] == 0
    assert project.arguments()[1] == project.first
    project.called.unlink()
    code, said = project.gate(ISOBIT_PERF_BASE="no-such")
    assert code == 2 and "no-such" in said and not project.arguments()
    code, said = project.gate(ISOBIT_PERF_BASE="HEAD")
    assert code == 77 and "SKIPPED: HEAD is the base" in said and not project.arguments()


def test_nothing_to_compare_with(project: Project, tmp_path: Path) -> None:
    code, said = project.gate()
    assert code == 77 and "SKIPPED" in said and "the first commit" in said
    project.commit("kernels/gemm.c", "int two;\n")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{project.folder}",
                    str(shallow)], check=True, capture_output=True)
    project.folder = shallow
    code, said = project.gate()
    assert code == 77 and "shallow" in said and not project.arguments()


def test_documents_and_tests_are_not_measured(project: Project) -> None:
    for name in ("docs/perf.md", "kernels/README.md", "README.md", "tests/test_x.c",
                 "python/isobit.py", "models/m/config.json"):
        project.commit(name, "a sentence\n")
    code, said = project.gate(ISOBIT_PERF_BASE=project.first)
    assert code == 0 and "SAME: nothing that the library is made of" in said
    assert not project.arguments()
    project.commit("CMakeLists.txt", "project(x)\n")
    assert project.gate(ISOBIT_PERF_BASE=project.first)[0] == 0 and project.arguments()


def test_results_may_change_with_their_version(project: Project) -> None:
    project.commit("include/isobit.h", "#define ISOBIT_NUMERICS_VERSION 1\n")
    project.commit("include/isobit.h", "#define ISOBIT_NUMERICS_VERSION 2\n" + "int x;\n" * 20000)
    assert project.gate()[0] == 0 and project.arguments()[-1] == "--allow-different"
    project.commit("include/isobit.h", "#define ISOBIT_NUMERICS_VERSION 2\nint y;\n")
    assert project.gate()[0] == 0 and "--allow-different" not in project.arguments()


@pytest.mark.parametrize("code,wanted,why", [
    (0, 0, ""), (1, 1, "Perf-accepted: BENCHMARK reason"), (2, 2, "failed with 2"),
    (3, 0, "WARNING: inconclusive"), (4, 4, "ISOBIT_NUMERICS_VERSION"), (77, 77, ""),
    (125, 125, "failed with 125")])
def test_what_becomes_of_an_exit_status(project: Project, code: int, wanted: int,
                                        why: str) -> None:
    project.commit("kernels/gemm.c", "int two;\n")
    status, said = project.gate(CODE=str(code))
    assert status == wanted and why in said, said


@pytest.mark.parametrize("code,wanted,why", [
    (0, 0, ""), (1, 1, "Perf-accepted: SET/FUNCTION reason"), (2, 2, "failed with 2"),
    (77, 0, "WARNING"), (125, 125, "failed with 125")])
def test_the_hot_loops(project: Project, code: int, wanted: int, why: str) -> None:
    """After a measurement that says nothing worse, and only then."""
    project.commit("kernels/gemm.c", "int two;\n")
    status, said = project.gate(COUNTS=str(code))
    assert status == wanted and why in said, said
    counts = project.called.with_suffix(".counts")
    assert counts.read_text().split() == ["counts", project.first, "HEAD", "--only", "loops",
                                          "--cache", "build/perf/libraries"]
    counts.unlink()
    assert project.gate(COUNTS=str(code), CODE="3")[0] == wanted and counts.exists()
    counts.unlink()
    assert project.gate(COUNTS="0", CODE="1")[0] == 1 and not counts.exists()


def test_it_ends_in_time(project: Project) -> None:
    project.commit("kernels/gemm.c", "int two;\n")
    code, said = project.gate(SLEEP="30", ISOBIT_PERF_LIMIT="0.3")
    assert code == 77 and "SKIPPED: not done within 0.3 s" in said
