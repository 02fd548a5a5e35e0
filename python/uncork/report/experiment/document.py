"""Build the report of an experiment as a neutral document, before any writer formats it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from uncork.model.results.experiment import Comparison, RunResult
from uncork.model.units import format_count, format_duration
from uncork.model.verdict import Verdict
from uncork.report.blocks import Document, Flame, Step
from uncork.report.experiment.batches import batch_sections
from uncork.report.experiment.conduct import conduct_sections
from uncork.report.experiment.data_checks import data_check_sections
from uncork.report.experiment.effects import effects_sections
from uncork.report.experiment.engines import engine_sections
from uncork.report.experiment.evidence import evidence_sections
from uncork.report.experiment.explanation import explanation_sections
from uncork.report.experiment.growth import growth_sections
from uncork.report.experiment.hosts import host_sections
from uncork.report.experiment.machine import machine_sections
from uncork.report.experiment.next_bottleneck import next_bottleneck_steps
from uncork.report.experiment.own_metrics import own_metric_sections
from uncork.report.experiment.request_charts import request_chart_sections
from uncork.report.experiment.requests import request_sections
from uncork.report.experiment.view import View
from uncork.report.words import capitalised, count_words, floor_text, known_so_far, series_words

_NOT_COMPARABLE: Final = "not comparable"
"""How the reason of a refusal begins if the baseline itself answers differently each time."""


def build_document(result: RunResult, flames: Sequence[Flame] = ()) -> Document:
    """Return the report on a result, the answer first; empty sections are left out.

    `flames` are the drawn flame graphs of its evidence.
    """
    view = View(result)
    return Document(
        title=result.run.name,
        question=result.run.question,
        answer=result.answer,
        reasons=result.reasons,
        steps=tuple(next_steps(result)),
        tally=view.counts(result.comparisons),
        facts=tuple(_facts(result)),
        variants=view.variants,
        baseline=view.baseline,
        sections=(
            *effects_sections(view),
            *host_sections(view),
            *request_chart_sections(view),
            *request_sections(view),
            *growth_sections(view),
            *batch_sections(view),
            *engine_sections(view),
            *data_check_sections(view),
            *own_metric_sections(view),
            *explanation_sections(view),
            *evidence_sections(result, flames),
            *machine_sections(view),
            *conduct_sections(view),
        ),
        version=result.run.uncork_version,
    )


def next_steps(result: RunResult) -> Iterable[Step]:
    """Yield the next steps, most urgent first."""
    run = result.run
    found = [comparison.verdict for comparison in result.comparisons]
    resume = f"uncork run --resume {run.id}"
    if run.status != "complete" and run.trials:
        yield Step(f"The run is {run.status}; its measurements are kept. Resume it:", resume)
    refused = [comparison for comparison in result.comparisons if comparison.verdict is Verdict.REFUSED]
    if refused and all(comparison.reason.startswith(_NOT_COMPARABLE) for comparison in refused):
        yield Step(
            "Make the change that the reason names, because the baseline's own answers differ from one time "
            "to the next, then run the experiment again."
        )
    elif refused:
        names = series_words(dict.fromkeys(comparison.variant for comparison in refused))
        what = "the answers" if result.requests else "the SQL"
        yield Step(
            f"Correct {what} of {names}. If a different answer is acceptable, set "
            'answer = "may differ" in the workload.'
        )
    if Verdict.NOT_ENOUGH_EVIDENCE in found:
        yield _more_evidence(result, resume)
    if result.noise.floor is not None and result.noise.floor > result.practical:
        yield _less_noise(result, floor_text(result.noise.floor))
    if not found:
        yield Step("Nothing was measured. Run the experiment:", run.reproduce)
    elif Verdict.FASTER in found:
        yield from next_bottleneck_steps(result)
        yield Step("Before production, measure with your own data, and measure the cost of the migration.")
    elif set(found) <= {Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.SLOWER}:
        yield Step("Keep the baseline: no variant brings a gain that matters.")


def _more_evidence(result: RunResult, resume: str) -> Step:
    """Return the step towards verdicts for the comparisons that have none."""
    open_ones = [
        comparison for comparison in result.comparisons if comparison.verdict is Verdict.NOT_ENOUGH_EVIDENCE
    ]
    known = sum(known_so_far(comparison) is not None for comparison in result.comparisons)
    unknown = len(open_ones) - known
    many = [f"there is not enough evidence in {count_words(unknown, 'comparison')}"] if unknown else []
    if known:
        many.append(f"only the direction is known in {count_words(known, 'comparison')}")
    text = capitalised(" and ".join(many))
    if result.hosts:
        text = f"{text}. Measure longer on these hosts, or on more of them"
        if _together(result):
            return Step(f"{text}:", f"{result.run.reproduce} --budget 30min")
        return Step(f"{text}, and merge again.")
    if all(_precise(comparison, result) for comparison in open_ones):
        finer = f"{result.precision * 50:.2g}%"
        return Step(
            f"{text}, although every interval has the requested precision "
            f"({floor_text(result.precision)}). Request a higher precision:",
            f"{resume} --precision {finer} --budget 30min",
        )
    return Step(f"{text}. Measure longer:", f"{resume} --budget 30min")


def _less_noise(result: RunResult, floor: str) -> Step:
    """Return the step against a noise floor that hides differences that matter."""
    text = (
        f"The noise floor ({floor}) is above the difference that matters "
        f"({floor_text(result.practical)}). Stop other programs on the "
    )
    if result.hosts:
        if _together(result):
            return Step(f"{text}hosts, then measure again:", result.run.reproduce)
        return Step(f"{text}hosts, measure again there, and merge again.")
    return Step(f"{text}machine, then measure again:", result.run.reproduce)


def _together(result: RunResult) -> bool:
    """Return whether several hosts measured at the same time (`--hosts`), and were not merged afterwards."""
    return any(host.waves for host in result.hosts)


def _precise(comparison: Comparison, result: RunResult) -> bool:
    """Return whether a comparison has the requested precision, so that a resumed run would skip it."""
    if not comparison.low or comparison.high is None:
        return False
    return math.expm1(math.log(comparison.high / comparison.low) / 2.0) <= result.precision


def _facts(result: RunResult) -> Iterable[tuple[str, str]]:
    run = result.run
    yield "run", run.id
    yield "started", run.started_at[:16].replace("T", " ")
    yield "took", format_duration(run.elapsed_ns)
    yield "rounds", format_count(run.rounds)
    yield "trials", format_count(run.trials) + (f", {run.failed_trials} failed" if run.failed_trials else "")
    yield "confidence", f"{result.confidence * 100:g} %"
    if run.stopped_because:
        yield "stopped", run.stopped_because.rstrip(".")
