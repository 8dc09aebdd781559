# SPDX-License-Identifier: MIT
"""A neighbour that makes noise: streams memory in bursts, 0.05 to 0.5 s with pauses as long.

For campaigns that want to know what the verdicts are worth on a machine that others use.
"""

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FLOATS = 64 << 20  # 256 MiB in, 256 MiB out: more than a cache
PIECE = 2 << 20


def stream() -> None:
    """Makes noise until it is ended, or its parent is gone."""
    rng, parent = random.Random(1), os.getppid()
    a, b = np.ones(FLOATS, np.float32), np.zeros(FLOATS, np.float32)
    at = 0
    while os.getppid() == parent:
        until = time.monotonic() + rng.uniform(0.05, 0.5)
        while time.monotonic() < until:
            np.copyto(b[at:at + PIECE], a[at:at + PIECE])
            at = (at + PIECE) % FLOATS
        time.sleep(rng.uniform(0.05, 0.5))


@contextlib.contextmanager
def running(wanted: bool) -> Iterator[None]:
    """With `wanted`, a neighbour meanwhile."""
    if not wanted:
        yield
        return
    package = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen([sys.executable, "-m", f"{__package__}.neighbour"],
                          env={**os.environ, "PYTHONPATH": path}) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    stream()
