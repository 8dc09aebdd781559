# SPDX-License-Identifier: MIT
"""Results, runs and histories of which the truth is known, for the tests."""

import json
from pathlib import Path
from typing import Any

import numpy as np

FINGERPRINT = "00112233aabbccdd"
MEAN_NAME = 'a<b>&"\'`|$x_1$ *y*\n\x01\u202eé漢\ud800</script>'


def bench(name: str, change: float, verdict: str, **other: Any) -> dict[str, Any]:
    """One benchmark of an ab.json."""
    known = {"bench": name, "n": 12, "a_ns": 812.4, "b_ns": 812.4 * (1 + change),
             "change": change, "ci": [change - 0.008, change + 0.009], "p": 0.00049, "q": 0.002,
             "margin": 0.02, "noise": 0.004, "verdict": verdict, "same_output": True,
             "d": [change] * 12}
    return known | other


def result(benches: list[dict[str, Any]], **other: Any) -> dict[str, Any]:
    """An ab.json."""
    side = {"name": "HEAD~1", "commit": "a" * 40, "path": "/tmp/a.so", "version": "0.1.0"}
    known = {
        "v": 1, "kind": "ab", "a": side,
        "b": side | {"name": "HEAD", "commit": "b" * 40},
        "machine": {"fingerprint": FINGERPRINT, "cpu": "Some CPU", "features": ["avx2"],
                    "compiler": "gcc 12", "kernel": "6.1", "threads": 2, "sleef": "3.5"},
        "settings": {"delta": 0.02, "fdr": 0.05, "confidence": 0.95}, "seed": 7,
        "started": "2026-05-01T10:00:00+00:00", "seconds": 61.2, "processes": 12,
        "verdict": "SAME", "geomean": {"change": 0.001, "ci": [-0.002, 0.004], "verdict": "SAME"},
        "command": "isobit-perf ab HEAD~1 HEAD --seed 7", "benches": benches,
        "errors": []}
    return known | other


def many(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Benchmarks of all verdicts with long names."""
    random = np.random.default_rng(seed)
    found = []
    for i in range(count):
        change = float(random.normal(0, 0.004))
        verdict = "SAME"
        if i % 29 == 3:
            change, verdict = 0.05 + change, "REGRESSION"
        elif i % 31 == 5:
            change, verdict = -0.06 + change, "FASTER"
        elif i % 7 == 2:
            change, verdict = 0.018 + change, "INCONCLUSIVE"
        name = f"gemm_f32/isa:avx512/ta:0/tb:1/m:{64 * i}/n:512/k:512/threads:1"
        found.append(bench(name, change, verdict, noise=float(abs(random.normal(0, 0.01)))))
    return found


def gbench(names: dict[str, float], repetitions: int, seed: int, noise: float = 0.01,
           **context: Any) -> dict[str, Any]:
    """A run of Google Benchmark: each name with the time that is true of it."""
    random = np.random.default_rng(seed)
    return {"context": {"host_name": "h", "num_cpus": 2, "date": "2026-05-01T12:00:00+02:00"}
            | context,
            "benchmarks": [{"name": name, "run_name": name, "run_type": "iteration",
                            "repetitions": repetitions, "repetition_index": i,
                            "real_time": ns * float(np.exp(random.normal(0, noise))),
                            "cpu_time": 2 * ns, "time_unit": "ns"}
                           for name, ns in names.items() for i in range(repetitions)]}


def commit(index: int) -> str:
    """The name of a commit that no repository has."""
    return f"{index:040x}"


def history(steps: dict[int, float], seed: int, length: int = 60, name: str = "gemm",
            noise: float = 0.01) -> list[dict[str, Any]]:
    """Lines of a history: from commit k on, the times are steps[k] times as long."""
    random = np.random.default_rng(seed)
    lines = []
    level = 812.0
    for i in range(length):
        level *= steps.get(i, 1.0)
        ns = level * float(np.exp(random.normal(0, noise)))
        lines.append({"v": 1, "t": f"2026-05-01T{i // 60:02d}:{i % 60:02d}:00Z",
                      "commit": commit(i), "bench": name, "fp": FINGERPRINT, "n": 12,
                      "med_ns": ns, "ci": [ns * 0.99, ns * 1.012]})
    return lines


def write_json(path: Path, document: Any) -> Path:
    """A file of JSON; returns its path."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    """A file of JSON lines, its folder made; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
