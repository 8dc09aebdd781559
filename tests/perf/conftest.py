# SPDX-License-Identifier: MIT
"""What tests of isobit-perf share: a folder with two fake libraries, and the tool in it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from isobit_perf import cli, inject, measure, noise  # noqa: F401 (read before the forks)

HERE = Path(__file__).resolve().parent
TOOL = HERE.parents[1] / "tools" / "perf"
SUITES = {"v": 1, "suites": {"pr": [".*"], "smoke": ["^op/1x1/"], "full": [".*"]}}


@dataclass
class Tool:
    """Runs isobit-perf with the fake isobit_ab in a folder of its own."""

    folder: Path

    def model(self, **truth: Any) -> None:
        """The truth that the fake program measures."""
        (self.folder / "model.json").write_text(json.dumps(truth))

    def environment(self) -> dict[str, str]:
        """Of the tool."""
        return {**os.environ, "PYTHONPATH": str(TOOL), "PYTHONDONTWRITEBYTECODE": "1",
                "ISOBIT_AB": str(HERE / "fake_ab.py"),
                "FAKE_MODEL": str(self.folder / "model.json"),
                "FAKE_COUNT": str(self.folder / "count"),
                "XDG_CACHE_HOME": str(self.folder / "cache")}

    def argv(self, *arguments: str) -> list[str]:
        """The command line."""
        return [sys.executable, "-m", "isobit_perf", *arguments]

    def run(self, *arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Runs it to its end, in a fork of this process: SciPy is read once for all tests."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                signal.alarm(300)
                os._exit(self._forked(arguments, cwd or self.folder, out.fileno(), err.fileno()))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess(self.argv(*arguments), status, *texts)

    def _forked(self, arguments: Sequence[str], cwd: Path, out: int, err: int) -> int:
        """What `python -m isobit_perf` does, in its folder, environment and streams."""
        status = 1
        try:
            os.dup2(out, 1)
            os.dup2(err, 2)
            sys.stdout, sys.stderr = (open(fd, "w", encoding="utf-8", closefd=False)
                                      for fd in (1, 2))
            os.chdir(cwd)
            os.environ.update(self.environment())
            status = cli.main(list(arguments))
        except SystemExit as end:  # --help
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return int(status)

    def result(self, name: str = "ab.json") -> dict[str, Any]:
        """A file that it wrote."""
        found: dict[str, Any] = json.loads((self.folder / name).read_text())
        return found

    def bench(self, bench: str, name: str = "ab.json") -> dict[str, Any]:
        """One benchmark of a result."""
        return next(b for b in self.result(name)["benches"] if b["bench"] == bench)


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """A folder with a.so and b.so, suites of all fake benchmarks, and a quiet model."""
    for name in ("a.so", "b.so"):
        (tmp_path / name).write_text(name)
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf" / "suites.json").write_text(json.dumps(SUITES))
    found = Tool(tmp_path)
    found.model()
    return found
