# SPDX-License-Identifier: MIT
"""Blocks become differences, and those that were disturbed are dropped."""

import io
import os
import pty
from math import exp, log
from typing import Any

import pytest
from isobit_perf import blocks
from isobit_perf.driver import Collector, ProcessFailed
from isobit_perf.journal import BenchLine, Block, Process
from isobit_perf.progress import Progress

QUIET = Block("ABBA", [100.0, 100.0], [110.0, 110.0])
LOUD = Block("ABBA", [100.0, 100.0], [400.0, 400.0], nivcsw=9)


def processes(last: BenchLine, count: int = 12) -> list[Process]:
    """Quiet ones, and a last one that has `last`."""
    quiet = BenchLine("bench", "x", [QUIET, QUIET], canary=[100.0, 200.0])
    lines = [quiet] * (count - 1) + [last]
    return [Process(i, 1.0, {"x": line}, []) for i, line in enumerate(lines, 1)]


def test_difference_by_hand() -> None:
    block = Block("BAAB", [1.0, 4.0], [exp(1), 4 * exp(2)])
    assert blocks.difference(block) == pytest.approx(1.5)
    data = blocks.reduce([Process(1, 1.0, {"x": BenchLine("bench", "x", [block, QUIET])}, [])])
    assert data.series["x"].d == [pytest.approx((1.5 + log(1.1)) / 2)]
    assert data.rows == [{"x": data.series["x"].d[0]}]
    assert data.series["x"].a_ns == [pytest.approx((2.5 + 100) / 2)]


@pytest.mark.parametrize("reason,n,line", [
    ("context switches", 12, {"blocks": [LOUD, QUIET]}),
    ("context switches", 11, {"blocks": [LOUD, LOUD]}),
    ("steal", 11, {"blocks": [QUIET, QUIET], "steal": 2}),
    ("throttling", 11, {"blocks": [QUIET, QUIET], "throttled": 1}),
    ("canary", 11, {"blocks": [QUIET, QUIET], "canary": [104.0, 200.0]}),
    ("canary", 11, {"blocks": [QUIET, QUIET], "canary": [100.0, 207.0]})])
def test_dropped(reason: str, n: int, line: dict[str, Any]) -> None:
    data = blocks.reduce(processes(BenchLine("bench", "x", **line)))
    assert dict(data.dropped) == {reason: 1 if n == 12 else 2}
    assert data.series["x"].d == pytest.approx([log(1.1)] * n)


@pytest.mark.parametrize("line", [
    {"blocks": [Block("ABBA", [1, 1], [1.1, 1.1], nivcsw=1)] * 2}, {"steal": 1},
    {"canary": [102.9, 205.0]}])
def test_the_usual_is_kept(line: dict[str, Any]) -> None:
    values: dict[str, Any] = {"blocks": [QUIET] * 2, **line}
    found = blocks.reduce(processes(BenchLine("bench", "x", **values)))
    assert not found.dropped and len(found.series["x"].d) == 12


def test_what_is_usual_is_what_this_machine_does() -> None:
    """Ten context switches in every block are no reason to drop one."""
    busy = BenchLine("bench", "x", [Block("ABBA", [1.0], [1.0], nivcsw=n) for n in (9, 10)])
    assert not blocks.reduce([Process(i, 1.0, {"x": busy}, []) for i in range(12)]).dropped


def test_left_out_and_outputs() -> None:
    line = BenchLine("bench", "x", [QUIET], hash_a="1", hash_b="1")
    other = BenchLine("bench", "x", [QUIET], hash_a="1", hash_b="2")
    none = BenchLine("bench", "x", [QUIET])
    for lines, same in (([line], True), ([line, other], False), ([none], None)):
        found = blocks.reduce([Process(1, 1.0, {"x": one}, []) for one in lines])
        assert found.series["x"].same_output() is same
    assert blocks.reduce([Process(1, 1.0, {"x": line}, [])], ["x"]).series == {}


BENCH = '{"type":"bench","bench":"x","blocks":[{"order":"ABBA","a":[1],"b":[%s]}]}'


@pytest.mark.parametrize("text", [
    "", "x", "[]", "1", '{"type":"bunch"}', '{"type":"bench"}', BENCH % "0", BENCH % "-1",
    BENCH % '"1"', BENCH % "NaN", BENCH % "", '{"type":"bench","bench":"x","blocks":[]}',
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
