# SPDX-License-Identifier: MIT
"""Entry point of `python3 -m isobit_perf`."""

from .cli import run

run()
