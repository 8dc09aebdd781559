# SPDX-License-Identifier: MIT
"""Exit codes, and the errors that end the program with one of them."""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .files import Result


class Exit(IntEnum):
    """What the program's exit status says."""

    OK = 0
    REGRESSION = 1
    TROUBLE = 2  # wrong usage or configuration, or a measurement that failed
    INCONCLUSIVE = 3  # with --strict only
    DIFFERENT = 4  # the outputs of A and B differ
    FINGERPRINT = 5  # a file from another machine or compiler
    SKIP = 77  # an instruction set or a tool is not there
    UNBUILDABLE = 125  # `git bisect run` skips such a revision
    INTERRUPTED = 130  # Ctrl-C; what was measured is in the result


class PerfError(Exception):
    """Ends the program: one clear line, and an exit status."""

    def __init__(self, text: str, status: Exit = Exit.TROUBLE) -> None:
        super().__init__(text)
        self.status = status
        self.result: "Result | None" = None  # what there was when a session ended early
