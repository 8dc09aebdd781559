#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Golden data of sampling: what the logits warpers of transformers keep of given rows, and with which
probabilities. Usage: make_sampling.py tests/data/sampling.json (transformers 4.51, PyTorch on the CPU)
"""
import json
import sys

import torch
import transformers
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

SETTINGS = [
    {},
    {"temperature": 0.7},
    {"temperature": 3.0, "top_k": 12},
    {"top_k": 1},
    {"top_k": 1000},
    {"top_p": 0.9},
    {"top_p": 0.05},
    {"temperature": 1.5, "top_p": 0.95},
    {"min_p": 0.1},
    {"min_p": 1.0},
    {"temperature": 2.0, "min_p": 0.05},
    {"top_k": 20, "top_p": 0.8},
    {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 1.3, "top_k": 9, "top_p": 0.99, "min_p": 0.3},
]


def warpers(s):
    """In the order of GenerationMixin._get_logits_processor."""
    found = LogitsProcessorList()
    if "temperature" in s:
        found.append(TemperatureLogitsWarper(s["temperature"]))
    if "top_k" in s:
        found.append(TopKLogitsWarper(s["top_k"]))
    if "top_p" in s:
        found.append(TopPLogitsWarper(s["top_p"]))
    if "min_p" in s:
        found.append(MinPLogitsWarper(s["min_p"]))
    return found


def rows():
    torch.manual_seed(1)
    yield torch.randn(30)
    yield 4 * torch.randn(60)
    yield torch.linspace(-1, 1, 50)[torch.randperm(50)]
    row = 3 * torch.randn(40)
    row[::3] = -torch.inf  # what processors forbid
    yield row
    row = torch.randn(50)
    row[[5, 9, 30, 31]] = row[17].item()  # equal ones; a cut among them is the sort's affair
    yield row


def main():
    out = {"made_with": f"transformers {transformers.__version__}", "rows": []}
    for number, row in enumerate(rows()):
        cases = []
        for s in SETTINGS:
            if number == 4 and "top_p" in s:
                continue
            scores = warpers(s)(torch.zeros(1, 1, dtype=torch.long), row[None].clone())
            p = torch.softmax(scores, -1)[0]
            kept = (scores[0] > -torch.inf).nonzero()[:, 0].tolist()
            cases.append({"settings": s, "kept": kept,
                          "probabilities": [float(f"{p[i].item():.8g}") for i in kept]})
        logits = [None if x == -torch.inf else x for x in row.tolist()]
        out["rows"].append({"logits": logits, "cases": cases})
    with open(sys.argv[1], "w") as file:
        json.dump(out, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
