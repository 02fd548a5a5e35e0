"""Made-up but plausible results of a guard: every outcome, every kind of explanation."""

import dataclasses
import math

from uncork.model.results.guard import (
    Acknowledgement,
    Gate,
    GateCheck,
    GateOutcome,
    GuardResult,
    GuardSide,
    PlanDifference,
    SideDifference,
)
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.report.guard.answer import answer_guard

BASELINE = GuardSide("baseline", "main", ("commit 1a2b3c4",), "1a2b3c4d5e6f")
CANDIDATE = GuardSide("candidate", "faster lists", ("commit 9f8e7d6", "work_mem = 4MB"), "9f8e7d6c5b4a")
P99 = Gate("p99 < +5%", "latency_p99", "ratio", "<", 1.05)
PLAN = Gate("plan unchanged", "plan", "unchanged", "=", 1.0)
QUERIES = Gate("queries a request <= baseline", "queries", "ratio", "<=", 1.0)
SUCCESS = Gate("success > -0.5 points", "success", "difference", ">", -0.005)
LATE = Gate("p99 < 20ms", "latency_p99", "value", "<", 2e7)
KNOWN = Acknowledgement(
    "p99 < +5%", "insert", "writes an audit row since #812", "2026-05-31", "Ada", "2026-12-31"
)
DIFF = """\
--- baseline
+++ candidate
@@ -1,3 +1,2 @@
-Index Scan using sale_city on sale
-  Index Cond: (city = ?)
+Seq Scan on sale
+  Filter: (city = ?)"""
STATISTICS = """\
Seq Scan on shop is expected to return 4 000 rows instead of 100
Seq Scan on shop: estimated rows 100 → 4 000; actual rows 120"""


def rounds(baseline, ratio, count=6):
    """Return what rounds measured: the baseline wobbles, the candidate with it."""
    wobble = [baseline * (1 + 0.02 * math.sin(number)) for number in range(count)]
    return tuple((number + 1, value, value * ratio) for number, value in enumerate(wobble))


def check(outcome=GateOutcome.BROKEN, gate=P99, workload="list", **changes):
    """Return a gate that is checked: p99 of a workload, 12 % slower."""
    ratio = {"broken": 1.12, "not decided": 1.03, "kept": 1.01, "acknowledged": 1.2}[outcome.value]
    found = GateCheck(
        gate=gate, cell=(), workload=workload, outcome=outcome,
        reason="" if outcome is GateOutcome.BROKEN else "the interval still holds the bound",
        baseline=2.01e7, candidate=2.01e7 * ratio, unit="ns", ratio=ratio, low=ratio - 0.03,
        high=ratio + 0.04, rounds=6,
        confirmed=True if outcome in (GateOutcome.BROKEN, GateOutcome.ACKNOWLEDGED) else None,
        acknowledgement=KNOWN if outcome is GateOutcome.ACKNOWLEDGED else None,
        by_round=rounds(2.01e7, ratio),
    )  # fmt: skip
    return dataclasses.replace(found, **changes)


def plan_check(outcome=GateOutcome.BROKEN, workload="list"):
    """Return a check of plans."""
    nothing = {name: None for name in ("baseline", "candidate", "ratio", "low", "high")}
    return check(outcome, PLAN, workload, **nothing, unit="", by_round=(), rounds=0, reason="")


def exact_check(outcome=GateOutcome.KEPT, before=3.0, after=3.0, workload="list", gate=QUERIES):
    """Return a check of queries a request, counted without noise."""
    ratio = after / before
    return check(
        outcome,
        gate,
        workload,
        **{"baseline": before, "candidate": after, "ratio": ratio, "low": ratio, "high": ratio},
        unit="",
        by_round=tuple((number, before, after) for number in range(1, 7)),
        reason="",
    )


def share_check(outcome=GateOutcome.KEPT, difference=-0.001, workload="list"):
    """Return a check of shares of success."""
    ends = {"ratio": difference, "low": difference - 0.002, "high": difference + 0.002}
    sides = {"baseline": 0.999, "candidate": 0.999 + difference}
    return check(outcome, SUCCESS, workload, **ends, **sides, unit="share", by_round=(), reason="")


def guard(*checks, **changes):
    """Return what a guard says of checks, with the answer that follows from them."""
    outcomes = {one.outcome for one in checks}
    broken, undecided = GateOutcome.BROKEN in outcomes, GateOutcome.UNDECIDED in outcomes
    result = GuardResult(
        id="20260601-101500-shop", question="Is the list as fast as before?",
        against="side by side", baseline=BASELINE, candidate=CANDIDATE,
        status=3 if broken else 4 if undecided else 0, answer="", reasons=(), checks=checks,
        plans=(), runs=("20260601-101500-shop",), confidence=0.95, elapsed_ns=184_000_000_000,
        reproduce="uncork guard shop.toml --baseline commit=1a2b3c4 --candidate commit=9f8e7d6",
        uncork_version="0.1.0", started_at="2026-06-01T10:15:00+00:00", name="shop",
    )  # fmt: skip
    return answered(dataclasses.replace(result, **changes))


def answered(result):
    """Return a guard with the answer that its checks and plans give."""
    return answer_guard(result)


def everything():
    """Return a guard with every outcome and every kind of explanation."""
    cell = (("rows", "100000"),)

    def took(kind, name, unit, before, after):
        return SideDifference((), "list", kind, name, unit, before, after)

    return guard(
        check(),
        plan_check(),
        check(GateOutcome.UNDECIDED, workload="search", cell=cell, confirmed=False),
        check(GateOutcome.ACKNOWLEDGED, workload="insert"),
        exact_check(),
        share_check(),
        check(GateOutcome.KEPT, workload="login"),
        plans=(
            PlanDifference((), "list", "s1", "changed", DIFF),
            PlanDifference((), "list", "s2", "statistics", STATISTICS),
        ),
        differences=(
            took("cost", "server CPU", "ns", 4.1e6, 9.8e6),
            took("cost", "buffers hit", "", 312.0, 4120.0),
            took("cost", "WAL", "B", 120.0, 121.0),
            took("wait", "CPU", "ns", 3.9e6, 9.1e6),
            took("wait", "IO:DataFileRead", "ns", 0.0, 2.2e6),
            took("call", "pread64", "", 0.4, 12.0),
            took("frame", "ExecScan", "share", 0.02, 0.31),
            took("frame", "_bt_search", "share", 0.12, 0.001),
            took("frame", "copy_page_to_iter (kernel)", "share", 0.031, 0.032),
        ),
        settings=(
            EnvironmentDifference(
                "setting", "work_mem", "", "4MB", grave=False
            ),  # as the candidate was asked
            EnvironmentDifference("server", "version", "17.6", "18.1", grave=False),
            EnvironmentDifference("server", "setting jit", "", "off", grave=False),
        ),
        unused=(Acknowledgement("p99 < +5%", "delete", "soft deletes", "2025-12-01"),),
        runs=("20260601-101500-shop", "20260601-102000-shop"),
        warnings=("2 other uncork run(s) were measuring on this machine when this one started",),
    )
