# SPDX-License-Identifier: MIT
"""Runs a program once with each BLAS library and compares times and bits.

The measure.py of each program imports this. A program is run as a child process, so that each
library is loaded afresh; which one is chosen by the environment alone:

  reference   LD_LIBRARY_PATH names the folder of Debian's libblas3, its default
  OpenBLAS    the same with libopenblas0-pthread
  BLIS        the same with libblis4-pthread
  isobit      LD_PRELOAD names libisobit_blas.so.0; the reference lies beneath it

Where PYTHON names another Python than Debian's, packages there bring a BLAS of their own (a wheel of
NumPy an OpenBLAS, one of PyTorch MKL), and that one is compared with isobit.

OpenBLAS and BLIS choose their kernels by the model of the CPU and choose poorly on models that are
newer than they are. So each of their kernels that the CPU can run is tried, and the fastest one
counts as the library's best; what the library would have chosen is printed beside it.
"""

import json
import math
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEBIANS = "/usr/bin/python3"
PYTHON = os.environ.get("PYTHON") or DEBIANS
REFERENCE, OPENBLAS, BLIS = "blas", "openblas-pthread", "blis-pthread"

# A value of these in the caller's environment would change what is measured.
OURS = ("LD_PRELOAD", "LD_LIBRARY_PATH", "OPENBLAS_", "GOTO_", "BLIS_", "OMP_", "GOMP_", "MKL_",
        "ISOBIT_", "ATEN_", "DNNL_", "ONEDNN_", "GGML_")


class Failed(Exception):
    """A child process that did not end well: the last lines of what it printed."""


def folder(name):
    triplet = sysconfig.get_config_var("MULTIARCH") or platform.machine() + "-linux-gnu"
    return os.path.join("/usr/lib", triplet, name)


def isobit_library():
    """The path of libisobit_blas.so.0: ISOBIT_BLAS, or that of the release build."""
    path = os.environ.get("ISOBIT_BLAS") or os.path.join(ROOT, "build/lib/libisobit_blas.so.0")
    if not os.path.exists(path):
        sys.exit("there is no %s" % path)
    return path


def build_isobit():
    """Brings the release build's library up to date, unless ISOBIT_BLAS names one."""
    if os.environ.get("ISOBIT_BLAS"):
        return
    build = os.path.join(ROOT, "build")
    steps = [["cmake", "--build", build, "-j", "2", "--target", "isobit_blas_shared"]]
    if not os.path.exists(os.path.join(build, "CMakeCache.txt")):
        steps.insert(0, ["cmake", "--preset", "release", "-DISOBIT_BENCH=OFF"])
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0:
            sys.exit(done.stdout[-2000:] + "\nthe library was not built")


class Library:
    """A BLAS as a child process gets it: a name and an environment."""

    def __init__(self, name, **variables):
        self.name = name
        self.kernel = ""
        self.variables = variables

    def environment(self, threads, **more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        for variable in ("OPENBLAS", "BLIS", "OMP", "ISOBIT"):
            clean[variable + "_NUM_THREADS"] = str(threads)
        clean.update(self.variables)
        clean.update({k: str(v) for k, v in more.items()})
        return clean

    def run(self, command, threads=1, timeout=600, **more):
        """What the command prints on stdout; Failed when it ends badly."""
        try:
            done = subprocess.run(command, env=self.environment(threads, **more), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failed("%s: not done after %d s" % (self.name, timeout)) from None
        if done.returncode != 0:
            raise Failed("%s: exit %d: %s" % (self.name, done.returncode,
                                              done.stderr.strip()[-2000:]))
        return done.stdout

    def run_json(self, command, threads=1, timeout=600, **more):
        """The JSON object in the last line that the command prints."""
        return json.loads(self.run(command, threads, timeout, **more).strip().split("\n")[-1])


PROBE = """
import json, time
import numpy as np
a = np.ones((768, 768), np.float32)
a @ a
best = 1e9
for _ in range(8):
    start = time.perf_counter()
    a @ a
    best = min(best, time.perf_counter() - start)
print(json.dumps(2 * 768**3 / best * 1e-9))
"""

OPENBLAS_NAME = """
import ctypes, json
library = ctypes.CDLL("libopenblas.so.0")
library.openblas_get_corename.restype = ctypes.c_char_p
print(json.dumps(library.openblas_get_corename().decode()))
"""


def kept_once(found):
    """The keys of found: a library that chooses its fastest kernel itself stands there once."""
    return [key for key in found
            if not (key.endswith("_best") and found[key] is found.get(key[:-5]))]


def cpu_flags():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        for line in text:
            if line.startswith(("flags", "Features")):
                return line.split(":")[1].split()
    return []


def openblas_kernel(library):
    return library.run_json([PYTHON, "-c", OPENBLAS_NAME])


def blis_kernel(library):
    done = subprocess.run([PYTHON, "-c", PROBE], text=True, stderr=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          env=library.environment(1, BLIS_ARCH_DEBUG=1))
    words = (done.stdout + done.stderr).split("'")
    return words[1] if len(words) > 2 else "unknown"


def fastest(name, where, variable, choices, kernel_of, say):
    """(as the library chooses, with its fastest kernel): the same object where these are one."""
    path = folder(where)
    if not os.path.exists(os.path.join(path, "libblas.so.3")):
        say("%s: not installed (%s)" % (name, path))
        return None, None
    tried = []
    for value in [None] + choices:
        variables = {} if value is None else {variable: value}
        library = Library(name, LD_LIBRARY_PATH=path, **variables)
        try:
            library.kernel = kernel_of(library)
            speed = max(library.run_json([PYTHON, "-c", PROBE]) for _ in range(2))
        except Failed:  # a kernel that this build lacks, or that crashes here
            if value is None:
                say("%s: crashes with the kernel that it chooses itself" % name)
            continue
        tried.append((speed, library))
        say("%s, kernel %s%s: %.0f GFLOP/s" %
            (name, library.kernel, "" if value is None else " (%s=%s)" % (variable, value), speed))
    if not tried:
        return None, None
    chosen = tried[0][1]
    # A kernel that is a little faster by chance does not count as another choice.
    speed, best = max(tried, key=lambda pair: pair[0])
    if variable not in chosen.variables and speed < 1.05 * tried[0][0]:
        best = chosen
    return chosen, best


def libraries(say):
    """{"reference", "openblas", "openblas_best", "blis", "blis_best", "isobit"}: what is there."""
    build_isobit()
    flags = cpu_flags()
    wide = "avx512f" in flags
    openblas = (["SkylakeX", "Cooperlake"] if wide else []) + \
        (["Haswell"] if "avx2" in flags else [])
    # BLIS counts its kernels: 0 is skx, 3 haswell.
    blis = (["0"] if wide else []) + (["3"] if "avx2" in flags else [])
    found = {}
    if os.path.exists(os.path.join(folder(REFERENCE), "libblas.so.3")):
        found["reference"] = Library("reference", LD_LIBRARY_PATH=folder(REFERENCE))
    found["openblas"], found["openblas_best"] = fastest(
        "OpenBLAS", OPENBLAS, "OPENBLAS_CORETYPE", openblas, openblas_kernel, say)
    found["blis"], found["blis_best"] = fastest(
        "BLIS", BLIS, "BLIS_ARCH_TYPE", blis, blis_kernel, say)
    ours = isobit_library()
    found["isobit"] = Library("isobit", LD_PRELOAD=ours, LD_LIBRARY_PATH=os.pathsep.join(
        (os.path.dirname(ours), folder(REFERENCE))))
    return {key: library for key, library in found.items() if library is not None}


def libraries_of_python(say):
    """The same for the packages of PYTHON: {"bundled", "isobit"} if that is not Debian's."""
    if PYTHON == DEBIANS:
        return libraries(say)
    build_isobit()
    return {"bundled": Library("its own"),
            "isobit": Library("isobit", LD_PRELOAD=isobit_library())}


def add_mkl_best(found, say):
    """Where the bundled BLAS is MKL: "bundled_best", which it is on CPUs of Intel. On others it
    takes kernels of AVX2 that are not its fastest, unless its question for the vendor is answered
    by another library."""
    library = os.path.join(ROOT, "build/integrations/mkl_best.so")
    os.makedirs(os.path.dirname(library), exist_ok=True)
    done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-xc", "-o", library, "-"],
                          input="int mkl_serv_intel_cpu_true(void) { return 1; }", text=True)
    if done.returncode == 0:
        found["bundled_best"] = Library("MKL as on Intel", LD_PRELOAD=library)
        found["bundled_best"].kernel = "MKL as on Intel"
    else:
        say("MKL as on Intel is not measured")


def check_called(library, command, caller, symbol, **more):
    """Ends the program unless caller's symbol is bound to isobit: nothing falls through silently.

    What the dynamic linker says while the command runs is looked through for it, or for the name
    that it has in a wheel."""
    bound = re.compile("`(scipy_)?%s(64_)?'" % symbol)
    with tempfile.TemporaryDirectory() as folder:
        library.run(command, LD_DEBUG="bindings", LD_DEBUG_OUTPUT=folder + "/bindings", **more)
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as text:
                for line in text:
                    if bound.search(line) and "libisobit_blas" in line and \
                            caller in line.split(" to ")[0]:
                        return
    sys.exit("%s of %s does not reach libisobit_blas" % (symbol, caller))


def instruction_sets(library):
    """The names that this machine can run, best first, each known to be taken when it is asked for.

    Without that, results that are equal because ISOBIT_ISA was not heard would pass."""
    ask = ("import ctypes, json, os\nlibrary = ctypes.CDLL(%r)\nname = library.%s\n"
           "name.restype = ctypes.c_char_p\nprint(json.dumps(name().decode()))")
    path = isobit_library()
    names = library.run_json([PYTHON, "-c", ask % (path, "iso_isa_names")]).split(", ")
    for name in names:
        taken = library.run_json([PYTHON, "-c", ask % (path, "openblas_get_corename")],
                                 ISOBIT_ISA=name)
        if taken != name:
            sys.exit("ISOBIT_ISA=%s gives %s" % (name, taken))
    return names


def best_of(work, order):
    """(the least time of order["repeat"] calls of work, fewer after order["seconds"]; what the last
    one returned): for a child process."""
    best, end = float("inf"), time.perf_counter() + order.get("seconds", 0)
    for _ in range(order.get("repeat", 1)):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return best, result


def start(child, main):
    """measure.py, or measure.py --child ORDER, which is JSON."""
    if len(sys.argv) == 3 and sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
    elif len(sys.argv) == 1:
        main()
    else:
        sys.exit("usage: measure.py")


def thread_counts():
    return [1, 2] if len(os.sched_getaffinity(0)) >= 2 else [1]


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        names = [line.split(":")[1].strip() for line in text if line.startswith("model name")]
    return "%s, %d CPUs, %s" % (names[0] if names else platform.machine(),
                                len(os.sched_getaffinity(0)), time.strftime("%Y-%m-%d"))


def load():
    """How busy the machine is with other things: times mean little above a few tenths."""
    return os.getloadavg()[0]


# --------------------------------------------------------------------------------------- the report

COLUMNS = (("reference", "reference"), ("openblas", "OpenBLAS"), ("openblas_best", "OpenBLAS"),
           ("blis", "BLIS"), ("blis_best", "BLIS"), ("own", "without BLAS"),
           ("bundled", "its own BLAS"), ("bundled_best", "its own BLAS"), ("isobit", "isobit"))


def same_bits(hashes):
    """Whether all are equal, and what was compared: {(instruction set, threads, ...): result}."""
    sets = list(dict.fromkeys(key[0] for key in hashes))
    threads = sorted({key[1] for key in hashes})
    equal = len({json.dumps(value, sort_keys=True) for value in hashes.values()}) == 1
    return equal, "%s: %s; %s %s" % (
        "yes" if equal else "**NO**", ", ".join(reversed(sets)),
        " and ".join(map(str, threads)), "thread" if threads == [1] else "threads")


def in_unit(seconds):
    return "%.2f s" % seconds if seconds >= 1 else \
        "%.1f ms" % (seconds * 1e3) if seconds >= 1e-3 else "%.2f us" % (seconds * 1e6)


def ratios(seconds, others):
    """{(workload, threads): time of the best of the others / ours}."""
    result = {}
    for workload, threads, key in seconds:
        theirs = [seconds[workload, threads, other] for other in others
                  if (workload, threads, other) in seconds]
        if key == "isobit" and theirs:
            result[workload, threads] = min(theirs) / seconds[workload, threads, key]
    return result


def span(values):
    """A geometric mean with the range it stands for."""
    values = list(values)
    if not values:
        return "not measured"
    if len(values) == 1:
        return "%.2f" % values[0]
    return "%.2f (%.2f to %.2f)" % (geometric_mean(values), min(values), max(values))


def report(program, found, seconds, default, best, difference, bits, busy, notes=()):
    """Markdown: the row of the table in docs/drop-in.md, and all times behind it.

    default, best: the keys of the libraries that count as the program's default and best build;
    difference, bits: what stands in the last two columns; busy: the load before the first run."""
    to_default = ratios(seconds, default)
    to_best = ratios(seconds, best)
    print("| program | lines changed | speed, its default build = 1 | its best build = 1 "
          "| largest difference | equal bits |")
    print("|---|---|---|---|---|---|")
    print("| %s | 0 | %s | %s | %s | %s |\n" % (program, span(to_default.values()),
                                             span(to_best.values()), difference, bits))
    shown = [(key, name + (", " + found[key].kernel if found[key].kernel else ""))
             for key, name in COLUMNS if key in kept_once(found)]
    print("%s. Load before the first run %.2f%s.\n" %
          (machine(), busy, "; **the machine was busy**" if busy > 0.5 else ""))
    print("| | threads | %s | against the best |" % " | ".join(name for _, name in shown))
    print("|---|%s" % ("---|" * (len(shown) + 2)))
    for workload, threads in dict.fromkeys(key[:2] for key in seconds):
        cells = [in_unit(seconds[workload, threads, key])
                 if (workload, threads, key) in seconds else "" for key, _ in shown]
        ratio = to_best.get((workload, threads))
        print("| %s | %d | %s | %s |" % (workload, threads, " | ".join(cells),
                                         "" if ratio is None else "%.2f" % ratio))
    slower = ["%s with %d threads (%.2f)" % (*where, ratio)
              for where, ratio in to_best.items() if ratio < 1]
    print("\nSlower than the best: %s." % ("; ".join(slower) if slower else "nothing"))
    for note in notes:
        print("\n" + note)
