"""Compare a system with itself: which differences can this machine resolve, and what disturbs it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uncork.experiment.spec.schema import parse_spec
from uncork.model.results.experiment import RunResult
from uncork.model.units import format_duration
from uncork.model.verdict import Verdict
from uncork.report.words import verdict_word
from uncork.requests.source import Options, Source, starter

__all__ = ["Diagnosis", "diagnose", "doctor_source"]

FALSE = frozenset({Verdict.FASTER, Verdict.SLOWER, Verdict.REFUSED})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The doctor's findings as lines of (heading, finding), and the number of false alarms."""

    lines: tuple[tuple[str, str], ...]
    false_alarms: int
    comparisons: int


def doctor_source(options: Options) -> Source:
    """Return the experiment that compares a system with itself."""
    text = starter("doctor")
    spec = parse_spec(text, file="doctor.toml", read=str, overrides={})
    stop = spec.stop.model_copy(update={} if options.budget_ns is None else {"budget": options.budget_ns})
    return Source(spec.model_copy(update={"stop": stop}), text, {}, options)


def diagnose(result: RunResult, build: Mapping[str, str]) -> Diagnosis:
    """Turn the result of a doctor's run into findings."""
    lines = [("noise floor", result.noise.sentence)]
    for comparison in result.comparisons:
        if comparison.low is not None and comparison.high is not None:
            span = f"{comparison.low - 1:+.1%} to {comparison.high - 1:+.1%}"
        else:
            span = "no interval yet"
        value = "" if comparison.baseline_value is None else format_duration(comparison.baseline_value)
        lines.append((f"the same, {comparison.workload}", f"{span} at {value}: {verdict_word(comparison)}"))
    lines += [
        (f"disturbed by {name}", f"{count} of {result.run.trials} trials")
        for name, count in result.disturbances.items()
    ]
    if not result.disturbances:
        quiet = "no checkpoint, autovacuum, steal, throttling or other programs during any trial"
        lines.append(("disturbances", quiet))
    machine = result.environment.get("machine", {})
    lines.append(("clock source", machine.get("clock source", "unknown")))
    for cost in result.costs:
        if cost.variant == "baseline" and cost.client_user_ns is not None:
            client = cost.client_user_ns + (cost.client_system_ns or 0)
            lines.append(
                (f"generator, {cost.workload}", f"{format_duration(client)} of processor time per operation")
            )
    lines.append(("core", f"{build.get('version')}, {build.get('profile')} build"))
    if build.get("profile") != "release":
        lines.append(
            ("warning", "this is not a release build: the generator uses more processor time than it should")
        )
    false = sum(comparison.verdict in FALSE for comparison in result.comparisons)
    return Diagnosis(tuple(lines), false, len(result.comparisons))
