# SPDX-License-Identifier: MIT
"""A and B as two libraries in one process, by the program isobit_ab."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import child
from .driver import Collector, OnBench, ProcessFailed
from .errors import Exit, PerfError


@dataclass(frozen=True)
class Slots:
    """How long a benchmark is measured in one process."""

    blocks: int = 200
    slot: float = 0.0001
    seconds: float = 0.04


def find_program(given: str | None = None) -> str:
    """isobit_ab: as given, or in the environment, or in the build of this source tree."""
    root = Path(__file__).resolve().parents[3]
    path = given or os.environ.get("ISOBIT_AB") or str(root / "build" / "bin" / "isobit_ab")
    if not os.access(path, os.X_OK):
        raise PerfError(f"{path}: no such program (build it: cmake --build build --target "
                        "isobit_ab; or name it: --program)", Exit.SKIP)
    return path


def list_names(program: str, isa: str | None = None) -> list[str]:
    """The names of all benchmarks that this machine can run."""
    names: list[str] = []
    try:
        status, errors = child.run([program, "--list", *(["--isa", isa] if isa else [])],
                                   names.append, limit=60)
    except child.ChildFailed as error:
        raise PerfError(f"{program} --list: {error}") from None
    if status:
        raise PerfError(f"{program} --list: {errors or child.describe_status(status)}",
                        Exit.SKIP if status == Exit.SKIP else Exit.TROUBLE)
    return names


@dataclass
class LibraryDriver:
    """Runs isobit_ab."""

    program: str
    a: Path
    b: Path
    slots: Slots = Slots()
    silence: float = 30
    environment: Mapping[str, str] = field(default_factory=dict)
    inject: Mapping[str, float] = field(default_factory=dict)  # percent of each benchmark

    def _run(self, a: Path, b: Path, seed: int, number: int, names: Sequence[str],
             on_bench: OnBench) -> list[str]:
        with tempfile.NamedTemporaryFile("w", prefix="isobit-perf-", suffix=".benches") as file:
            file.write("".join(name + "\n" for name in names))
            file.flush()
            argv = [self.program, "--a", str(a), "--b", str(b), "--benches", file.name,
                    "--seed", str(seed), "--offset", str(number * 64 % 4096), "--order", "random",
                    "--blocks", str(self.slots.blocks), "--slot", str(self.slots.slot),
                    "--seconds", str(self.slots.seconds)]
            for name in names:
                if name in self.inject:
                    argv += ["--inject", f"{name}={self.inject[name]:g}"]
            collector = Collector(number, on_bench)
            try:
                status, errors = child.run(argv, collector.add, silence=self.silence,
                                           environment=self.environment)
            except child.ChildFailed as error:
                raise ProcessFailed(str(error), collector.done) from None
        last = errors.splitlines()[-1] if errors else child.describe_status(status)
        if status == Exit.SKIP:
            raise PerfError(last, Exit.SKIP)
        if status == Exit.TROUBLE:
            raise PerfError(f"{self.program}: {last}")
        if status not in (0, 1) or not collector.ended:
            raise ProcessFailed("crashes: " + (child.describe_status(status) if status < 0
                                               else last), collector.done)
        return collector.lines

    def process(self, number: int, seed: int, names: Sequence[str],
                on_bench: OnBench) -> list[str]:
        """One process over these benchmarks. Offset and order are others in each."""
        return self._run(self.a, self.b, seed, number, names, on_bench)

    def alone(self, name: str, seed: int) -> tuple[str, str] | None:
        """Whether this benchmark alone fails, and with which of the libraries."""
        def quiet(_: str) -> None:
            pass

        try:
            self._run(self.a, self.b, seed, 0, [name], quiet)
        except ProcessFailed as failed:
            try:
                self._run(self.a, self.a, seed, 0, [name], quiet)
            except ProcessFailed:
                return "a", str(failed)
            return "b", str(failed)
        return None
