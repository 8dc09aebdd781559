#!/usr/bin/python3 -IS
# SPDX-License-Identifier: MIT
"""Speaks the protocol of isobit_ab from a model whose truth is known. For tests only.

The model is the JSON file that FAKE_MODEL names; all its keys may lack:
  names       the benchmarks                slow       {bench: percent} in B
  noise       sd of ln(B/A) per process     drift      growth of both sides per process
  outliers    share of the blocks in which A takes twice as long
  base        factor of both sides
  slow_env    {variable: percent} that its presence in the environment costs
  crash hang garbage vanish different error    the one benchmark to which that happens
  only        "b": it happens only where the sides differ
  first       it happens in that many executions only; counted in the file FAKE_COUNT
  delay       seconds that each benchmark takes
A library whose file contains "slow NAME PERCENT" is slower there.
"""

import json
import math
import os
import random
import re
import signal
import sys
import time
import zlib

# A session starts dozens of these, so nothing that takes long to import: no argparse, pathlib, typing.


class Arguments:
    """Those of isobit_ab."""

    def __init__(self, words: "list[str]") -> None:
        self.a = self.b = self.benches = self.isa = self.order = ""
        self.bench: "list[str]" = []
        self.inject: "list[str]" = []
        self.list = False
        self.seed, self.offset, self.blocks, self.slot, self.seconds = 1, 2, 2, 0.1, 0.1
        while words:
            name, given = words.pop(0)[2:], []
            while words and not words[0].startswith("--"):
                given.append(words.pop(0))
            if name not in vars(self) or (name not in ("bench", "list") and len(given) != 1):
                sys.exit(f"fake_ab: --{name} {given}")
            before = vars(self)[name]
            if name == "bench":
                self.bench = given
            elif name == "inject":
                self.inject += given
            else:
                setattr(self, name, True if name == "list" else type(before)(given[0]))


def model():
    path = os.environ.get("FAKE_MODEL")
    found = {}
    if path:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    found.setdefault("names", [f"op/{n}x{n}/avx2/t1" for n in range(1, 9)])
    return found


def library_slowness(path: str, name: str) -> float:
    with open(path, "rb") as file:
        text = file.read().decode("utf-8", "replace")
    return sum(float(found.group(2)) for found in re.finditer(r"slow (\S+) ([\d.]+)", text)
               if found.group(1) == name)


def say(value) -> None:
    print(json.dumps(value), flush=True)


def happens(truth, what: str, name: str, args: Arguments) -> bool:
    if truth.get(what) != name:
        return False
    if truth.get("only") == "b" and args.a == args.b:
        return False
    if "first" in truth:
        with open(os.environ["FAKE_COUNT"], "a+", encoding="utf-8") as file:  # a dot for each
            count = file.tell()
            file.write(".")
        return count < int(truth["first"])
    return True


def bench(name: str, truth, args: Arguments, inject: "dict[str, float]") -> None:
    rng = random.Random(f"{args.seed}/{args.offset}/{name}")
    time.sleep(truth.get("delay", 0))
    if happens(truth, "hang", name, args):
        time.sleep(1000)
    if happens(truth, "crash", name, args):
        os.kill(os.getpid(), signal.SIGSEGV)
    if happens(truth, "garbage", name, args):
        print("Segmentation fault (core dumped)", flush=True)
        return
    if happens(truth, "vanish", name, args):
        return
    if happens(truth, "error", name, args):
        say({"type": "error", "bench": name, "which": "b", "why": "no such instruction set"})
        return
    ns = 1000.0 * truth.get("base", 1) * (1 + truth.get("drift", 0) * args.offset / 64)
    ns *= 1 + sum(p for v, p in truth.get("slow_env", {}).items() if v in os.environ) / 100
    a = ns * (1 + library_slowness(args.a, name) / 100)
    b = ns * (1 + library_slowness(args.b, name) / 100)
    b *= (1 + truth.get("slow", {}).get(name, 0) / 100) * (1 + inject.get(name, 0) / 100)
    b *= math.exp(rng.gauss(0, truth.get("noise", 0.005)))
    times: dict[str, list[float]] = {"a": [], "b": []}
    few = args.blocks if "outliers" in truth else min(args.blocks, 10)  # else they are all equal
    for _ in range(few):
        outlier = rng.random() < truth.get("outliers", 0)
        times["a"] += [a, a * (3 if outlier else 1)]
        times["b"] += [b, b]
    digest = f"{zlib.crc32(name.encode()):016x}"
    other = "0" * 16 if truth.get("different") == name else digest
    say({"type": "bench", "bench": name, "calls": 100, **times, "cpu_a": a, "cpu_b": b,
         "hash_a": digest, "hash_b": other, "canary": [100.0, 200.0],
         "work": {"flops": 1.0, "bytes": 2.0}})


def main() -> int:
    args = Arguments(sys.argv[1:])
    truth = model()
    known = truth["names"]
    if args.isa and not any(args.isa in name.split("/") for name in known):
        print(f"this machine cannot run {args.isa}", file=sys.stderr)
        return 77
    if args.list:
        print("\n".join(name for name in known if not args.isa or args.isa in name.split("/")))
        return 0
    names = args.bench
    if not names:
        with open(args.benches, encoding="utf-8") as file:
            names = file.read().split()
    for name in names:
        if name not in known:
            print(f"there is no benchmark {name}", file=sys.stderr)
            return 2
    inject = {part.rpartition("=")[0]: float(part.rpartition("=")[2]) for part in args.inject}
    say({"type": "process", "v": 1, "seed": args.seed, "offset": args.offset,
         "a": {"path": args.a, "version": "1"}, "b": {"path": args.b, "version": "1"},
         "isas": ["avx2"], "cpu": "fake", "threads": 2})
    random.Random(args.seed).shuffle(names)
    for name in names:
        bench(name, truth, args, inject)
    say({"type": "end", "benches": len(names)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
