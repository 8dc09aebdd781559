# SPDX-License-Identifier: MIT
"""Types of arguments that several sub-commands have."""

import argparse
import math


def share(text: str) -> float:
    """2% or 0.02: at least 0 and below 1."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 2% or 0.02")
    return value


def above_zero(text: str) -> float:
    """A share above 0: a rate of errors, a confidence."""
    value = share(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return value
