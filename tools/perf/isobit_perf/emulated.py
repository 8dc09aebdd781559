# SPDX-License-Identifier: MIT
"""Exact counts of executed NEON instructions, on any machine: isobit_ab for aarch64 under QEMU.

QEMU (Debian's qemu-user is built with plugins) counts with qemu_count.c, which is compiled when it
is needed. What is counted is the same call as under callgrind.
"""
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .callgrind import COUNTED, Once, execute
from .errors import PerfError

QEMU = "qemu-aarch64"
CPU = "cortex-a72"
SOURCE = Path(__file__).with_name("qemu_count.c")
CROSS = Path("/usr/aarch64-linux-gnu")  # Debian's C library for cross compilers


def _compiler() -> str:
    return os.environ.get("CC", "cc")


def missing(program: Path) -> str | None:
    """Why nothing can be counted here."""
    for name, package in ((QEMU, "qemu-user"), (_compiler(), "gcc")):
        if shutil.which(name) is None:
            return f"{name} is missing (package {package})"
    if not os.access(program, os.X_OK):
        return f"{program}: no such program (cmake --preset aarch64 and target isobit_ab)"
    return None


def _emulator(program: Path) -> list[str]:
    """QEMU, and where the program's libraries lie: in the build folder, as ./run unpacks them."""
    places = [program.resolve().parents[2] / "sysroot-arm64/usr/lib/aarch64-linux-gnu",
              CROSS / "lib"]
    return [QEMU, "-cpu", CPU, "-L", str(CROSS),
            "-E", "LD_LIBRARY_PATH=" + ":".join(map(str, places)), "-E", "LD_BIND_NOW=1"]


def benches(program: Path) -> list[str]:
    """The names that can be counted."""
    done = subprocess.run([*_emulator(program), str(program), "--list", "--isa", "neon"],
                          capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise PerfError(f"{program} --list: {lines[-1] if lines else 'failed'}")
    return [name for name in done.stdout.split() if name.endswith("/neon/t1")]


@contextmanager
def counter() -> Iterator[Once]:
    """What counts one call, with its plugin compiled."""
    with tempfile.TemporaryDirectory(prefix="isobit-perf.") as made:
        plugin = Path(made) / "qemu_count.so"
        done = subprocess.run([_compiler(), "-O2", "-shared", "-fPIC", "-o", str(plugin),
                               str(SOURCE)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise PerfError(f"{SOURCE.name}: {(done.stderr.splitlines() or ['failed'])[0]}")

        def once(program: Path, library: str, bench: str, folder: Path) -> int:
            out = plugin.with_name("count")
            out.unlink(missing_ok=True)
            execute([*_emulator(program), "-d", "plugin", "-D", "/dev/null", "-plugin",
                     f"{plugin},function={COUNTED},out={out}", str(program), "--count", bench,
                     "--a", library], folder)
            text = out.read_text() if out.exists() else ""
            if not text.endswith("\n"):
                raise PerfError(f"{QEMU} has not loaded the plugin")
            if not int(text):
                raise PerfError(f"{bench}: the program has never returned from {COUNTED}")
            return int(text)

        yield once
