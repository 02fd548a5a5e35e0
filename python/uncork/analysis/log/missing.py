"""The evidence that a log lacks, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.analysis.log.costly_parts import WITH_PLAN
from uncork.analysis.log.evidence import executed_plans
from uncork.model.database.missing import Missing
from uncork.model.results.costly_parts import unexplained_part
from uncork.model.results.log import LogResult

_SLOW_NS: Final = 20_000_000
"""Mean time from which on auto_explain can log plans by their duration; faster statements need a sample."""


def plan_settings(mean_ns: float) -> str:
    """Return the settings that make a server log executed plans of statements with this mean time."""
    chosen = (
        "auto_explain.log_min_duration = '10ms'"
        if mean_ns >= _SLOW_NS
        else "auto_explain.log_min_duration = 0, auto_explain.sample_rate = 0.01"
    )
    return f"session_preload_libraries = 'auto_explain', {chosen} and auto_explain.log_analyze = on"


def missing_of_log(result: LogResult) -> tuple[Missing, ...]:
    """Return what could not be judged. Pure."""
    return tuple(_missing(result)) if result.executions.count else ()


def _missing(result: LogResult) -> Iterator[Missing]:
    part = unexplained_part(result.costliest)
    template = result.templates[0]
    if part is not None:
        template = next(template for template in result.templates if template.text == part.name)
    has_plans = any(example.kind == "plan" for template in result.templates for example in template.examples)
    executed = any(plan.root.loops for plan in executed_plans(template))
    if not has_plans or (part is not None and template.kind in WITH_PLAN and not executed):
        yield Missing(
            "executed plans in the log",
            "missing indexes, sorts on disk, and other faults of plans",
            plan_settings(template.mean_ns),
        )
    if result.withheld:
        names = ", ".join(one for one in result.withheld if one)
        yield Missing(
            f"files of {names or 'one server'} that do not overlap in time",
            "transactions, repeated statements, loops, lock waits and open sessions",
            "name the server of each file: --servers by-folder, or --server NAME=FILES",
        )
    yield Missing(
        "a connection to the server",
        "existing indexes, statistics, settings and waits",
        f"uncork advise {result.run.id} DSN",
    )
