# SPDX-License-Identifier: MIT
"""Blocks become differences."""

import io
import os
import pty
from math import exp, log
from typing import Any

import pytest
from isobit_perf import blocks
from isobit_perf.driver import Collector, ProcessFailed
from isobit_perf.journal import BenchLine, Process
from isobit_perf.progress import Progress

def line(a: list[float], b: list[float], **more: Any) -> BenchLine:
    """A line of one benchmark."""
    return BenchLine("bench", "x", a, b, **more)


def test_differences_by_hand() -> None:
    found = line([1.0, 4.0, 100, 100], [exp(1), 4 * exp(2), 110, 110])
    assert list(blocks.differences(found)) == [pytest.approx(1.5), pytest.approx(log(1.1))]
    data = blocks.reduce([Process(1, 1.0, {"x": found}, [])])
    assert data.series["x"].d == [pytest.approx((1.5 + log(1.1)) / 2)]
    assert data.rows == [{"x": data.series["x"].d[0]}]
    assert data.series["x"].a_ns == [52.0]


def test_a_disturbed_block_does_not_count() -> None:
    found = line([100.0] * 6, [110, 110, 400, 400, 110, 110])
    data = blocks.reduce([Process(i, 1.0, {"x": found}, []) for i in range(12)])
    assert data.series["x"].d == pytest.approx([log(1.1)] * 12)


def test_left_out_and_outputs() -> None:
    times = [1.0, 1.0], [1.1, 1.1]
    equal, other = line(*times, hash_a="1", hash_b="1"), line(*times, hash_a="1", hash_b="2")
    for lines, same in (([equal], True), ([equal, other], False), ([line(*times)], None)):
        found = blocks.reduce([Process(1, 1.0, {"x": one}, []) for one in lines])
        assert found.series["x"].same_output() is same
    assert blocks.reduce([Process(1, 1.0, {"x": equal}, [])], ["x"]).series == {}


BENCH = '{"type":"bench","bench":"x","a":[1,1],"b":[1,%s]}'


@pytest.mark.parametrize("text", [
    "", "x", "[]", "1", '{"type":"bunch"}', '{"type":"bench"}', BENCH % "0", BENCH % "-1",
    BENCH % '"1"', BENCH % "NaN", BENCH % "", BENCH % "1,1", '{"type":"bench","bench":"x","a":[],"b":[]}',
    '{"type":"bench","bench":"x","a":[1],"b":[1]}',
    "[" * 5000])
def test_garbage(text: str) -> None:
    collector = Collector(1, lambda name: None)
    collector.add(BENCH % "2")
    with pytest.raises(ProcessFailed, match="prints garbage") as error:
        collector.add(text)
    assert error.value.done == {"x"}


def test_nothing_comes_after_the_end() -> None:
    collector = Collector(1, lambda name: None)
    collector.add('{"type":"end","benches":0}')
    assert collector.ended
    with pytest.raises(ProcessFailed, match="prints garbage"):
        collector.add(BENCH % "2")


def test_progress_on_a_terminal_and_elsewhere() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        progress = Progress(terminal)
        progress.process(3, 12, 40, 80.2)
        progress.bench("gemm/64x64x64/avx2/t1")
        text = os.read(master, 4096).decode()
    os.close(master)
    assert text.startswith("\rprocess 3/12 [1/40] gemm/64x64x64/avx2/t1 ETA 1m20s")
    plain = io.StringIO()
    progress = Progress(plain)
    progress.process(3, 12, 40, 80.2)
    progress.bench("gemm")
    progress.say("12 processes")
    assert plain.getvalue() == "12 processes\n"
