# SPDX-License-Identifier: MIT
"""Child processes that end with their parent, are killed when they hang, and talk in lines."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

LONGEST_LINE = 1 << 20
# Part of util-linux. (With preexec_fn instead, Python would lose a Ctrl-C that comes in a fork.)
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


class ChildFailed(Exception):
    """A child that hung or could not be started."""


def describe_status(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _kill(child: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def _pump(child: "subprocess.Popen[bytes]", silence: float, limit: float,
          on_line: Callable[[str], None]) -> None:
    assert child.stdout is not None
    fd, buffer, begun = child.stdout.fileno(), b"", time.monotonic()
    heard = begun
    while True:
        left = min(heard + silence, begun + limit) - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            shown = silence if heard + silence < begun + limit else limit
            raise ChildFailed(f"hangs: killed after {shown:g} s")
        data = os.read(fd, 1 << 16)
        if not data:
            break
        *lines, buffer = (buffer + data).split(b"\n")
        if lines:
            heard = time.monotonic()
        for line in lines:
            on_line(line.decode("utf-8", "replace"))
        if len(buffer) > LONGEST_LINE:
            raise ChildFailed("prints a line without end")
    if buffer:
        on_line(buffer.decode("utf-8", "replace"))


def run(argv: Sequence[str], on_line: Callable[[str], None], *, silence: float = 1e6,
        limit: float = 1e6,
        environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Runs a program; its exit status, and the end of what it wrote to stderr.

    It is killed, with all that it started, after `silence` seconds without a line, after `limit`
    seconds in all, and when on_line raises.
    """
    with tempfile.TemporaryFile() as errors:
        if not shutil.which(argv[0]):
            raise ChildFailed(f"{argv[0]}: no such program")
        try:
            child = subprocess.Popen(
                [*WITH_PARENT, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, env={**os.environ, **(environment or {})},
                start_new_session=True)
        except OSError as error:
            raise ChildFailed(f"{argv[0]}: {error.strerror}") from None
        try:
            _pump(child, silence, limit, on_line)
            try:
                status = child.wait(min(silence, limit))
            except subprocess.TimeoutExpired:
                raise ChildFailed("hangs: closed its output and did not end") from None
        finally:
            _kill(child)
            if child.stdout:
                child.stdout.close()
        errors.seek(max(0, os.fstat(errors.fileno()).st_size - 4000))
        return status, errors.read().decode("utf-8", "replace").strip()
