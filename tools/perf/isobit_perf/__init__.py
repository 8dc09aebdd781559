# SPDX-License-Identifier: MIT
"""isobit-perf: compares the speed of two builds on a machine that is not quiet."""
