"""The report on an experiment, as a document and in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from rich.console import Console

from uncork.model.results.experiment import Comparison, EngineFacts, OwnMetricFacts, RunFacts, RunResult
from uncork.model.units import count_words, format_count, format_duration, series_words
from uncork.model.variant_evidence import EvidenceFacts, WaitShare
from uncork.model.verdict import Verdict
from uncork.report.blocks import Document, Flame, Paragraph, Section, Step, Table, Value
from uncork.report.cells import BoundColumn, column, header, number, table_of
from uncork.report.experiment.batches import batch_sections
from uncork.report.experiment.conduct import conduct_sections, host_sections, machine_sections
from uncork.report.experiment.effects import effects_sections, verdict_tables
from uncork.report.experiment.explanation import (
    cost_highlights,
    evidence_sections,
    explanation_sections,
    growth_sections,
    growth_table,
    growth_words,
)
from uncork.report.experiment.requests import data_check_sections, request_chart_sections, request_sections
from uncork.report.experiment.view import Place, View
from uncork.report.words import (
    SYMBOLS,
    TONES,
    capitalised,
    cell_words,
    enough_budget,
    figures_text,
    floor_text,
    known_so_far,
    level_text,
    number_text,
    published_text,
    verdict_text,
)
from uncork.report.write.terminal_text import (
    table_width,
    wrapped,
    write_answer,
    write_items,
    write_lines,
    write_list,
    write_paragraph,
    write_rows,
    write_steps,
    write_title,
)

_NOT_COMPARABLE: Final = "not comparable"
"""How the reason of a refusal begins if the baseline itself answers differently each time."""


def build_document(result: RunResult, flames: Sequence[Flame] = ()) -> Document:
    """Return the report on a result with its drawn `flames`, without empty sections."""
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
            *_engine_sections(view),
            *data_check_sections(view),
            *_own_metric_sections(view),
            *explanation_sections(view),
            *evidence_sections(result, flames),
            *machine_sections(view),
            *conduct_sections(view),
        ),
        version=result.run.uncork_version,
        heading="Why",
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
    budget, many_decided = _forecast(result.run, open_ones)
    if budget is None:
        return Step(f"{text}. Measure longer:", f"{resume} --budget 30min")
    which = "them" if many_decided == len(open_ones) else f"{many_decided} of the {len(open_ones)}"
    return Step(f"{text}. Measure longer; this will probably decide {which}:", f"{resume} --budget {budget}")


def _forecast(run: RunFacts, open_ones: Sequence[Comparison]) -> tuple[str | None, int]:
    """Return the budget that will probably decide open comparisons, and how many; None if none is in reach.

    The server is set up again, and each round takes as long as those so far.
    """
    setup_ns = run.setup_ns or 0
    times_s = [
        (setup_ns + (run.elapsed_ns - setup_ns) * (comparison.rounds_needed / comparison.rounds - 1)) / 1e9
        for comparison in open_ones
        if comparison.rounds_needed is not None
    ]
    in_reach = [time_s for time_s in times_s if enough_budget(time_s) is not None]
    return (enough_budget(max(in_reach)) if in_reach else None), len(in_reach)


def _less_noise(result: RunResult, floor: str) -> Step:
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


def _own_metric_sections(view: View) -> Iterable[Section]:
    if view.result.own_metrics:
        yield Section("own-metrics", "Metrics of the file", (_table(view),))


def _table(view: View) -> Table:
    found = {
        (own_metric.name, own_metric.workload, own_metric.cell, own_metric.variant): own_metric
        for own_metric in view.result.own_metrics
    }
    places = list(dict.fromkeys(key[:3] for key in found))
    return table_of(
        "Mean over the trials, and the range if they differ",
        places,
        header("metric", lambda place: place[0]),
        header("workload", lambda place: place[1]),
        header("cell", lambda place: cell_words(place[2], view.factors)),
        *(number(name, [_value(found.get((*place, name))) for place in places]) for name in view.variants),
    )


def _value(metric: OwnMetricFacts | None) -> Value:
    if metric is None:
        return Value("", tone="muted")
    ends = "" if metric.least == metric.most else f"{number_text(metric.least)} to {number_text(metric.most)}"
    return Value(number_text(metric.mean), note=ends)


def _engine_sections(view: View) -> Iterable[Section]:
    engines = view.result.engines
    if not engines:
        return
    table = table_of(
        "Engines, and the cost of an empty statement with each",
        engines,
        header("engine", lambda engine: Value(engine.title, note=engine.version.split(" on ")[0])),
        column("variants", lambda engine: ", ".join(engine.variants)),
        column("client", lambda engine: "same process" if engine.shares_process else "separate"),
        number("empty statement: p50", lambda engine: _time(engine.overhead_p50_ns)),
        number("p99", lambda engine: _time(engine.overhead_p99_ns)),
        number("client CPU", lambda engine: _time(engine.client_cpu_ns)),
        number("share of its fastest latency", lambda engine: _overhead_share(view, engine)),
    )
    yield Section("engines", "Engines and their clients", (Paragraph(_words(engines)), table))


def _words(engines: Iterable[EngineFacts]) -> str:
    shared = [engine.title for engine in engines if engine.shares_process]
    text = (
        "Each engine has its own client, so a difference between two engines includes the difference between "
        "their clients. The cost of an empty statement bounds that difference, except for converting rows to "
        "values, which each fetched row adds."
    )
    if shared:
        text += (
            f" {series_words(shared)}: engine and client share a process, which is new in every trial. All "
            "of its processor time is listed under the server, and no data crosses a socket."
        )
    return text


def _overhead_share(view: View, engine: EngineFacts) -> Value:
    latencies = [
        metric.value
        for metric in view.result.metrics
        if metric.variant in engine.variants and metric.value and view.metric(metric.workload) != "throughput"
    ]
    if not latencies or engine.overhead_p50_ns is None:
        return _nothing()
    return Value(f"{min(engine.overhead_p50_ns / min(latencies), 1.0) * 100:.0f} %")


def _time(nanoseconds: float | None) -> Value:
    return _nothing() if nanoseconds is None else Value(format_duration(nanoseconds))


def _nothing() -> Value:
    return Value("", tone="muted")


# ---- after a verdict: what limits the better variant now ----
#
# The evidence of each variant shows what the server's sessions did for one operation. The largest part of
# the better variant's time is where the next change can gain most. The processor time of a loaded service
# counts as one more part.


_CPU: Final = "CPU"
_IDLE: Final = "idle in transaction"
_REMEDIES: Final = {
    "Lock": "find who holds the locks (uncork profile db), and shorten those transactions",
    "IO": "read less (an index, fewer columns), or add memory",
    "LWLock": "run fewer sessions at once, or spread the data that they all touch",
    "Client": "fetch fewer rows, or send more statements before waiting for answers",
    _CPU: 'look at its plan in this report, and at its functions (evidence = ["stacks"] in the file)',
    _IDLE: "send fewer statements for each transaction",
}
"""What to do about the largest part, by the class of wait."""


def next_bottleneck_steps(result: RunResult) -> Iterator[Step]:
    """Yield a step for each workload with a faster variant: what takes most of that variant's time now."""
    for workload in dict.fromkeys(comparison.workload for comparison in result.comparisons):
        faster = [
            comparison
            for comparison in result.comparisons
            if comparison.workload == workload
            and comparison.verdict is Verdict.FASTER
            and comparison.ratio is not None
        ]
        better = next((one.better for one in result.workloads if one.name == workload), "lower")
        ranked = sorted(faster, key=lambda one: (one.ratio or 1.0) * (1 if better == "lower" else -1))
        for comparison in ranked:
            known = [
                evidence
                for evidence in result.evidence
                if evidence.workload == comparison.workload and evidence.variant == comparison.variant
            ]
            found = next(
                (evidence for evidence in known if evidence.cell == comparison.cell),
                known[0] if known else None,
            )
            if found is not None and found.waits:
                yield _step(result, comparison, found, found.waits[0])
                break


def _step(result: RunResult, comparison: Comparison, found: EvidenceFacts, top: WaitShare) -> Step:
    where = f" at {cell_words(found.cell, result.factors)}" if found.cell else ""
    begin = f"With {comparison.variant} on {comparison.workload}{where}, the next bottleneck is"
    place = (found.cell, found.workload, found.variant)
    costs = (cost for cost in result.costs if (cost.cell, cost.workload, cost.variant) == place)
    service_ns = sum((cost.service_user_ns or 0.0) + (cost.service_system_ns or 0.0) for cost in costs)
    if service_ns > top.operation_ns:
        return Step(
            f"{begin} computing in the service: {format_duration(service_ns)} of processor time for each "
            f"operation, more than any part of its sessions' time on the server. To go on, profile the "
            "functions of the service (uncork profile service)."
        )
    share = f"{top.share * 100:.0f} %"
    each = format_duration(top.operation_ns)
    what = "computing on the server" if top.name == _CPU else f"{top.name}"
    if top.name not in (_CPU, _IDLE):
        what = f"waiting ({top.name})"
    remedy = _REMEDIES.get(top.name.partition(":")[0], "look at the waits in this report")
    return Step(
        f"{begin} {what}: {each} of each operation, {share} of its sessions' time. To go on, {remedy}."
    )


def render_terminal(result: RunResult, console: Console) -> None:
    """Print the report on a run; every verdict also has a sign and words."""
    document = build_document(result)
    view = View(result)
    write_paragraph(console, document.question, "italic")
    write_answer(console, document.answer)
    write_items(console, document.reasons)
    for table in _verdicts(view, console):
        write_lines(console, wrapped(table.caption, console.width), "bold")
        console.print()
        write_rows(console, table)
        console.print()
    if document.tally:
        counts = (f"{SYMBOLS[verdict]} {words} {count}" for verdict, words, count in document.tally)
        write_paragraph(console, "   ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in counts))
    floor = result.noise.floor
    if floor is not None:
        write_paragraph(
            console, f"Noise floor: {floor_text(floor)} ({view.baseline} against itself, in every block)."
        )
    _write_growth(view, console)
    costs = cost_highlights(view)
    write_list(console, "Largest differences in cost per operation, baseline → variant", costs)
    write_list(console, "Warnings", result.warnings)
    write_steps(console, document.steps)


def _write_growth(view: View, console: Console) -> None:
    growth = view.result.growth
    if growth is None:
        return
    write_title(console, f"How time grows with {growth.factor}")
    write_paragraph(console, growth_words(growth))
    if growth.lines:
        write_rows(console, growth_table(view, growth))
        console.print()


def _verdicts(view: View, console: Console) -> Iterable[Table]:
    """Return a table per workload: variants side by side if they fit, otherwise one comparison per line."""
    wide = verdict_tables(view)
    return wide if all(table_width(table) <= console.width for table in wide) else _lists(view)


def _lists(view: View) -> Iterable[Table]:
    for table, workload in zip(verdict_tables(view), view.workloads, strict=True):
        found = [
            (place, comparison)
            for place in view.places
            for name in (view.others if place[1] == workload else ())
            if (comparison := view.comparisons.get((*place, name))) is not None
        ]
        published = any(comparison.published_ratio is not None for _, comparison in found)
        yield table_of(
            table.caption,
            [comparison for _, comparison in found],
            *_first_levels(view, [place for place, _ in found]),
            header("variant", lambda comparison: comparison.variant),
            column("effect", _effect),
            column("verdict", _verdict),
            number("pub-\nlished", _published, when=published),
        )


def _first_levels(view: View, places: Sequence[Place]) -> Iterator[BoundColumn[Any]]:
    levels = [
        {} if place == before else dict(place[0])
        for place, before in zip(places, (None, *places), strict=False)
    ]
    for factor in view.table_factors:
        yield header(
            factor.name,
            [level_text(of_place.get(factor.name, ""), factor.numeric) for of_place in levels],
            number=factor.numeric,
        )


def _effect(comparison: Comparison) -> Value:
    """Return an effect and its interval, with the effects of a column aligned."""
    effect, bracket, ends = figures_text(comparison).partition(" [")
    return Value(f"{effect:>6}{bracket}{ends}", tone=TONES[comparison.verdict])


def _verdict(comparison: Comparison) -> Value:
    return Value(verdict_text(comparison), tone=TONES[comparison.verdict])


def _published(comparison: Comparison) -> Value:
    return Value(published_text(comparison), tone="muted")
