# SPDX-License-Identifier: MIT
"""Entry point of `python3 -m isobit_perf`."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
