# SPDX-License-Identifier: MIT
"""isobit-perf report: a result or the history in the formats of others."""
