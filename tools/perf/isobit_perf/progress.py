# SPDX-License-Identifier: MIT
"""What is going on: one line that is written over on a terminal, plain lines elsewhere."""

import shutil
import sys
import time
from typing import TextIO


def duration(seconds: float) -> str:
    """1m20s, or 42s."""
    whole = max(0, round(seconds))
    return f"{whole // 60}m{whole % 60:02}s" if whole >= 60 else f"{whole}s"


class Progress:
    """Counts the benchmarks of a process, and estimates when the next look is."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._live = not quiet and self._stream.isatty()
        self._head, self._total, self._done = "", 0, 0
        self._end = 0.0

    def process(self, number: int, until: int, total: int, left_s: float) -> None:
        """A process begins: number of `until`, with so many benchmarks."""
        self._head = f"process {number}/{until}"
        self._total, self._done = total, 0
        self._end = time.monotonic() + left_s

    def bench(self, name: str) -> None:
        """A benchmark is done."""
        self._done += 1
        if not self._live:
            return
        eta = self._end - time.monotonic()
        tail = f" ETA {duration(eta)}" if eta > 0 else ""
        text = f"{self._head} [{self._done}/{self._total}] {name}{tail}"
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r" + text[:width].ljust(width))
        self._stream.flush()

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._quiet:
            return
        if self._live:
            self._stream.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
        self._stream.write(text + "\n")
        self._stream.flush()
