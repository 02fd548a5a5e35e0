"""Compare a system with itself: which differences can this machine resolve, and what disturbs it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from uncork.experiment.spec.schema import parse_spec
from uncork.model.results.experiment import Comparison, RunResult
from uncork.model.units import count_words, format_duration
from uncork.model.verdict import Verdict
from uncork.report.words import verdict_word
from uncork.requests.source import Options, Source, starter
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.power import detectable_change, detection_power

FALSE = frozenset({Verdict.FASTER, Verdict.SLOWER, Verdict.REFUSED})
KNOWN: Final = "known"
"""The workload of the known change, whose variant has `KNOWN_CHANGE` more to do."""
KNOWN_CHANGE: Final = 0.2
_POWER: Final = 0.8
"""The probability at which the smallest change that would be found is reported."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The doctor's findings as lines of (heading, finding), and the number of false alarms.

    `comparisons` counts those of the system with itself. `found` says whether the known change was found;
    None if the run has none.
    """

    lines: tuple[tuple[str, str], ...]
    false_alarms: int
    comparisons: int
    found: bool | None = None


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
        heading = f"the same, {comparison.workload}"
        if comparison.workload == KNOWN:
            heading = f"{KNOWN_CHANGE:+.0%}, known"
        lines.append((heading, f"{span} at {value}: {verdict_word(comparison)}"))
    lines += [
        (f"power, {comparison.workload}", _power(comparison, result.confidence))
        for comparison in result.comparisons
    ]
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
    same = [comparison for comparison in result.comparisons if comparison.workload != KNOWN]
    known = [comparison for comparison in result.comparisons if comparison.workload == KNOWN]
    false = sum(comparison.verdict in FALSE for comparison in same)
    false += sum(comparison.verdict is Verdict.FASTER for comparison in known)
    found = all(comparison.verdict is Verdict.SLOWER for comparison in known) if known else None
    return Diagnosis(tuple(lines), false, len(same), found)


def _power(comparison: Comparison, confidence: float) -> str:
    """Say which change a run like this one would find, from the noise of its own rounds."""
    rounds, std_dev = comparison.rounds, comparison.std_dev
    if rounds < MINIMUM_ROUNDS or std_dev is None:
        return f"unknown after {count_words(rounds, 'round')}: a verdict needs {MINIMUM_ROUNDS}"
    least = detectable_change(_POWER, rounds, std_dev, confidence)
    chance = detection_power(KNOWN_CHANGE, rounds, std_dev, confidence)
    size = "" if least is None else f"of {least:.1%}" if least < 1.0 else f"by a factor of {1.0 + least:.2g}"
    smallest = f", and one {size} in {_POWER:.0%}" if size else ""
    return (
        f"{count_words(rounds, 'round')} like these find a change of {KNOWN_CHANGE:.0%} in {chance:.0%} of "
        f"runs{smallest}"
    )
