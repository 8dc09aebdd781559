# SPDX-License-Identifier: MIT
"""PyTorch with each BLAS: nn.Transformer forward and a training step, float32.

measure.py                   measures everything and prints Markdown
measure.py --child JSON      one process: the workloads that JSON names, results as JSON

The model is nn.Transformer() as it comes, the base model of "Attention Is All You Need": d 512,
8 heads, 6 + 6 layers, feed-forward 2048; 128 tokens in, 64 out, a causal mask for the decoder.
"""

import hashlib
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import compare

WORKLOADS = ("forward, batch 1", "forward, batch 8", "training step, batch 2")
# The scalar kernels emulate the fused multiply-add: a batch of 1 keeps them within a minute.
BITS = ("forward, batch 1", "training step, batch 1")

COMPARED = ("isobit", "openblas_best", "blis_best", "reference", "bundled", "bundled_best")  # with float64


# ------------------------------------------------------------------------------- the child process

def digest(tensors):
    state = hashlib.sha256()
    for tensor in tensors:
        state.update(tensor.detach().contiguous().numpy().tobytes())
    return state.hexdigest()[:16]


def prepare(workload, dtype):
    """A function that does the workload once and returns its tensors."""
    import torch
    batch = int(workload.split()[-1])
    torch.manual_seed(1)
    model = torch.nn.Transformer().to(dtype)
    source = torch.randn(128, batch, 512).to(dtype)
    target = torch.randn(64, batch, 512).to(dtype)
    wanted = torch.randn(64, batch, 512).to(dtype)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(64).to(dtype)
    if workload.startswith("forward"):
        model.eval()

        def forward():
            with torch.no_grad():
                return [model(source, target, tgt_mask=mask)]
        return forward

    # With dropout as it comes; the seed makes each step draw the same numbers. A learning rate of 0
    # does the work of SGD and leaves the model as it is, so that each step is the same one.
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def step():
        torch.manual_seed(2)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(source, target, tgt_mask=mask), wanted)
        loss.backward()
        optimizer.step()
        return [loss] + [p.grad for p in model.parameters()]
    return step


def child(order):
    """{"workloads": [...], "threads": n, "seconds": s, "repeat": most, "warm": bool, "dtype",
    "keep": file}: the best time and the hash of each."""
    import numpy
    import torch
    torch.set_num_threads(order["threads"])
    results = {}
    for workload in order["workloads"]:
        work = prepare(workload, getattr(torch, order.get("dtype", "float32")))
        if order.get("warm", True):
            work()
        best, tensors = compare.best_of(work, order)
        results[workload] = {"best": best, "hash": digest(tensors)}
        if "keep" in order:
            numpy.savez(order["keep"] % workload.replace(" ", "_"),
                        *[t.detach().double().numpy() for t in tensors])
    print(json.dumps(results))


# ------------------------------------------------------------------------------------- the parent

def run(library, threads=1, torch_threads=None, **order):
    environment = order.pop("environment", {})
    order["threads"] = threads if torch_threads is None else torch_threads
    return library.run_json([compare.PYTHON, os.path.abspath(__file__), "--child",
                             json.dumps(order)], threads, **environment)


def measure_times(found, say):
    """{(workload, threads, key of the library): seconds}."""
    seconds = {}
    kept = compare.kept_once(found)
    # A library's own choice of a slow kernel is timed as Debian's default is: once, and cold.
    slow = [key for key in kept if key == "reference" or key != "bundled" and
            key + "_best" in found and found[key] is not found[key + "_best"]]
    fast = [key for key in kept if key not in slow]

    def note(key, threads, **order):
        try:
            results = run(found[key], threads, workloads=WORKLOADS, **order)
        except compare.Failed as failure:
            say(str(failure))
            return
        for workload, result in results.items():
            where = (workload, threads, key)
            seconds[where] = min(seconds.get(where, float("inf")), result["best"])

    for threads in compare.thread_counts():
        for turn in range(2):
            for i in range(len(fast)):  # in turns
                note(fast[(turn + i) % len(fast)], threads, seconds=1.0, repeat=12)
        for key in slow:
            if key != "reference":
                note(key, threads, warm=False)
    if "reference" in found:  # has no threads
        note("reference", 1, warm=False)
        for workload, threads, key in list(seconds):
            if (workload, 1, "reference") in seconds:
                seconds[workload, threads, "reference"] = seconds[workload, 1, "reference"]
    return seconds


def measure_differences(found, folder):
    """{(workload, key): difference from float64}.

    Of a forward pass the largest, over the largest true value. Of gradients the norm, over the norm
    of the true ones: where a rounding moves an input of ReLU over zero, one row is another one."""
    import numpy
    differences = {}
    # In float64 none of our symbols is called; the fastest library beneath does.
    exact = found.get("openblas_best") or found.get("bundled") or found["reference"]
    run(exact, workloads=BITS, warm=False, dtype="float64", keep=folder + "/exact_%s.npz")
    for key in COMPARED:
        if key not in found:
            continue
        keep = folder + "/" + key + "_%s.npz"
        run(found[key], workloads=BITS, warm=False, keep=keep)
        for workload in BITS:
            name = workload.replace(" ", "_")
            exact_file = folder + "/exact_%s.npz" % name
            with numpy.load(keep % name) as ours, numpy.load(exact_file) as true:
                if workload.startswith("forward"):
                    differences[workload, key] = max(
                        abs(ours[f] - true[f]).max() / abs(true[f]).max() for f in true.files)
                else:
                    differences[workload, key] = sum(
                        ((ours[f] - true[f])**2).sum() for f in true.files)**0.5 / sum(
                            (true[f]**2).sum() for f in true.files)**0.5
    return differences


def measure_bits(found, say):
    """{(instruction set, threads of isobit, threads of PyTorch): {workload: hash}}."""
    hashes = {}
    for isa in compare.instruction_sets(found["isobit"]):
        for threads in compare.thread_counts():
            for torch_threads in {1, threads}:
                if isa == "scalar" and torch_threads != 1:
                    continue  # slow; what PyTorch's threads change is seen with the others
                results = run(found["isobit"], threads, torch_threads, workloads=BITS, warm=False,
                              environment={"ISOBIT_ISA": isa})
                hashes[isa, threads, torch_threads] = {w: results[w]["hash"] for w in BITS}
                say("%-8s %d of isobit, %d of PyTorch: %s" % (isa, threads, torch_threads, " ".join(
                    hashes[isa, threads, torch_threads].values())))
    return hashes


def main():

    def say(text):
        print("torch: " + text, file=sys.stderr, flush=True)

    load = compare.load()
    found = compare.libraries_of_python(say)
    import torch
    if "bundled" in found and torch.backends.mkl.is_available():
        compare.add_mkl_best(found, say)
    compare.check_called(found["isobit"], [compare.PYTHON, os.path.abspath(__file__), "--child",
                                           '{"workloads": ["forward, batch 1"], "threads": 1}'],
                         "libtorch_cpu", "sgemm_")
    seconds = measure_times(found, say)
    with tempfile.TemporaryDirectory() as folder:
        differences = measure_differences(found, folder)
    hashes = measure_bits(found, say)
    ours = {where: value for where, value in hashes.items() if where[2] == 1}
    everything_equal, _ = compare.same_bits(hashes)
    best = ("openblas", "openblas_best", "blis", "blis_best", "bundled", "bundled_best")
    compare.report(
        "PyTorch " + torch.__version__, found, seconds, ("reference", "bundled"), best,
        "%.1e" % differences[BITS[0], "isobit"], compare.same_bits(ours)[1], load,
        ["Difference from float64, of a forward pass (the largest, over the largest true value) "
         "and of all gradients (norm over norm): " + "; ".join(
             "%s %.1e and %.1e" % (found[key].name, *(differences[w, key] for w in BITS))
             for key in COMPARED if key in found) + ".",
         "PyTorch's own threads stood at 1 where bits are compared; with as many as isobit has, "
         "the bits are %s." % ("the same, too" if everything_equal else
                               "others (sums of PyTorch's own, not of BLAS, depend on them)")])


if __name__ == "__main__":
    compare.start(child, main)
