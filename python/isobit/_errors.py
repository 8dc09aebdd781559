# SPDX-License-Identifier: MIT
"""Status codes of the library, and the exceptions that they become."""
from __future__ import annotations

import enum
from typing import Union


class Status(enum.IntEnum):
    """iso_status of isobit.h."""

    OK = 0
    E_NULL = 1
    E_SIZE = 2
    E_DIM = 3
    E_LD = 4
    E_OVERFLOW = 5
    E_ALIAS = 6
    E_ALIGN = 7
    E_DTYPE = 8
    E_OPTION = 9
    E_UNSUPPORTED = 10
    E_ISA = 11
    E_RANGE = 12
    E_NOMEM = 13
    E_WORKSPACE = 14
    E_IO = 15
    E_TRUNCATED = 16
    E_HEADER_SIZE = 17
    E_JSON = 18
    E_UTF8 = 19
    E_DUPLICATE = 20
    E_OFFSET = 21
    E_HOLE = 22
    E_SHAPE = 23
    E_MISSING = 24
    E_CONFIG = 25
    E_LIMIT = 26
    E_INTERNAL = 27
    E_CANCELLED = 28


class IsobitError(Exception):
    """The library refused a call: `status` is its code, the text says what it found."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)  # both, so that it can be pickled
        self.status: Union[Status, int] = status
        try:
            self.status = Status(status)
        except ValueError:
            pass  # a code of a newer library

    def __str__(self) -> str:
        return str(self.args[0])


class IsobitValueError(IsobitError, ValueError):
    """An argument has a value or a shape that the call cannot take."""


class IsobitMemoryError(IsobitError, MemoryError):
    """Memory or threads could not be had."""


_VALUES = {
    Status.E_DIM,
    Status.E_LD,
    Status.E_OVERFLOW,
    Status.E_ALIAS,
    Status.E_OPTION,
    Status.E_ISA,
    Status.E_RANGE,
    Status.E_UTF8,
    Status.E_LIMIT,
}


def error_of(status: int, message: str) -> IsobitError:
    if status == Status.E_NOMEM:
        return IsobitMemoryError(message, status)
    if status in _VALUES:
        return IsobitValueError(message, status)
    return IsobitError(message, status)
