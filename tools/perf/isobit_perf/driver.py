# SPDX-License-Identifier: MIT
"""What a session needs of whatever measures: the protocol of isobit_ab, line by line."""

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from .errors import PerfError
from .journal import line_type, parse_bench

OnBench = Callable[[str], None]  # called with the name of each benchmark that is done


class ProcessFailed(Exception):
    """A process that crashed, hung or printed garbage. `done`: what it had measured before."""

    def __init__(self, why: str, done: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.done = set(done)


class Driver(Protocol):
    """Runs processes that measure A beside B."""

    def process(self, number: int, seed: int, names: Sequence[str],
                on_bench: OnBench) -> list[str]:
        """The lines of one process, the end line left out; or ProcessFailed."""

    def alone(self, name: str, seed: int) -> tuple[str, str] | None:
        """(which, why) when a process with this benchmark alone fails, too."""


class Collector:
    """Checks the lines of a process."""

    def __init__(self, number: int, on_bench: OnBench) -> None:
        self.number = number
        self.lines: list[str] = []
        self.done: list[str] = []
        self.ended = False
        self._on_bench = on_bench

    def add(self, text: str) -> None:
        """One line of the program."""
        kind = line_type(text)
        if kind == "end":
            self.ended = True
            return
        if kind not in ("process", "bench", "error") or self.ended:
            raise ProcessFailed(f"prints garbage: {text[:60]!r}", self.done)
        value: dict[str, object] = {**json.loads(text), "process": self.number}
        if kind == "bench":
            try:
                name = parse_bench(json.dumps(value), "line").bench
            except PerfError as error:
                raise ProcessFailed(f"prints garbage: {error}", self.done) from None
            self.done.append(name)
            self._on_bench(name)
        elif kind == "error" and isinstance(value.get("bench"), str):
            self.done.append(str(value["bench"]))
        self.lines.append(json.dumps(value))
