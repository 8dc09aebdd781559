# SPDX-License-Identifier: MIT
"""The products that a program calls a BLAS for, one by one, with each BLAS.

measure.py REPLAY COMMAND...   runs COMMAND with isobit, notes its calls (ISOBIT_VERBOSE), times each
                               of them in a process for each library, in turns, and prints Markdown
"""

import collections
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare

TURNS = 5
MOST = 300  # different calls, those that take longest together
MEGABYTES = 12  # operands in turns from so much: from L3, as a rule
LINE = re.compile(r"^iso_verbose,1,exec,(sgemm|sgemv|ssyrk),[^,]*,([^,]*),thr\d+,([0-9.]+)ms", re.M)


def calls_of(library, command, threads):
    """{"sgemm m64n64k64:...": number of calls}, those that take longest first."""
    done = subprocess.run(command, env=library.environment(threads, ISOBIT_VERBOSE=1), text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit("calls: exit %d: %s" % (done.returncode, done.stdout.strip()[-2000:]))
    count, weight = collections.Counter(), collections.Counter()
    for routine, shape, milliseconds in LINE.findall(done.stdout):
        count[routine + " " + shape] += 1
        weight[routine + " " + shape] += float(milliseconds)
    if not count:
        sys.exit("calls: this program called no sgemm, sgemv or ssyrk of libisobit_blas")
    return {call: count[call] for call, _ in weight.most_common(MOST)}


def seconds_of(library, replay, calls, threads):
    """[(hot, in turns)] of a call of each kind."""
    done = subprocess.run([replay, str(MEGABYTES)], env=library.environment(threads), text=True,
                          input="".join(call + "\n" for call in calls), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit("%s: %s" % (library.name, done.stderr))
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def main():
    def say(text):
        print("calls: " + text, file=sys.stderr, flush=True)

    replay, command = sys.argv[1], sys.argv[2:]
    threads = int(os.environ.get("THREADS", "1"))
    load = compare.load()
    found = compare.libraries(say)
    calls = calls_of(found["isobit"], command, threads)
    say("%d calls of %d kinds" % (sum(calls.values()), len(calls)))
    others = [key for key in ("openblas_best", "blis_best") if key in found]
    keys = others + ["isobit"]
    best = {}
    for turn in range(TURNS):
        for i in range(len(keys)):
            key = keys[(turn + i) % len(keys)]
            for call, pair in zip(calls, seconds_of(found[key], replay, calls, threads)):
                known = best.get((call, key), pair)
                best[call, key] = (min(known[0], pair[0]), min(known[1], pair[1]))

    names = ["%s, %s" % (found[key].name, found[key].kernel) for key in others] + ["isobit"]
    print("%s. %d thread%s. Load before the first run %.2f.\n" %
          (compare.machine(), threads, "" if threads == 1 else "s", load))
    print("| calls | product | %s | against the best: hot | from %d MiB |" %
          (" | ".join(names), MEGABYTES))
    print("|--:|---|%s" % ("--:|" * (len(names) + 2)))
    ratios = {}
    for call, count in calls.items():
        ours = best[call, "isobit"]
        ratio = [min(best[call, key][i] for key in others) / ours[i] if others else float("nan")
                 for i in range(2)]
        ratios[call] = ratio
        print("| %d | `%s` | %s | %.2f | %.2f |" %
              (count, call, " | ".join(compare.in_unit(best[call, key][0]) for key in keys),
               *ratio))
    if not others:
        return
    for i, where in enumerate(("hot", "from %d MiB" % MEGABYTES)):
        total = {key: sum(n * best[call, key][i] for call, n in calls.items()) for key in keys}
        each = compare.span(ratio[i] for ratio in ratios.values())
        print("\n%s: %s times as fast as the best for each product; all calls together %s." %
              (where, each, ", ".join("%s %s" % (found[key].name, compare.in_unit(total[key]))
                                      for key in keys)))
        slower = ["`%s` %.2f" % (call, ratio[i]) for call, ratio in ratios.items()
                  if ratio[i] < 0.97]
        print("Slower by more than 3 %%: %s." % ("; ".join(slower) if slower else "nothing"))


if __name__ == "__main__":
    main()
