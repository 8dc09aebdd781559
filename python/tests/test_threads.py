# SPDX-License-Identifier: MIT
"""Threads of the library and of Python."""
import gc
import os
import threading
import time

import numpy as np

import isobit
from conftest import normal, same_bits


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


def test_number_of_threads():
    assert isobit.get_num_threads() == 1
    gc.collect()
    before = threads_of_process()
    isobit.set_num_threads(3)
    assert isobit.get_num_threads() == 3 and threads_of_process() == before + 2
    isobit.set_num_threads(0)
    assert isobit.get_num_threads() == isobit.info()["threads"]["usable"]
    isobit.set_num_threads(1)
    assert isobit.get_num_threads() == 1 and threads_of_process() == before


def test_the_threads_compute(rng):
    def processor_time(task):
        with open(f"/proc/self/task/{task}/stat") as file:
            return sum(int(n) for n in file.read().rsplit(")", 1)[1].split()[11:13])

    gc.collect()
    before = set(os.listdir("/proc/self/task"))
    isobit.set_num_threads(2)
    (task,) = set(os.listdir("/proc/self/task")) - before
    a, b = normal(rng, 500, 500), normal(rng, 500, 500)
    deadline = time.monotonic() + 20
    while processor_time(task) < 3 and time.monotonic() < deadline:
        isobit.gemm(a, b)
    assert processor_time(task) >= 3  # hundredths of a second


def test_other_threads_run_during_a_call(rng):
    # Slow on purpose: the plainest kernels.
    isobit.set_isa("scalar")
    try:
        a, b = normal(rng, 600, 600), normal(rng, 600, 600)
        times = []

        def compute():
            times.append(time.monotonic())
            isobit.gemm(a, b)
            times.append(time.monotonic())

        worker = threading.Thread(target=compute)
        ticks = []
        worker.start()
        while worker.is_alive():
            ticks.append(time.monotonic())
            time.sleep(0.001)
        worker.join()
    finally:
        isobit.set_isa(None)
    start, end = times
    assert end - start > 0.02
    # The middle of the call, so that its beginning and end, in Python, do not count.
    first, last = start + 0.2 * (end - start), end - 0.2 * (end - start)
    assert sum(first < tick < last for tick in ticks) >= 3


def test_calls_from_many_threads_while_the_pool_changes(rng):
    a, b = normal(rng, 64, 200), normal(rng, 200, 70)
    layer = isobit.PackedLinear(b.T.copy())
    wanted = isobit.gemm(a, b)
    others = [isobit.PackedLinear(b.T, dtype=dtype) for dtype in ("f16", "bf16", "int8")]
    others += [isobit.PackedLinear(b.T[:, :192], dtype=dtype) for dtype in ("q8", "q4")]
    of_others = [other(a[:, : other.k]) for other in others]
    wrong = []
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            if not (same_bits(isobit.gemm(a, b), wanted) and same_bits(layer(a), wanted)):
                wrong.append(1)
            for other, result in zip(others, of_others):
                if not same_bits(other(a[:, : other.k]), result):
                    wrong.append(other.dtype)

    workers = [threading.Thread(target=compute) for _ in range(3)]
    for worker in workers:
        worker.start()
    for i in range(60):
        isobit.set_num_threads(1 + i % 3)
        time.sleep(0.002)
    stop.set()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_forked_child_computes(rng):
    isobit.set_num_threads(2)
    x = normal(rng, 200, 300)
    wanted = isobit.softmax(x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            good = same_bits(isobit.softmax(x), wanted)
            isobit.set_num_threads(2)  # the old pool is left, a new one made
            good = good and same_bits(isobit.softmax(x), wanted)
            code = 0 if good else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 20
    done = 0
    while not done and time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.005)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done and os.waitstatus_to_exitcode(status) == 0


def test_memory_is_given_back(rng):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    w = normal(rng, 1000, 1000)
    x = np.asfortranarray(normal(rng, 200, 1000)).T[::2].T  # of which copies are made
    layer = isobit.PackedLinear(w)
    for i in range(60):
        if i == 10:
            gc.collect()
            before = resident()
        layer = isobit.PackedLinear(w)
        isobit.attention(x[:, :64], x[:, :64], x[:, :64], return_weights=True)
    del layer
    gc.collect()
    assert resident() - before < 40e6  # fifty layers are 200 MB
