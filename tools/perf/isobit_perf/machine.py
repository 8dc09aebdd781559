# SPDX-License-Identifier: MIT
"""What machine this is."""

import ctypes
import hashlib
import json
import os
import platform
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from .files import Machine


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _cpuinfo() -> tuple[str, list[str]]:
    """The name and the features of the CPU as the kernel gives them, on x86 and elsewhere."""
    text = _read("/proc/cpuinfo")

    def first(*keys: str) -> str:
        for key in keys:
            match = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
            if match:
                return match.group(1).strip()
        return ""

    return (first("model name", "Hardware", "CPU part") or platform.machine(),
            sorted(first("flags", "Features").split()))


def _compiler() -> str:
    try:
        done = subprocess.run([os.environ.get("CC", "cc"), "--version"], capture_output=True,
                              text=True, check=True, timeout=20)
        return done.stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


@lru_cache
def _library_info(library: Path) -> tuple[str, list[str], str, str, str] | None:
    """CPU, features, compiler, SLEEF and version of a libisobit.so; None when it is no such."""
    try:
        info = ctypes.CDLL(str(library.resolve())).iso_info_json
        needed = ctypes.c_size_t(0)
        info(None, ctypes.c_size_t(0), ctypes.byref(needed))
        text = ctypes.create_string_buffer(needed.value + 1)
        if info(text, ctypes.c_size_t(len(text)), None) != 0:
            return None
        found = json.loads(text.value)
        versions = found["versions"]
        return (found["cpu"]["name"], sorted(found["cpu"]["features"]), versions["compiler"],
                versions["sleef"], versions["isobit"])
    except (OSError, AttributeError, ValueError, KeyError, TypeError):
        return None


def library_version(library: Path) -> str:
    """The version that the library says, "" where it says none."""
    info = _library_info(library)
    return info[4] if info else ""


def threads() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def describe(library: Path | None = None) -> Machine:
    """This machine, with the compiler of `library`, or the one of this machine without."""
    info = _library_info(library) if library else None
    cpu, features, compiler, sleef = info[:4] if info else (*_cpuinfo(), _compiler(), "none")
    kernel = ".".join(re.findall(r"\d+", platform.release())[:2])
    parts = [cpu, *features, compiler, kernel, str(threads()), sleef]
    fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Machine(fingerprint, cpu, features, compiler, kernel, threads(), sleef)


def load() -> tuple[float, float, float]:
    """The load averages of 1, 5 and 15 minutes."""
    return os.getloadavg()
