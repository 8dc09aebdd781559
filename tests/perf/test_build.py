# SPDX-License-Identifier: MIT
"""Sides as users say them, and bisect, on a small project of its own."""

import subprocess
from pathlib import Path

import pytest
from conftest import Tool

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C)
add_library(isobit_shared SHARED code.c)
set_target_properties(isobit_shared PROPERTIES OUTPUT_NAME isobit)
"""
BENCH = "op/3x3/avx2/t1"
GOOD = "int one(void) { return 1; }\n"
SLOW = f'const char text[] = "slow {BENCH} 10 ";\n'
BROKEN = "int one(void) { return undeclared; }\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, text=True, check=True,
                          capture_output=True).stdout.strip()


@pytest.fixture
def project(tool: Tool) -> list[str]:
    """Six commits: good, good, does not build, good, slow, slow."""
    git(tool.folder, "init", "-q")
    (tool.folder / "CMakeLists.txt").write_text(CMAKE)
    commits = []
    for number, code in enumerate([GOOD, GOOD, BROKEN, GOOD, GOOD + SLOW, GOOD + SLOW]):
        (tool.folder / "code.c").write_text(code + f"int number{number};\n")
        git(tool.folder, "add", "CMakeLists.txt", "code.c")
        git(tool.folder, "commit", "-q", "-m", f"commit {number}")
        commits.append(git(tool.folder, "rev-parse", "HEAD"))
    return commits


def checkout(tool: Tool) -> tuple[str, str, str]:
    """What must not change."""
    return (git(tool.folder, "rev-parse", "--symbolic-full-name", "HEAD"),
            git(tool.folder, "status", "--porcelain", "--untracked-files=no"),
            git(tool.folder, "worktree", "list"))


def test_accepted_regressions(tool: Tool, project: list[str]) -> None:
    """By a trailer of a commit that A does not have; with a reason, of this benchmark."""
    def again(trailer: str) -> int:
        git(tool.folder, "commit", "-q", "--allow-empty", "--amend", "-m",
            f"commit 5\n\n{trailer}")
        return tool.run("ab", "HEAD~2", "HEAD", "--processes", "12", "--seed", "1",
                        "--filter", "3x3").returncode

    wanted = "Perf-accepted: geomean there is only one\nPerf-accepted: "
    assert again(f"{wanted}{BENCH} more digits") == 0
    assert tool.bench(BENCH)["verdict"] == "REGRESSION" and tool.result()["verdict"] == "SAME"
    assert tool.result()["settings"]["accepted"][BENCH] == "more digits"
    done = tool.run("report", "ab.json")
    assert "- accepted: " in done.stdout and "more digits" in done.stdout
    assert again(f"{wanted}op/3x* more digits") == 0
    assert again(f"{wanted}{BENCH}") == 1  # no reason
    assert again(f"{wanted}op/4x4/avx2/t1 more digits") == 1
    assert again(f"Perf-accepted: {BENCH} more digits") == 1  # the geometric mean
    built = list((tool.folder / "cache").glob("isobit-perf/*/libisobit.so"))
    assert len(built) == 2  # another message needs no other build


def test_revisions_that_build_the_same(tool: Tool, project: list[str]) -> None:
    """Nothing is measured, and there is a result."""
    (tool.folder / "README.md").write_text("a sentence")
    git(tool.folder, "add", "README.md")
    git(tool.folder, "commit", "-q", "-m", "a comment")
    done = tool.run("ab", "HEAD~1", "HEAD")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SAME: both are the same library, bit by bit; ab.json\n"
    assert tool.result()["verdict"] == "SAME" and tool.result()["processes"] == 0
    assert "nothing was measured" in tool.run("report", "ab.json").stdout


def test_revisions(tool: Tool, project: list[str]) -> None:
    (tool.folder / "code.c").write_text("a change that is not committed")
    before = checkout(tool)
    done = tool.run("ab", "HEAD~2", "HEAD", "--processes", "12", "--seed", "1")
    assert done.returncode == 1, done.stderr
    assert tool.bench(BENCH)["verdict"] == "REGRESSION"
    assert tool.result()["a"]["commit"] == project[3] and tool.result()["a"]["name"] == "HEAD~2"
    assert checkout(tool) == before
    tree = git(tool.folder, "rev-parse", f"{project[3]}^{{tree}}")
    (kept,) = (tool.folder / "cache").glob(f"isobit-perf/{tree}-*/libisobit.so")
    kept.write_text("kept, and not built again")
    assert tool.run("ab", "HEAD~2", "HEAD~2", "--processes", "12").returncode == 0
    assert kept.read_text() == "kept, and not built again"


def test_a_revision_that_does_not_build(tool: Tool, project: list[str]) -> None:
    before = checkout(tool)
    done = tool.run("ab", project[0], project[2])
    assert done.returncode == 125
    assert f"{project[2][:12]} does not build" in done.stderr and "undeclared" in done.stderr
    assert checkout(tool) == before


@pytest.mark.parametrize("sides,why", [
    (("a.so", "nothing"), "nothing: no build folder"), (("a.so", "perf"), "no libisobit.so"),
    (("a.so", "--upload-pack=x"), ""), (("a.so",), "two sides"), ((), "two sides"),
    (("a.so", "b.so", "c.so"), "two sides")])
def test_wrong_sides(tool: Tool, sides: tuple[str, ...], why: str) -> None:
    done = tool.run("ab", *sides)
    assert done.returncode == 2 and why in done.stderr and "Traceback" not in done.stderr


def test_a_build_folder(tool: Tool) -> None:
    (tool.folder / "build" / "lib").mkdir(parents=True)
    (tool.folder / "build" / "lib" / "libisobit.so").write_text("x")
    assert tool.run("ab", "a.so", "build", "--processes", "12").returncode == 0
    assert tool.result()["b"]["path"].endswith("build/lib/libisobit.so")


def test_bisect(tool: Tool, project: list[str]) -> None:
    (tool.folder / "code.c").write_text("a change that is not committed")
    before = checkout(tool)
    done = tool.run("bisect", project[0], "HEAD", "--bench", BENCH, "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"first bad commit: {project[4][:7]}" in done.stdout
    assert checkout(tool) == before
    assert not (tool.folder / ".git" / "BISECT_START").exists()


def test_bisect_finds_nothing(tool: Tool, project: list[str]) -> None:
    done = tool.run("bisect", project[0], project[3], "--bench", BENCH, "--seed", "1")
    assert done.returncode == 2 and "not slower" in done.stderr
    assert tool.run("bisect", project[0], "HEAD", "--bench", "no/such").returncode == 2
    assert tool.run("bisect", project[2], "HEAD", "--bench", BENCH).returncode == 125
