# SPDX-License-Identifier: MIT
"""NumPy with each BLAS: float32 products in the shapes of Transformers.

measure.py                   measures everything and prints Markdown
measure.py --child JSON      one process: results of all cases as JSON
"""

import hashlib
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare

# rows (tokens), in, out of a linear layer: x @ W.T, as layers keep their weights.
LINEAR = [(m, 512, n) for m in (8, 64, 512) for n in (512, 1536, 2048)] + \
    [(m, 2048, 512) for m in (8, 64, 512)] + [(1024, 1024, 1024)]
SQUARE = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
MATVEC = [(512, 512), (2048, 512), (512, 2048), (2048, 2048), (8192, 1024)]
HEADS = [(64, 64), (128, 64), (512, 64)]  # tokens and width of one attention head
TURNS = 10  # short ones: on a shared machine the speed changes from second to second
SLOW = 2048  # Debian's default takes seconds from here on; the scalar kernels do too


# ------------------------------------------------------------------------------- the child process

def cases(numpy, place=4):
    """(group, name, function, operands): what is computed, in the type of the operands.

    Operands begin `place` floats behind a line. Where NumPy happens to put them, which is no more
    than a multiple of 4 floats, depends on what else a library has allocated."""
    random = numpy.random.Generator(numpy.random.PCG64(1))

    def draw(*shape):
        count = math.prod(shape)
        memory = numpy.empty(count + 32, numpy.float32)
        first = -(memory.ctypes.data // 4) % 16 + place
        values = memory[first:first + count].reshape(shape)
        random.standard_normal(dtype=numpy.float32, out=values)
        return values

    def times(a, b):
        return a @ b

    def times_transposed(a, b):
        return a @ b.T

    def transposed_times(a, b):
        return a.T @ b

    def gram(a):
        return a @ a.T

    for m, k, n in LINEAR:
        yield "x @ W.T", "%dx%dx%d" % (m, n, k), times_transposed, (draw(m, k), draw(n, k))
    for n in SQUARE:
        yield "A @ B", "%dx%dx%d" % (n, n, n), times, (draw(n, n), draw(n, n))
    for m, k, n in LINEAR[:9:4]:
        yield "x.T @ y", "%dx%dx%d" % (k, n, m), transposed_times, (draw(m, k), draw(m, n))
    for tokens, width in HEADS:
        name = "%dx%dx%d" % (tokens, tokens, width)
        q, k = draw(tokens, 8 * width)[:, :width], draw(tokens, 8 * width)[:, width:2 * width]
        yield "q @ k.T of a head", name, times_transposed, (q, k)
        yield "q @ q.T of a head", name, gram, (q,)
    for m, n in MATVEC:
        a = draw(m, n)
        yield "A @ x", "%dx%d" % (m, n), times, (a, draw(n))
        yield "x @ A", "%dx%d" % (m, n), times, (draw(m), a)
    for n in (64, 512, 2048, 65536):
        yield "dot", str(n), numpy.dot, (draw(n), draw(n))


def child(order):
    """{"seconds": for each case, "skip": sizes from here on, "exact": bool}"""
    import numpy
    results = {}
    for group, name, function, operands in cases(numpy, order.get("place", 4)):
        if group == "A @ B" and max(operands[0].shape) >= order.get("skip", 1 << 30):
            continue
        value = function(*operands)
        result = {"hash": hashlib.sha256(numpy.ascontiguousarray(value).tobytes()).hexdigest()}
        if order.get("exact"):
            true = function(*[operand.astype(float) for operand in operands])
            # Over the sum of the magnitudes: what the errors of any order are proportional to.
            magnitude = function(*[abs(operand.astype(float)) for operand in operands])
            result["difference"] = float((abs(value - true) / magnitude).max())
        if order.get("seconds"):
            start = time.perf_counter()
            function(*operands)
            once = max(time.perf_counter() - start, 1e-7)
            inner = max(1, int(order["seconds"] / 20 / once))
            best, end = float("inf"), time.perf_counter() + order["seconds"]
            while time.perf_counter() < end or best == float("inf"):
                start = time.perf_counter()
                for _ in range(inner):
                    function(*operands)
                best = min(best, (time.perf_counter() - start) / inner)
            result["best"] = best
        results[group + ", " + name] = result
    print(json.dumps(results))


# ------------------------------------------------------------------------------------- the parent

def run(library, threads=1, environment=None, **order):
    return library.run_json([compare.PYTHON, os.path.abspath(__file__), "--child",
                             json.dumps(order)], threads, **(environment or {}))


def main():
    import numpy

    def say(text):
        print("numpy: " + text, file=sys.stderr, flush=True)

    busy = compare.load()
    found = compare.libraries_of_python(say)
    check = [compare.PYTHON, os.path.abspath(__file__), "--child", "{}"]
    for symbol in ("cblas_sgemm", "cblas_sgemv", "cblas_sdot", "cblas_ssyrk"):
        compare.check_called(found["isobit"], check, "_multiarray_umath", symbol)

    seconds = {}
    kept = compare.kept_once(found)
    for threads in compare.thread_counts():
        for turn in range(TURNS):
            for i in range(len(kept)):  # in turns
                key = kept[(turn + i) % len(kept)]
                if key == "reference" and (turn > 0 or threads > 1):
                    continue  # takes long, and has no threads
                skip = {"skip": SLOW} if key == "reference" else {}
                for name, result in run(found[key], threads, seconds=0.1 / TURNS,
                                        place=turn % 4 * 4, **skip).items():
                    where = (name, threads, key)
                    seconds[where] = min(seconds.get(where, float("inf")), result["best"])
    for name, threads, key in list(seconds):
        if (name, 1, "reference") in seconds:
            seconds[name, threads, "reference"] = seconds[name, 1, "reference"]

    differences = {key: max(result["difference"] for result in run(found[key], exact=True,
                                                                   skip=SLOW).values())
                   for key in ("isobit", "openblas_best", "blis_best", "bundled") if key in found}
    hashes = {}
    for isa in compare.instruction_sets(found["isobit"]):
        for threads in compare.thread_counts():
            hashes[isa, threads] = {name: result["hash"] for name, result in run(
                found["isobit"], threads, {"ISOBIT_ISA": isa}, skip=SLOW).items()}
    for name in hashes[next(iter(hashes))]:
        if len({each[name] for each in hashes.values()}) != 1:
            say("other bits: " + name)

    best = ("openblas", "openblas_best", "blis", "blis_best", "bundled")
    groups = dict.fromkeys(name.split(",")[0] for name, _, _ in seconds)
    ratios = compare.ratios(seconds, best)
    compare.report(
        "NumPy " + numpy.__version__, found, seconds, ("reference", "bundled"), best,
        "%.1e" % differences["isobit"], compare.same_bits(hashes)[1], busy,
        ["Against the best, by kind: " + "; ".join("%s %s" % (group, compare.span(
            value for (name, _), value in ratios.items() if name.split(",")[0] == group))
            for group in groups) + ".",
         "Largest difference from float64, over the sum of the products' magnitudes: " + "; ".join(
             "%s %.1e" % (found[key].name, value) for key, value in differences.items()) + "."])


if __name__ == "__main__":
    compare.start(child, main)
