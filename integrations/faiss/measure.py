# SPDX-License-Identifier: MIT
"""Measures faiss, as PyPI has it, with its own OpenBLAS and with isobit; prints Markdown.

measure.py                   all of it
measure.py --child ORDER     one run in this process; ORDER and the result are JSON
"""

import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare

VECTORS, QUERIES, NEAREST = 50000, 512, 10
WIDTHS = (384, 768, 1024)  # of sentence embeddings
CENTROIDS = 256


# ------------------------------------------------------------------------------- the child process

def workloads():
    """{name: (a function that does it once and returns arrays, the largest error of these)}."""
    import faiss
    import numpy
    random = numpy.random.default_rng(1)
    found = {}
    for width in WIDTHS:
        vectors = random.standard_normal((VECTORS, width), dtype=numpy.float32)
        queries = random.standard_normal((QUERIES, width), dtype=numpy.float32)
        for name, index in (("inner product", faiss.IndexFlatIP(width)),
                            ("distance", faiss.IndexFlatL2(width))):
            index.add(vectors)

            def search(index=index, queries=queries):
                return index.search(queries, NEAREST)

            def error(result, name=name, vectors=vectors, queries=queries):
                values, where = result
                near = vectors[where].astype(numpy.float64)
                far = queries[:, None, :].astype(numpy.float64)
                true = (near * far).sum(2) if name == "inner product" else ((near - far)**2).sum(2)
                return float(abs(values - true).max() / abs(true).max())

            found["nearest by %s, %d" % (name, width)] = search, error

        def cluster(width=width, vectors=vectors):
            means = faiss.Kmeans(width, CENTROIDS, niter=3, seed=1)
            means.train(vectors)
            return [means.centroids]

        found["k-means, %d" % width] = cluster, None
    return found


def child(order):
    """{"threads": n, "seconds": s, "repeat": most}: the best time, hash and error of each."""
    import faiss
    faiss.omp_set_num_threads(order["threads"])
    results = {}
    for name, (work, error) in workloads().items():
        best, arrays = compare.best_of(work, order)
        digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]
        results[name] = {"best": best, "hash": digest, "error": error(arrays) if error else 0}
    print(json.dumps(results))


# ------------------------------------------------------------------------------------- the parent

def command(**order):
    return [compare.PYTHON, os.path.abspath(__file__), "--child", json.dumps(order)]


def main():
    def say(text):
        print("faiss: " + text, file=sys.stderr, flush=True)

    load = compare.load()
    compare.build_isobit()
    found = {"bundled": compare.Library("its own"),
             "isobit": compare.Library("isobit", LD_PRELOAD=compare.isobit_library())}
    flags = compare.cpu_flags()
    if "avx512f" in flags or "avx2" in flags:  # what it would take on the models that it knows
        kernel = "SkylakeX" if "avx512f" in flags else "Haswell"
        found["bundled_best"] = compare.Library("its own", OPENBLAS_CORETYPE=kernel)
        found["bundled_best"].kernel = kernel
    import faiss
    compare.check_called(found["isobit"], command(threads=1), "libfaiss", "sgemm_")

    seconds, error = {}, 0
    for threads in compare.thread_counts():
        for turn in range(3):
            for i in range(len(found)):
                key = list(found)[(turn + i) % len(found)]
                results = found[key].run_json(command(threads=threads, seconds=1.5, repeat=8),
                                              threads)
                for name, result in results.items():
                    where = (name, threads, key)
                    seconds[where] = min(seconds.get(where, float("inf")), result["best"])
                    if key == "isobit":
                        error = max(error, result["error"])
        say("%d threads" % threads)
    hashes = {}
    for isa in compare.instruction_sets(found["isobit"]):
        if isa == "scalar":
            continue  # some minutes
        for threads in compare.thread_counts():
            results = found["isobit"].run_json(command(threads=threads), threads, ISOBIT_ISA=isa)
            hashes[isa, threads] = {name: result["hash"] for name, result in results.items()}
            say("%-12s %d" % (isa, threads))
    compare.report("faiss " + faiss.__version__, found, seconds, ("bundled",),
                   ("bundled", "bundled_best"), "%.1e" % error, compare.same_bits(hashes)[1], load)


if __name__ == "__main__":
    compare.start(child, main)
