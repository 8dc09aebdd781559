#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Moves each constant of kernels/templates/math.h by one unit in the last place, up and down.

The functions are built once for AVX-512 and once for AVX2, with an array in place of the constants
(constants_kernels.c), so that a mutant needs no compiler. Each must be noticed by a committed hash of
the fixed plan (tests/suites/functions.c). What no hash notices is compared with the unchanged
functions over all 2^32 inputs: either it changes no result, and tests/mutate/equivalent.txt says
so, or the plan has a gap, and inputs that would close it are printed (`telling` in functions.c).

Results are kept in build/mutate/constants, so that an interrupted run goes on.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import struct
import subprocess
import sys

import rules
import trials

PATH = "kernels/templates/math.h"
SETS = ("avx512", "avx2")
RULE = "last place"
# Functions of math.h whose results are results of the kernels: their names in constants_probe, and
# the suites that call them.
RESULTS = {"vf_relu": ("relu", ["relu"]), "vf_silus": ("silu", ["silu"]),
           "vf_gelus_erf": ("gelu_erf", ["gelu_erf"]),
           "vf_gelus_tanh": ("gelu_tanh", ["gelu_tanh"]), "vf_tanhs": ("tanh", ["tanh"]),
           "vf_exps": ("exp", ["exp"]), "vf_erfs": ("erf", ["erf"]),
           "vf_exps_neg": ("exp_neg", ["softmax_exp", "logsumexp_log"])}


def neighbours(literal):
    """The next floats above and below, as C literals."""
    text = literal.rstrip("fF")
    x = float.fromhex(text) if text.lower().startswith("0x") else float(text)
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    if bits & 0x7fffffff == 0:
        return []
    return [struct.unpack("<f", struct.pack("<I", bits + d))[0].hex() + "f" for d in (1, -1)]


class Constant(rules.Mutant):
    """A mutant of one constant: the index-th of the file, which stands in code for these sets."""

    def __init__(self, source, first, end, to, step, index, sets):
        super().__init__(source, first, end, to, RULE, False)
        self.literal, self.step, self.index, self.sets = source.text[first:end], step, index, sets


def places_of(text):
    """(first, end, sets) of each floating-point literal in the code."""
    sets, found = [SETS], []
    lines = text.split("\n")
    at = 0
    tokens = [(first, end) for token, first, end in rules.Source(PATH, text).tokens
              if re.fullmatch(rules.NUMBER, token) and ("." in token or "p" in token)]
    for line in lines:
        if re.match(r"#if", line):
            sets.append(("avx512",) if line.startswith("#ifdef VF_SCALEF") else sets[-1])
        elif re.match(r"#else", line) and sets[-1] == ("avx512",):
            sets[-1] = ("avx2",)
        elif re.match(r"#endif", line):
            sets.pop()
        found += [(first, end, sets[-1]) for first, end in tokens if at <= first < at + len(line)]
        at += len(line) + 1
    return found


def constants_of(text):
    """All mutants, and the file with an array in place of the constants."""
    source, found, seen, literals = rules.Source(PATH, text), [], {}, []
    changed, done = [], 0
    for first, end, sets in places_of(text):
        for to, step in zip(neighbours(text[first:end]), (1, -1)):
            m = Constant(source, first, end, to, step, len(literals), sets)
            m.again = seen.get(m.key()[:4], 0)
            seen[m.key()[:4]] = m.again + 1
            found.append(m)
        changed += [text[done:first], "iso_probe_constants[%d]" % len(literals)]
        literals.append(text[first:end])
        done = end
    array = "__attribute__((visibility(\"default\"))) float iso_probe_constants[] = {%s};\n"
    return found, array % ", ".join(literals) + "".join(changed) + text[done:]


def users(text):
    """Names of functions and macros -> those that mention them."""
    code = rules.blank(text)
    heads = [(m.start(), m.group(1)) for m in
             re.finditer(r"^(?:static|ISO_INLINE)\b[^;{]*?\b(\w+)\(", code, re.M)]
    macros = {m.group(1) for m in re.finditer(r"^#define (\w+)", text, re.M)}
    ends = [first for first, _ in heads[1:]] + [len(code)]
    used = {}
    for (first, name), end in zip(heads, ends):
        for word in set(re.findall(r"\w+", code[first:end])):
            if word != name and (word in macros or any(word == n for _, n in heads)):
                used.setdefault(word, set()).add(name)
    return used


def results_of(text, at):
    """The results that a constant at this place has a part in."""
    code = rules.blank(text)
    line = text[text.rfind("\n", 0, at) + 1:at]
    macro = re.match(r"#define (\w+)", line)
    if macro:
        todo = [macro.group(1)]
    else:
        todo = [re.findall(r"^(?:static|ISO_INLINE)\b[^;{]*?\b(\w+)\(", code[:at], re.M)[-1]]
    used, seen = users(text), set(todo)
    while todo:
        for name in used.get(todo.pop(), set()) - seen:
            seen.add(name)
            todo.append(name)
    return [RESULTS[name] for name in RESULTS if name in seen]


class Trial:
    """The two libraries, and what constants_probe says about them."""

    def __init__(self, build, work, text):
        self.probe, self.libraries = os.path.join(build, "bin/tests/constants_probe"), {}
        os.makedirs(os.path.join(work, "templates"), exist_ok=True)
        with open(os.path.join(work, "templates/math.h"), "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            commands = {os.path.relpath(e["file"], trials.ROOT): e for e in json.load(f)
                        if not e["directory"].startswith(build + "/tests")}
        for isa in SETS:
            words = shlex.split(commands["kernels/%s/%s.c" % (isa, isa)]["command"])
            drop = {words.index("-o"), words.index("-o") + 1, words.index("-c"), len(words) - 1}
            words = [("-O1" if w == "-O3" else w) for i, w in enumerate(words)
                     if i not in drop and w != "-Werror"]
            self.libraries[isa] = os.path.join(work, isa + ".so")
            subprocess.run(words[:1] + ["-I" + work] + words[1:] + [
                "-w", "-DISO_ROLLED", '-DISO_VEC="%s/vec.h"' % isa,
                "-I" + os.path.join(trials.ROOT, "tests"), "-shared", "-o", self.libraries[isa],
                os.path.join(trials.HERE, "constants_kernels.c"), "-lsleef", "-lm"], check=True)

    def ask(self, *arguments):
        out = subprocess.run([self.probe, *arguments], check=True, capture_output=True, text=True)
        return [line.split() for line in out.stdout.splitlines()]


def noticed_by(trial, text, m):
    """Suites -> the sets and plans whose committed hashes the mutant misses."""
    suites = [s for _, names in results_of(text, m.first) for s in names] + ["telling"]
    noticed = {}
    for isa in m.sets:
        for name, *plans in trial.ask(trial.libraries[isa], *suites, "%d:%d" % (m.index, m.step)):
            noticed.setdefault(name, []).extend(isa + " " + p for p in plans)
        if noticed:
            break
    return noticed


def compare_all(trial, text, mutants, keep, pool):
    """What all 2^32 inputs say of mutants that no hash notices: results that each changes -> some
    inputs. Of the sets, the first one that the constant has a part in."""
    work, left = {}, {m.name(): 0 for m in mutants}
    differs = {m.name(): {} for m in mutants}
    for m in mutants:
        for function, _ in results_of(text, m.first):
            work.setdefault((m.sets[0], function), []).append(m)
            left[m.name()] += 1
    waiting = {pool.submit(trial.ask, "--exhaustive", function, trial.libraries[isa],
                           *("%d:%d" % (m.index, m.step) for m in group)): (isa, function, group)
               for (isa, function), group in sorted(work.items(), key=lambda item: len(item[1]))}
    for future in concurrent.futures.as_completed(waiting):
        isa, function, group = waiting[future]
        trials.say("all inputs of %s, %s: %d mutants" % (function, isa, len(group)))
        for m, (count, *inputs) in zip(group, future.result()):
            if int(count):
                differs[m.name()]["%s %s" % (isa, function)] = inputs
            left[m.name()] -= 1
            if not left[m.name()]:
                keep(m, differs[m.name()])


def report(mutants, results):
    known, gaps, same = rules.read_equivalent(), 0, 0
    quick = 0
    for m in mutants:
        r = results[m.name()]
        if r["noticed"]:
            words = ["%s (%s)" % (name, "quick" if any("quick" in p for p in plans) else "full")
                     for name, plans in r["noticed"].items()]
            quick += any("quick" in w for w in words)
            print("%4d %-18s %+d  %s" % (m.line, m.literal, m.step, ", ".join(words)))
        elif r.get("differs"):
            gaps += 1
            print("%4d %-18s %+d  NOT NOTICED: %s" % (m.line, m.literal, m.step, r["differs"]))
        elif "differs" not in r:
            gaps += 1
            print("%4d %-18s %+d  not noticed, not compared" % (m.line, m.literal, m.step))
        elif m.key() in known:
            same += 1
            print("%4d %-18s %+d  changes no result: %s" % (m.line, m.literal, m.step,
                                                          known[m.key()]))
        else:
            gaps += 1
            print("%4d %-18s %+d  changes no result, but equivalent.txt lacks\n%s" %
                  (m.line, m.literal, m.step, m.entry()))
    print("constants: %d mutants, %d noticed (%d by the quick plan too), %d change no result, "
          "%d left" % (len(mutants), len(mutants) - same - gaps, quick, same, gaps))
    return 1 if gaps else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(trials.ROOT, "build"),
                        help="a release build, with constants_probe (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--report", action="store_true", help="print the results, run nothing")
    parser.add_argument("--first", action="store_true", help="only the hashes, not all inputs")
    parser.add_argument("--retry", action="store_true", help="try what no hash noticed again")
    options = parser.parse_args()
    with open(os.path.join(trials.ROOT, PATH), encoding="utf-8") as f:
        text = f.read()
    mutants, variable = constants_of(text)
    if options.list:
        for m in mutants:
            print("%4d %-18s %+d %-18s %s: %s" % (
                m.line, m.literal, m.step, m.replacement, " ".join(m.sets),
                " ".join(name for name, _ in results_of(text, m.first))))
        return 0
    build = os.path.abspath(options.build)
    work = os.path.join(build, "mutate", "constants")
    os.makedirs(work, exist_ok=True)
    state, results = os.path.join(work, "results.jsonl"), {}
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    if os.path.exists(state):
        with open(state, encoding="utf-8") as f:
            for line in f:
                name, r = json.loads(line)
                if r["file"] == digest:
                    results[name] = r
    if options.retry:
        results = {name: r for name, r in results.items() if r["noticed"]}
    if options.report:
        return report([m for m in mutants if m.name() in results], results)
    if not all(trials.machine_has(flag) for flag in ("avx2", "avx512vl")):
        sys.exit("constants: this machine lacks AVX-512")

    def keep(m, **more):
        r = dict(results.get(m.name(), {}), file=digest, **more)
        results[m.name()] = r
        with open(state, "a", encoding="utf-8") as f:
            f.write(json.dumps([m.name(), r]) + "\n")

    trial = Trial(build, work, variable)
    for isa in SETS:
        wrong = trial.ask(trial.libraries[isa], "telling",
                          *(s for _, names in RESULTS.values() for s in names))
        if wrong:
            sys.exit("constants: unchanged, %s misses the committed hashes: %s" % (isa, wrong))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        todo = [m for m in mutants if m.name() not in results]
        waiting = {pool.submit(noticed_by, trial, text, m): m for m in todo}
        for done, future in enumerate(concurrent.futures.as_completed(waiting)):
            m = waiting[future]
            keep(m, noticed=future.result())
            trials.say("%d/%d line %d %s %+d: %s" % (
                done + 1, len(todo), m.line, m.literal, m.step,
                "noticed" if results[m.name()]["noticed"] else "not noticed"))
        if not options.first:
            left = [m for m in mutants if not results[m.name()]["noticed"] and
                    "differs" not in results[m.name()]]
            compare_all(trial, text, left, lambda m, differs: keep(m, differs=differs), pool)
    return report(mutants, results)


if __name__ == "__main__":
    sys.exit(main())
