"""A guard in the text format of Go's benchmarks: the rounds of both sides, for `benchstat`. Pure.

One file holds both sides; the configuration key `side` separates them: ``benchstat -col side FILE``. The
lines of one side, cut out at its key, can be compared with those of another guard: the names are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import GateCheck, GuardResult
from uncork.report.guard.words import side_words
from uncork.report.load.gobench import bench_environment, bench_number, bench_word

_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")


def guard_gobench(result: GuardResult, environment: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Return a line per round and side for each workload, cell and metric with a gate, ending with a newline.

    A check without rounds has one line per side; gates on plans have none. `environment` describes the run.
    """
    return "\n".join(_lines(result, environment or {})) + "\n"


def _lines(result: GuardResult, environment: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield from bench_environment(environment.get("machine", {}), "uncork/guard")
    measured = {
        (check.cell, check.workload, check.gate.metric): check for check in result.checks if _has_value(check)
    }
    for metric in dict.fromkeys(check.gate.metric for check in measured.values()):
        facts = GATE_METRICS.get(metric)
        yield f"Unit {_unit(metric)} better={facts.better if facts else 'lower'}"
    for place, side in ((0, result.baseline), (1, result.candidate)):
        yield ""
        yield f"# {side.role} is {' '.join(side_words(side).split())}"
        yield f"side: {side.role}"
        for check in measured.values():
            yield from _side(result, check, place)


def _side(result: GuardResult, check: GateCheck, place: int) -> Iterator[str]:
    values = [pair[place] for _, *pair in check.by_round] or [(check.baseline, check.candidate)[place]]
    keys = {"workload": check.workload or "all", **dict(check.cell)}
    parts = [f"{bench_word(key)}={bench_word(value)}" for key, value in keys.items()]
    name = "/".join([f"BenchmarkGuard{_camel(result.name)}", *parts])
    for value in values:
        if value is not None:
            yield f"{name} 1 {bench_number(value * _scale(check))} {_unit(check.gate.metric)}"


def _has_value(check: GateCheck) -> bool:
    return check.gate.metric != "plan" and (check.baseline is not None or check.candidate is not None)


def _scale(check: GateCheck) -> float:
    return 100.0 if check.unit == "share" else 1.0


def _unit(metric: str) -> str:
    """Return a unit that benchstat formats well: it knows ns, B and /op."""
    facts = GATE_METRICS.get(metric)
    if metric == "latency_mean":
        return "ns/op"
    if metric == "throughput":
        return "op/s"
    short = metric.removeprefix("latency_").replace("_bytes", "").replace("_", "-")
    match facts.unit if facts else "":
        case "ns":
            return f"{short}-ns"
        case "B":
            return f"{short}-B"
        case "share":
            return f"{short}-%"
        case _:
            return f"{short}/op"


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in _WORDS.split(name))
