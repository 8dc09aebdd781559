# SPDX-License-Identifier: MIT
"""JUnit XML: a test case for each benchmark."""

import xml.etree.ElementTree as ET

from .. import text
from ..files import Bench, Result


def _case(suite: ET.Element, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(suite, "testcase", {
        "classname": "isobit-perf", "name": text.printable(name), "time": f"{seconds:.9f}"})


def _outcome(bench: Bench) -> tuple[str, str] | None:
    """The element that says how a case ended, and its type; None where it passed."""
    if bench.same_output is False:
        return "failure", "DIFFERENT"
    if bench.verdict == "REGRESSION":
        return "failure", "REGRESSION"
    return ("skipped", "INCONCLUSIVE") if bench.verdict == "INCONCLUSIVE" else None


def of_result(result: Result) -> str:
    """REGRESSION and other outputs are failures, INCONCLUSIVE and what a side lacks is skipped."""
    outcomes = [_outcome(b) for b in result.benches]
    failed = sum(e.failed for e in result.errors)
    count = {kind: sum(o is not None and o[0] == kind for o in outcomes)
             for kind in ("failure", "skipped")}
    suite = ET.Element("testsuite", {
        "name": "isobit-perf", "tests": str(len(result.benches) + len(result.errors)),
        "failures": str(count["failure"]), "errors": str(failed),
        "skipped": str(count["skipped"] + len(result.errors) - failed),
        "time": f"{result.seconds:.3f}"})
    for bench, outcome in zip(result.benches, outcomes, strict=True):
        case = _case(suite, bench.bench, bench.b_ns * 1e-9)
        message = (f"{text.percent(bench.change)} ({text.bounds(bench)}), q "
                   f"{text.probability(bench.q)}, margin {text.plain_percent(bench.margin)}")
        if outcome:
            kind, name = outcome
            what = {"message": f"{name}: {message}"}
            ET.SubElement(case, kind, what | ({"type": name} if kind == "failure" else {}))
        else:
            ET.SubElement(case, "system-out").text = f"{bench.verdict}: {message}"
    for error in result.errors:
        why = {"message": text.printable(f"{error.which}: {error.why}".removeprefix(": "))}
        ET.SubElement(_case(suite, error.bench, 0), "error" if error.failed else "skipped",
                      why | ({"type": "error"} if error.failed else {}))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"
