"""The report on a guard, as a document and in a terminal: its gates, and what explains them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from uncork.model.results.guard import (
    Acknowledgement,
    GateCheck,
    GateOutcome,
    GuardResult,
    PlanDifference,
    SideDifference,
)
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.units import count_words, format_duration
from uncork.model.variant_evidence import Levels
from uncork.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Flame,
    Fold,
    Gallery,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Table,
    Tone,
    Value,
    filled_section,
)
from uncork.report.cells import column, header, number, table_of
from uncork.report.experiment.explanation import UNTOLD_COSTS
from uncork.report.guard.answer import (
    by_urgency,
    check_place,
    confirmation_text,
    effect_figures,
    guard_steps,
    metric_name,
    outcome_text,
    side_words,
    value_text,
    values_text,
)
from uncork.report.words import effect_text, number_text
from uncork.report.write.terminal_text import (
    as_text,
    write_answer,
    write_items,
    write_lines,
    write_list,
    write_paragraph,
    write_rows,
    write_steps,
    write_title,
)

TONES: Final[dict[GateOutcome, Tone]] = {
    GateOutcome.KEPT: "faster",
    GateOutcome.BROKEN: "slower",
    GateOutcome.UNDECIDED: "unsure",
    GateOutcome.ACKNOWLEDGED: "skipped",
}
_SIDES: Final = ("baseline", "candidate")
_MOST_CHARTS: Final = 6
_MOST_OPEN: Final = 6


def build_guard_document(
    result: GuardResult, of_run: Document | None = None, flames: Sequence[Flame] = ()
) -> Document:
    """Return the report on a guard, with `flames` of both sides, then the sections `of_run`."""
    title = f"guard: {result.name}" if result.name else "guard"
    return Document(
        title=title,
        question="",
        answer=result.answer,
        reasons=(*result.reasons, *result.warnings),
        steps=tuple(guard_steps(result, within=True)),
        facts=tuple(guard_facts(result)),
        variants=tuple(dict.fromkeys((*_SIDES, *(of_run.variants if of_run is not None else ())))),
        baseline=_SIDES[0],
        sections=(
            Section("gates", "Gates", tuple(_gates(result))),
            *filled_section("why", "What differs between the sides", *_why(result, flames)),
            *(of_run.sections if of_run is not None else ()),
        ),
        version=result.uncork_version,
        heading="Why",
    )


def gates_table(checks: Sequence[GateCheck], caption: str = "", *, narrow: bool = False) -> Table:
    """Return the table of gates, most urgent first; `narrow` puts all numbers into one column."""
    return table_of(
        caption,
        by_urgency(checks),
        column("outcome", lambda check: _outcome(check, narrow), whole=narrow),
        header("gate", lambda check: Value(check.gate.text, code=True)),
        header("on", check_place, when=any(map(check_place, checks))),
        column("effect", lambda check: _effect(check, narrow), whole=True),
        number("baseline", lambda check: _side(check, check.baseline), when=not narrow),
        number("candidate", lambda check: _side(check, check.candidate), when=not narrow),
    )


def _side(check: GateCheck, value: float | None) -> str:
    return "" if value is None else value_text(value, check.unit)


def _effect(check: GateCheck, narrow: bool) -> Value:
    tone = "plain" if check.outcome is GateOutcome.KEPT else TONES[check.outcome]
    return Value(effect_figures(check), more=values_text(check) if narrow else "", tone=tone)


def _outcome(check: GateCheck, narrow: bool) -> Value:
    known = check.acknowledgement
    notes = confirmation_text(check) if known is None or narrow else f"{known.date}: {known.reason}"
    warnings = "" if check.outcome is GateOutcome.KEPT or narrow else "; ".join(check.warnings)
    return Value(outcome_text(check.outcome), note=notes, more=warnings, tone=TONES[check.outcome])


@dataclass(frozen=True, slots=True)
class Explanation:
    """A broken or undecided gate: its title, its reason and possible explanations, and changed plans."""

    title: str
    lines: tuple[str, ...]
    plans: tuple[PlanDifference, ...]


def explanations(result: GuardResult) -> list[Explanation]:
    """Return each broken or undecided gate with what may explain it.

    Differences in a workload and cell are listed with its first gate only. Changed plans are listed with the
    gate on plans, or else with the first gate. A gate with nothing new to list is left out.
    """
    open_ = [
        check
        for check in by_urgency(result.checks)
        if check.outcome in (GateOutcome.BROKEN, GateOutcome.UNDECIDED)
    ]
    found, covered, drawn, reasons = [], set(), set(), set()
    planned = {(check.cell, check.workload) for check in open_ if check.gate.metric == "plan"}
    for check in open_:
        place = check.cell, check.workload
        why = why_lines(result, check) if place not in covered else ()
        reason = "" if check.reason in reasons and not why else check.reason
        lines = (*filter(None, [reason]), *why)
        reasons.add(check.reason)
        covered.add(place)
        plans: tuple[PlanDifference, ...] = ()
        if place not in drawn and (check.gate.metric == "plan" or place not in planned):
            plans = tuple(
                difference for difference in plans_at(result, *place) if difference.kind == "changed"
            )
            drawn.add(place)
        if lines or plans:
            where = f" on {check_place(check)}" if check_place(check) else ""
            found.append(Explanation(f"{check.gate.text}{where}: {check.outcome.value}", lines, plans))
    return found


def plan_block(difference: PlanDifference) -> Code:
    """Return a difference between plans as preformatted text."""
    of = f", {difference.statement}" if difference.statement != difference.workload else ""
    what = (
        "the plan changed"
        if difference.kind == "changed"
        else "the plan is unchanged, but its estimates differ"
    )
    return Code(
        difference.text,
        "diff" if difference.kind == "changed" else "text",
        f"{difference.workload}{of}: {what}",
    )


def guard_facts(result: GuardResult) -> Iterator[tuple[str, str]]:
    """Yield labels and values: the question, both sides, how and when they were measured, for how long."""
    if result.question:
        yield "question", result.question
    yield "baseline", side_words(result.baseline, result.against)
    yield "candidate", side_words(result.candidate, result.against)
    yield "measured", result.against
    yield "started", result.started_at[:16].replace("T", " ")
    yield "took", format_duration(result.elapsed_ns)
    yield "confidence", f"{result.confidence * 100:g} %"
    for place, run in enumerate(result.runs):
        yield ("run" if not place else "again"), run


def _acknowledged_table(known: Sequence[Acknowledgement], caption: str) -> Table:
    return table_of(
        caption,
        known,
        column("gate", lambda acknowledgement: Value(acknowledgement.gate, code=True)),
        column("on", lambda acknowledgement: acknowledgement.workload),
        column("reason", lambda acknowledgement: acknowledgement.reason),
        column("since", lambda acknowledgement: acknowledgement.date),
        column("by", lambda acknowledgement: acknowledgement.by),
        column("until", lambda acknowledgement: acknowledgement.until),
    )


def difference_tables(result: GuardResult) -> Iterator[Table]:
    """Yield a table of costs, waits, system calls or frames of both sides for each workload and cell."""
    places = dict.fromkeys((difference.cell, difference.workload) for difference in result.differences)
    for cell, workload in places:
        where = ", ".join([workload, *(f"{name} {level}" for name, level in cell)])
        for kind, words in KINDS.items():
            found = _differences_at(result, cell, workload, kind)
            code = kind in ("call", "frame")
            if found:
                yield table_of(
                    f"{where}: {words}",
                    found,
                    header(kind, [Value(difference.name, code=code) for difference in found]),
                    number(_SIDES[0], lambda difference: _value(difference.before, difference)),
                    number(_SIDES[1], lambda difference: _value(difference.after, difference)),
                    number("change", _change),
                )


def _gates(result: GuardResult) -> Iterator[Block]:
    yield gates_table(result.checks, f"{count_words(len(result.checks), 'gate')}, the most urgent first")
    known = [check.acknowledgement for check in result.checks if check.acknowledgement is not None]
    if known:
        yield _acknowledged_table(known, "Acknowledged changes")
    if result.unused:
        yield _acknowledged_table(result.unused, "Unused acknowledgements: remove them")
    charts = [chart for check in by_urgency(result.checks) if (chart := _rounds(check)) is not None]
    if charts:
        yield Legend(_SIDES, "The metric of each gate, by round.")
        yield Gallery(tuple(charts[:_MOST_CHARTS]))


def _rounds(check: GateCheck) -> LineChart | None:
    if check.outcome is GateOutcome.KEPT or len(check.by_round) < 2:
        return None
    lines = []
    for place, name in enumerate(_SIDES, start=1):
        points = [(float(one[0]), one[place]) for one in check.by_round]
        lines.append(Line(name, tuple((number, value) for number, value in points if value is not None)))
    metric = metric_name(check.gate.metric)
    return LineChart(
        title=", ".join(filter(None, (metric, check_place(check)))),
        description=f"{metric} of both sides by round; a trend that both sides share is drift.",
        axis="round",
        x_title="round",
        y_title=metric,
        unit="ns" if check.unit == "ns" else "number",
        lines=tuple(lines),
        variants=_SIDES,
    )


def _why(result: GuardResult, flames: Sequence[Flame]) -> Iterator[Block]:
    found = explanations(result)
    if found:
        yield Paragraph("These differences may explain the gates. They are not judged.")
    for place, explanation in enumerate(found):
        blocks: tuple[Block, ...] = (Bullets(explanation.lines), *map(plan_block, explanation.plans))
        yield Fold(explanation.title, blocks, open=place < _MOST_OPEN)
    lines = settings_lines(result)
    if lines:
        yield Fold(f"What else differs between the sides ({len(lines)})", (Bullets(lines),), open=True)
    shown = {id(plan) for explanation in found for plan in explanation.plans}
    yield from (plan_block(plan) for plan in result.plans if id(plan) not in shown)
    yield from flames
    tables = tuple(difference_tables(result))
    if tables:
        yield Fold("Costs, waits, system calls and frames of both sides", tables)


_MOST_EXPLAINED: Final = 6
"""Gates that are explained individually."""
_MOST_PLANS: Final = 3
_MOST_LINES: Final = 24
"""Lines shown of a changed plan; the HTML report has all of them."""
_DIFFERENCE: Final = {"-": "red", "+": "green"}


def render_guard_terminal(result: GuardResult, console: Console) -> None:
    """Print the report on a guard, the verdict first; every outcome is also stated in words."""
    write_answer(console, result.answer)
    asked = (f"Question: {result.question}",) if result.question else ()
    write_items(console, (*result.reasons, *asked))
    if result.checks:
        write_rows(console, gates_table(result.checks, narrow=True))
        console.print()
    found = explanations(result)
    for explanation in found[:_MOST_EXPLAINED]:
        write_title(console, explanation.title)
        write_items(console, explanation.lines)
        for plan in explanation.plans[:_MOST_PLANS]:
            _write_difference(plan, console)
    if len(found) > _MOST_EXPLAINED:
        write_paragraph(
            console, f"{len(found) - _MOST_EXPLAINED} more gates are explained in the HTML report."
        )
    write_list(console, "What else differs between the sides", settings_lines(result))
    unused = [
        f"{known.gate}{f' on {known.workload}' if known.workload else ''}: {known.reason}"
        for known in result.unused
    ]
    write_list(console, "Unused acknowledgements: remove them", unused)
    write_list(console, "Warnings", result.warnings)
    write_steps(console, tuple(guard_steps(result, within=True)))


def _write_difference(plan: PlanDifference, console: Console) -> None:
    of = f", {plan.statement}" if plan.statement != plan.workload else ""
    write_lines(console, [f"    plan of {plan.workload}{of}: - baseline, + candidate"])
    lines = [line for line in plan.text.splitlines() if not line.startswith(("---", "+++", "@@"))]
    for line in lines[:_MOST_LINES]:
        console.print(
            as_text(console, f"    {line}", _DIFFERENCE.get(line[:1], "")), overflow="ellipsis", no_wrap=True
        )
    if len(lines) > _MOST_LINES:
        write_lines(console, [f"    {len(lines) - _MOST_LINES} more lines"])
    console.print()


_NOTABLE: Final = 0.1
"""A cost or wait that differs by less than this share, or by fewer calls per operation, is not listed."""
_NOTABLE_SHARE: Final = 0.01
"""A frame whose share of the processor time differs by less than this is not listed."""
_LISTED: Final = 4
KINDS: Final = {
    "cost": "costs per operation",
    "wait": "session time per operation",
    "call": "system calls per operation",
    "frame": "share of the server's CPU",
}
"""Kinds of differences, in the order of the report, with their titles."""


def why_lines(result: GuardResult, check: GateCheck) -> tuple[str, ...]:
    """Return the differences between the sides where a gate was checked, one per line; not judged."""
    return tuple(_lines(result, check))


def plans_at(result: GuardResult, cell: Levels, workload: str) -> tuple[PlanDifference, ...]:
    """Return the differences between plans in a cell, for one workload, or for all if it is empty."""
    return tuple(
        plan for plan in result.plans if (not cell or plan.cell == cell) and workload in ("", plan.workload)
    )


def _differences_at(result: GuardResult, cell: Levels, workload: str, kind: str) -> list[SideDifference]:
    found = [
        difference
        for difference in result.differences
        if difference.kind == kind
        and (not cell or difference.cell == cell)
        and workload in ("", difference.workload)
    ]
    return sorted(found, key=_weight, reverse=True)


def settings_lines(result: GuardResult) -> tuple[str, ...]:
    """Return the other differences between the sides, besides the requested ones, one per line."""
    requested = {*result.baseline.what, *result.candidate.what}
    return tuple(
        f"{f'{setting.section} {setting.name}'.strip()}: {' → '.join(_setting_texts(setting))}"
        for setting in result.settings
        if not requested & {f"{setting.name} = {setting.before}", f"{setting.name} = {setting.after}"}
    )


def _setting_texts(difference: EnvironmentDifference) -> tuple[str, str]:
    if difference.section == "server" and difference.name.startswith(
        "setting "
    ):  # only non-default settings are stored
        absent = "default"
    else:
        absent = "not set" if difference.section in ("setting", "value") else "unknown"
    return difference.before or absent, difference.after or absent


def _lines(result: GuardResult, check: GateCheck) -> Iterator[str]:
    plans = plans_at(result, check.cell, check.workload)
    for plan in plans:
        of = f" of {plan.statement}" if plan.statement != check.workload else ""
        if plan.kind == "changed":
            yield f"plan{of}: changed, {_heads(plan.text)}"
        else:
            yield f"plan{of}: unchanged, but its statistics differ: {plan.text.partition(chr(10))[0]}"
    for kind, name in KINDS.items():
        known = _differences_at(result, check.cell, check.workload, kind)
        notable = [
            difference
            for difference in known
            if (difference.name not in UNTOLD_COSTS and _differs(difference))
        ]
        if notable:
            yield f"{name}: {'; '.join(_words(difference) for difference in notable[:_LISTED])}"
        elif known and not any(map(_differs, known)):
            least = "a point" if kind == "frame" else f"{_NOTABLE * 100:.0f} %"
            yield f"{name}: nothing differs by {least} or more"


def _heads(difference: str) -> str:
    lines = [line for line in difference.splitlines() if not line.startswith(("---", "+++", "@@"))]
    gone = next((line[1:].strip() for line in lines if line.startswith("-")), "")
    come = next((line[1:].strip() for line in lines if line.startswith("+")), "")
    return " → ".join(filter(None, (gone, come))) or "see the diff"


def _words(difference: SideDifference) -> str:
    if difference.before is None or difference.after is None:
        known = difference.after if difference.before is None else difference.before
        side = "candidate" if difference.before is None else "baseline"
        return f"{difference.name} {_value(known or 0.0, difference)} ({side} only)"
    shown = (
        f"{difference.name} {_value(difference.before, difference)} → {_value(difference.after, difference)}"
    )
    if difference.kind == "frame" or not difference.before or not difference.after:
        return shown
    return f"{shown} ({effect_text(difference.after / difference.before)})"


def _value(value: float | None, difference: SideDifference) -> str:
    if not value:
        return "" if value is None else "0"
    if difference.unit == "share":
        return f"{value * 100:.1f} %"
    if difference.unit == "ns":
        return format_duration(value)
    if difference.unit:
        return value_text(value, difference.unit)
    return number_text(value)


def _differs(difference: SideDifference) -> bool:
    before, after = difference.before or 0.0, difference.after or 0.0
    if difference.kind == "frame":
        return abs(after - before) >= _NOTABLE_SHARE
    if difference.kind == "call" and abs(after - before) < _NOTABLE:
        return False
    return abs(after - before) >= _NOTABLE * max(before, after) > 0


def _weight(difference: SideDifference) -> float:
    """Return the size of a difference: costs by their ratio, times and shares by their difference."""
    before, after = difference.before or 0.0, difference.after or 0.0
    if difference.kind != "cost":
        return abs(after - before)
    least = max(before, after) * 1e-3
    return abs(math.log(max(after, least) / max(before, least))) if least else 0.0


def _change(difference: SideDifference) -> str:
    if difference.before is None or difference.after is None or difference.before == difference.after:
        return ""
    if difference.unit == "share":
        change = (difference.after - difference.before) * 100
        return f"{'+' if change > 0 else '−'}{abs(change):.1f} points"
    return effect_text(difference.after / difference.before) if difference.before and difference.after else ""
