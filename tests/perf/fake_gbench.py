#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A program of Google Benchmark, as far as isobit-perf sees one. For tests only.

usage: fake_gbench.py [--slow NAME=PERCENT] [--without NAME] [--fault NAME=crash|hang|garbage|skip]
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

NAMES = ["BM_Copy/8", "BM_Copy/64", "BM_Map<int, 4>(x)/real_time", "BM_Sort"]


def main() -> int:
    parser = argparse.ArgumentParser()
    for option in ("slow", "without", "fault"):
        parser.add_argument(f"--{option}", default="")
    parser.add_argument("--benchmark_list_tests", default="false")
    parser.add_argument("--benchmark_filter", default=".")
    parser.add_argument("--benchmark_repetitions", type=int, default=1)
    parser.add_argument("--benchmark_out")
    parser.add_argument("--benchmark_out_format")
    args = parser.parse_args()
    names = [name for name in NAMES if name != args.without]
    if args.benchmark_list_tests == "true":
        print("\n".join(names))
        return 0
    slow, _, percent = args.slow.rpartition("=")
    broken, _, fault = args.fault.rpartition("=")
    rows: list[dict[str, object]] = []
    for name in names:
        if not re.search(args.benchmark_filter, name):
            continue
        if name == broken and fault == "skip":
            rows.append({"name": name, "run_type": "iteration", "error_occurred": True,
                         "error_message": "no device"})
            continue
        if name == broken and fault == "crash":
            os.kill(os.getpid(), signal.SIGABRT)
        if name == broken and fault == "hang":
            time.sleep(1000)
        if name == broken and fault == "garbage":
            Path(args.benchmark_out).write_text('{"benchmarks": [')
            return 0
        times = [2.0 * random.gauss(1.01, 0.002) for _ in range(args.benchmark_repetitions)]
        if name == slow:
            times = [time_ * (1 + float(percent) / 100) for time_ in times]
        rows += [{"name": name, "run_name": name, "run_type": "iteration", "real_time": time_,
                  "cpu_time": time_, "time_unit": "us"} for time_ in times]
        rows.append({"name": f"{name}_mean", "run_name": name, "run_type": "aggregate",
                     "real_time": 99.0, "cpu_time": 99.0, "time_unit": "us"})
    if rows:
        Path(args.benchmark_out).write_text(json.dumps({"context": {}, "benchmarks": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
