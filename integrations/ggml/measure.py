# SPDX-License-Identifier: MIT
"""llama.cpp with each BLAS: a prompt of 512 tokens in float32, and ggml's own tests.

usage: measure.py FOLDER, where measure.sh has built: with-openblas/bin (libllama and ggml with
GGML_BLAS, linked to OpenBLAS), without-blas/bin (ggml alone), prompt, test-backend-ops.

One build is measured with each BLAS: LD_PRELOAD puts another one in front of the OpenBLAS that it
is linked to. llama.cpp without BLAS, which is its default, takes ggml's own kernels instead.
"""

import copy
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare

PROMPT, BITS = 512, 128  # tokens; the scalar kernels emulate the fused multiply-add and are slow
RUNS = 4


def interposed(found, work):
    """The same libraries as found, as environments of the build in work."""
    build = os.path.join(work, "with-openblas/bin")
    result = {}
    for key, library in found.items():
        library = copy.copy(library)
        library.variables = dict(library.variables)
        path = library.variables["LD_LIBRARY_PATH"]
        if key in ("reference", "blis", "blis_best"):
            library.variables["LD_PRELOAD"] = os.path.join(path, "libblas.so.3")
        library.variables["LD_LIBRARY_PATH"] = os.pathsep.join(
            (build, compare.folder(compare.OPENBLAS), path))
        result[key] = library
    for key in ("openblas", "blis"):  # one object where the library chooses its fastest itself
        if key in found and found[key] is found[key + "_best"]:
            result[key + "_best"] = result[key]
    result["own"] = compare.Library("without BLAS", LD_LIBRARY_PATH=os.pathsep.join(
        (os.path.join(work, "without-blas/bin"), build)))
    return result


def backend_tests(library, work):
    """[(instruction set, passed, of all)] of ggml's own tests; ends the program when one fails."""
    command = [os.path.join(work, "test-backend-ops"), "test", "-b", "BLAS", "-o"]
    results = []
    if not os.path.exists(command[0]):
        return results
    for isa in compare.instruction_sets(library):
        for operation in ("MUL_MAT", "OUT_PROD"):
            printed = library.run(command + [operation], 2, ISOBIT_ISA=isa)
            counts = re.findall(r"(\d+)/(\d+) tests passed", printed)
            if not counts or any(passed != every or passed == "0" for passed, every in counts):
                sys.exit("test-backend-ops %s on %s:\n%s" % (operation, isa, printed[-2000:]))
            results.append((isa, operation, int(counts[0][0])))
    return results


def main(work):
    import numpy

    def say(text):
        print("ggml: " + text, file=sys.stderr, flush=True)

    busy = compare.load()
    found = interposed(compare.libraries(say), work)
    model = os.path.join(work, "model.gguf")
    if not os.path.exists(model):
        say("writing a model")
        found["own"].run([compare.PYTHON, os.path.join(os.path.dirname(
            os.path.abspath(__file__)), "write_model.py"), model + ".part"])
        os.replace(model + ".part", model)
    prompt = [os.path.join(work, "prompt"), model]

    compare.check_called(found["isobit"], prompt + ["64", "1", "0"], "libggml-blas", "cblas_sgemm")
    seconds = {}
    workload = "prompt of %d tokens" % PROMPT
    # Nobody builds llama.cpp with the reference BLAS; it takes minutes for a prompt.
    kept = [key for key in compare.kept_once(found) if key != "reference"]
    for threads in compare.thread_counts():
        for turn in range(2):
            for i in range(len(kept)):  # in turns
                key = kept[(turn + i) % len(kept)]
                best = found[key].run_json(prompt + [str(PROMPT), str(threads), str(RUNS)],
                                           threads)["best"]
                where = (workload, threads, key)
                seconds[where] = min(seconds.get(where, float("inf")), best)

    with tempfile.TemporaryDirectory() as folder:
        logits = {}
        for key in ("isobit", "openblas_best", "blis_best", "own"):
            if key in found:
                path = os.path.join(folder, key)
                found[key].run(prompt + [str(PROMPT), "1", "0", path])
                logits[key] = numpy.fromfile(path, numpy.float32).astype(float)
    base = "openblas_best" if "openblas_best" in logits else "own"
    scale = abs(logits[base]).max()
    differences = {key: abs(values - logits[base]).max() / scale for key, values in logits.items()}

    hashes = {}
    for isa in compare.instruction_sets(found["isobit"]):
        for threads in compare.thread_counts():
            hashes[isa, threads] = found["isobit"].run_json(
                prompt + [str(BITS), str(threads), "0"], threads, ISOBIT_ISA=isa)["hash"]
            say("%-8s %d threads: %s" % (isa, threads, hashes[isa, threads]))

    tests = backend_tests(found["isobit"], work)
    compare.report(
        "llama.cpp, prompt in float32", found, seconds, ("own",),
        ("openblas", "openblas_best", "blis", "blis_best", "own"),
        "%.1e" % differences["isobit"], compare.same_bits(hashes)[1], busy,
        ["The largest difference is one of logits from those of the build with %s, over the "
         "largest of these; of the others: %s." % (found[base].name, "; ".join(
             "%s %.1e" % (found[key].name, value)
             for key, value in differences.items() if key not in ("isobit", base))),
         "ggml's test-backend-ops with isobit: %s." % ("; ".join(
             "%s on %s: %d of %d passed" % (operation, isa, count, count)
             for isa, operation, count in tests) or "not in this source")])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: measure.py FOLDER")
    main(sys.argv[1])
