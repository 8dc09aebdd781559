#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation run: breaks the sources in small ways, one at a time, and looks whether a test fails.

A mutant is one change by one of the rules of rules.py. It is compiled in a copy of the sources,
its objects are put before the libraries on the link line of the test programs (so that the linker
never takes the good ones out of the archive), and the programs run, those that have killed most in
their time first, until one fails, crashes or exceeds its time: then the mutant is killed. What
does not compile is invalid and not counted; what compiles to the same object is no change. A
mutant that survives shows a gap of the tests, or changes nothing that anybody could observe: then
tests/mutate/equivalent.txt says why.

All validations of the files that read untrusted input are mutated, of the rest a choice that a seed
makes (--all: everything). Results are kept, so a run that was interrupted goes on.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time

from areas import AREAS, QUOTA, flag_of, problems, stages
from rules import mutants_of, read_equivalent
from trials import KINDS, PROGRAMS, ROOT, Build, Order, Worker, copy_tree, machine_has, measure, say

WANTED = 95.0  # per cent killed


def choose(mutants, seed, each):
    """All validations of the loader, and of each area its quota, or of each file so many, spread over
    files and rules."""
    chosen = [] if each else [m for m in mutants if m.area == "loader" and m.validation]
    quotas = dict.fromkeys((m.path for m in mutants), each) if each else QUOTA
    for place, quota in quotas.items():
        groups = {}
        for m in mutants:
            if m.path == place or (m.area == place and not (place == "loader" and m.validation)):
                groups.setdefault((m.path, m.rule), []).append(m)
        for group in groups.values():
            group.sort(key=lambda m: hashlib.sha256((seed + m.name()).encode()).digest())
        turn, taken = 0, []
        while len(taken) < quota and any(len(g) > turn for g in groups.values()):
            layer = [g[turn] for g in groups.values() if len(g) > turn]
            layer.sort(key=lambda m: hashlib.sha256((seed + m.name()).encode()).digest())
            taken += layer
            turn += 1
        chosen += taken[:quota]
    return chosen


def report(mutants, results, known):
    """Prints the figures and what survived; returns the exit code."""
    rows, survivors, listed = {}, [], []
    for m in mutants:
        result = results.get(m.name())
        if not result:
            continue
        what = "survived" if result["result"] == "alive" else result["result"]
        if what == "survived" and m.key() in known:
            what = "equivalent"
            listed.append(m)
        elif what == "survived":
            survivors.append(m)
        for place in (m.path, m.area, "all"):
            row = rows.setdefault(place, dict.fromkeys(
                ("killed", "survived", "equivalent", "same", "invalid"), 0))
            row[what] += 1
    say("\n%-34s %7s %7s %9s %11s %6s %8s %8s" % ("", "mutants", "killed", "survived",
                                                  "equivalent", "same", "invalid", "score"))
    code = 0
    for place in [p for a in AREAS for p in AREAS[a] + [a]] + ["all"]:
        row = rows.get(place)
        if not row:
            continue
        counted = row["killed"] + row["survived"]
        score = 100.0 * row["killed"] / counted if counted else 100.0
        if place in AREAS or place == "all":
            place = "== " + place
        say("%-34s %7d %7d %9d %11d %6d %8d %6.1f %%" % (
            place, counted + row["equivalent"], row["killed"], row["survived"], row["equivalent"],
            row["same"], row["invalid"], score))
        if place == "== all" and score < WANTED:
            code = 1
        if place == "== loader" and row["survived"]:
            code = 1
    for m in listed:
        say("\nequivalent: " + m.entry() + "  " + known[m.key()])
    for m in survivors:
        say("\nsurvived (line %d): %s" % (m.line, m.entry().rstrip()))
    missing = len(mutants) - sum(m.name() in results for m in mutants)
    if missing:
        say("\nmutate: %d mutants have not been tried yet" % missing)
        code = 1
    say("\nmutate: %s" % ("too much survives" if code else "good: %.0f %% or more are killed, and "
                          "in the loader all" % WANTED))
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="*", help="only mutants of these files, or areas: " +
                        ", ".join(AREAS))
    parser.add_argument("--all", action="store_true", help="all mutants, not a choice")
    parser.add_argument("--each", type=int, metavar="N", help="so many of each file, and no quotas")
    parser.add_argument("--only", metavar="NAME", help="mutants by their names in --list, with commas between")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--report", action="store_true", help="print the results, run nothing")
    parser.add_argument("--retry", action="store_true", help="try survivors and invalid ones again")
    parser.add_argument("--first", action="store_true", help="only the first, fast tests of each")
    parser.add_argument("--alive", action="store_true",
                        help="only those that were alive after the first tests; with --retry anew")
    parser.add_argument("--seed", default="1", help="of the choice (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "mutate"),
                        help="where copies and results lie (build/mutate)")
    parser.add_argument("--lists", action="store_true",
                        help="only say what is wrong with the lists of files, in areas.py")
    options = parser.parse_args()
    wrong = list(problems(PROGRAMS))
    for line in wrong:
        say("mutate: " + line)
    if options.lists or wrong:
        return 1 if wrong else 0

    work = os.path.abspath(options.work)
    os.makedirs(work, exist_ok=True)
    stale = options.report or options.list
    tree = ROOT if stale else copy_tree(work)
    texts = {}
    for path in (p for area in AREAS.values() for p in area):
        flag = flag_of(path)
        if flag and not machine_has(flag):
            say("mutate: SKIPPED: %s, the machine lacks %s" % (path, flag))
            continue
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            texts[path] = f.read()
    everything = [m for path, text in texts.items() for m in mutants_of(path, text)]
    mutants = everything if options.all or options.only else \
        choose(everything, options.seed, options.each)
    if options.only:
        mutants = [m for m in mutants if m.name() in options.only.split(",")]
    if options.files:
        mutants = [m for m in mutants if m.path in options.files or m.area in options.files]
    known = read_equivalent()
    if options.list:
        for m in mutants:
            say("%s %s:%d %s\n  - %s\n  + %s" % (m.name(), m.path, m.line, m.rule, m.old, m.new))
        say("%d mutants of %d" % (len(mutants), len(everything)))
        return 0

    # A result is good for the file that it was found with.
    state, results = os.path.join(work, "results.jsonl"), {}
    digests = {p: hashlib.sha256(t.encode()).hexdigest()[:12] for p, t in texts.items()}
    if os.path.exists(state):
        with open(state, encoding="utf-8") as f:
            for line in f:
                r = json.loads(line)
                if r["file"] == digests.get(r["path"]):
                    results[r["name"]] = r
    if options.report:
        there = {m.key() for m in everything}
        for key in known:  # ("last place" is of constants.py)
            if key not in there and key[0] in texts and key[1] != "last place":
                say("mutate: equivalent.txt has what is no mutant any more: %s: %s: %s" % key[:3])
        for m in mutants:
            if m.key() in known:  # not run at all
                results.setdefault(m.name(), {"result": "survived"})
        return report(mutants, results, known)
    again = set()
    if options.retry or options.only:
        for m in mutants:
            if results.get(m.name(), {}).get("result") in (
                    "survived", "alive", "invalid") or options.only:
                results.pop(m.name(), None)
                again.add(m.name())
    # The first stage for all, then the others, which take long, for those that are alive. What
    # tells most comes first, then a mixture, in case that somebody stops us.
    order = ["drop if", "overflow", "limit"]
    mutants.sort(key=lambda m: (order.index(m.rule) if m.rule in order else len(order), m.name()))
    todo = [m for m in mutants if m.name() not in results and
            (m.name() in again or not options.alive)]
    alive = [m for m in mutants if results.get(m.name(), {}).get("result") == "alive"]
    if todo or alive:
        needed = {}  # of each kind of build, the programs
        for path in {m.path for m in todo + alive}:
            for kind, _, tests in list(stages(path))[:1 if options.first else None]:
                needed.setdefault(kind, set()).update(
                    "test_dispatch" if words[0].startswith("@") else words[0] for words in tests)
        builds = {kind: Build(work, kind, options.jobs, needed[kind]) for kind in KINDS
                  if kind in needed}
        say("running the tests without a mutant")
        limits = measure(builds, work, {m.path for m in todo + alive}, options.first)
        pristine = {}
        directory = os.path.join(work, "measure")
        for path in {m.path for m in todo + alive}:
            for kind, units, _ in stages(path):
                for unit in units if kind in builds else []:
                    if (kind, unit) not in pristine:
                        words, cwd = builds[kind].compile(unit, tree, directory + "/pristine.o")
                        subprocess.run(words, cwd=cwd, check=True)
                        with open(directory + "/pristine.o", "rb") as f:
                            pristine[kind, unit] = hashlib.sha256(f.read()).digest()
        workers, lock, first = queue.Queue(), threading.Lock(), Order(limits)
        for r in results.values():
            if r["result"] == "killed":
                first.add(r["path"], r["by"])
        for number in range(options.jobs):
            workers.put(Worker(number, work, builds, limits, pristine, first))
        done = [0, 0]

        def attempt(m):
            worker = workers.get()
            start = time.monotonic()
            try:
                result, by = worker.try_mutant(m, texts[m.path], results.get(m.name()))
            finally:
                workers.put(worker)
            with lock, open(state, "a", encoding="utf-8") as f:
                done[0] += 1
                results[m.name()] = {"name": m.name(), "path": m.path, "file": digests[m.path],
                                     "result": result, "by": by}
                f.write(json.dumps(results[m.name()]) + "\n")
                say("%4d/%d %-8s %5.1f s %s %s:%d %s %s" % (
                    done[0], done[1], result, time.monotonic() - start, m.name(), m.path, m.line,
                    m.rule, by))

        # Those that are known to be equivalent need not be run: no test will tell.
        for m in [m for m in todo + alive if m.key() in known]:
            results[m.name()] = {"result": "survived"}
        todo = [m for m in todo if m.key() not in known]
        for batch in (todo, None):
            if batch is None:
                batch = [m for m in mutants if results.get(m.name(), {}).get("result") == "alive"]
                if options.first:
                    break
            done = [0, len(batch)]
            say("%d mutants" % len(batch))
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for future in [pool.submit(attempt, m) for m in batch]:
                    future.result()
    return report(mutants, results, known)


if __name__ == "__main__":
    sys.exit(main())
