# SPDX-License-Identifier: MIT
"""Versions, the machine, instruction sets, threads."""
from __future__ import annotations

import ctypes
import json
import operator
import weakref
from typing import Any, Dict, List, NamedTuple, Optional

from . import _c
from ._errors import Status, error_of
from ._library import check, lib, strerror


def version() -> str:
    """The version of the library that runs, as "0.1.0"."""
    return str(lib.iso_version().decode())


def info() -> Dict[str, Any]:
    """What the library sees of the machine: CPU, instruction sets, threads, versions."""
    needed = ctypes.c_size_t()
    status = lib.iso_info_json(None, 0, ctypes.byref(needed))
    text = b""
    while status == Status.E_WORKSPACE:
        buffer = ctypes.create_string_buffer(needed.value)
        status = lib.iso_info_json(buffer, len(buffer), ctypes.byref(needed))
        text = buffer.value
    check(status, "info")
    result: Dict[str, Any] = json.loads(text)
    return result


def numerics_version() -> int:
    """Two libraries with the same number give the same bits."""
    return int(info()["versions"]["numerics"])


# ------------------------------------------------------------------------- instruction sets


class Isa(NamedTuple):
    """An instruction set that the library was compiled with."""

    name: str
    missing: Optional[str]  # why this machine cannot run it, or None


def isas() -> List[Isa]:
    """All instruction sets of the library, best first."""
    result = []
    for i in range(lib.iso_isa_count()):
        isa = lib.iso_isa_get(i)
        missing = lib.iso_isa_missing(isa)
        result.append(Isa(lib.iso_isa_name(isa).decode(), missing.decode() if missing else None))
    return result


def get_isa() -> str:
    """The instruction set that calls use now."""
    isa = lib.iso_isa_active()
    if isa is None:
        check(Status.E_ISA, "get_isa")
    return str(lib.iso_isa_name(isa).decode())


def set_isa(name: Optional[str]) -> None:
    """
    Changes the instruction set, for all threads, from the next call on; no result depends on it.
    None returns to the automatic choice (or to that of the environment variable ISOBIT_ISA).
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name: a str or None expected, got {type(name).__name__}")
    status = lib.iso_set_isa(None if name is None else name.encode())
    if status and name is not None:
        names = lib.iso_isa_names().decode()
        text = f"set_isa: {strerror(status)} ({name!r}; this machine has: {names})"
        raise error_of(status, text)
    check(status, "set_isa")


# --------------------------------------------------------------------------------- numerics


def get_numerics() -> str:
    """The numerics in force, to be told beside hashes: "2", or "native (avx512_bf16)"."""
    numerics = lib.iso_numerics(None)
    if numerics is None:
        check(Status.E_OPTION, "get_numerics")
    return str(numerics.decode())


def set_numerics(name: Optional[str]) -> None:
    """
    "fixed": the same bits everywhere. "native": products with BF16 weights by the instructions that
    the CPU has for them, faster, with bits that depend on it. For all threads, from the next call
    on. None returns to what the environment variable ISOBIT_NUMERICS says, "fixed" if it is not set.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name: a str or None expected, got {type(name).__name__}")
    status = lib.iso_set_numerics(None if name is None else name.encode())
    if status and name is not None:
        raise error_of(status, f"set_numerics: {strerror(status)} ({name!r}; fixed or native)")
    check(status, "set_numerics")


# ---------------------------------------------------------------------------------- threads


class _Pool:
    """Lives as long as a call that uses it, also when the number of threads is changed."""

    def __init__(self, threads: int) -> None:
        handle = ctypes.c_void_p()
        check(lib.iso_pool_create(ctypes.byref(handle), threads), "set_num_threads", str(threads))
        # At exit other threads may still compute: the process ends without it.
        weakref.finalize(self, lib.iso_pool_destroy, handle).atexit = False
        self.threads = threads
        self.context = _c.iso_context(
            size=ctypes.sizeof(_c.iso_context), executor=lib.iso_pool_executor(handle)
        )


_pool: Optional[_Pool] = None


def set_num_threads(threads: int) -> None:
    """
    How many threads each call uses from now on, the calling one included; 0 means as many as the
    process may use. It begins with 1. No result depends on it.
    """
    global _pool
    count = size("threads", threads)
    if count == 0:
        count = lib.iso_usable_threads()
    _pool = _Pool(count) if count > 1 else None


def get_num_threads() -> int:
    pool = _pool
    return pool.threads if pool else 1


def current_pool() -> Optional[_Pool]:
    """Hold on to it until the call with context_of(it) has returned."""
    return _pool


def context_of(pool: Optional[_Pool]) -> Any:
    return ctypes.byref(pool.context) if pool else None


# ---------------------------------------------------------------------------------- numbers


def size(name: str, value: Any) -> int:
    """A whole number that fits a size_t."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: an int expected, got {type(value).__name__}") from None
    if not 0 <= number < 2**63:
        raise ValueError(f"{name}: {number} is out of range")
    return number


def number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name}: a number expected, got {type(value).__name__}")
