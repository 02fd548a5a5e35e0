"""The section on batches: the cost per row of each strategy, and what happens when a row fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from uncork.model.results.experiment import BatchFacts, Cost, PublishedFigure
from uncork.model.units import format_bytes, format_count, format_duration, series_words
from uncork.report.blocks import Block, Paragraph, Section, Table, Value
from uncork.report.cells import column, header, number, table_if_any, table_of
from uncork.report.experiment.view import View
from uncork.report.words import effect_text, number_text

Read = Callable[[Cost], float | None]
Show = Callable[[float], str]


_A_ROW: Final[tuple[tuple[str, Read, Show], ...]] = (
    ("server CPU", lambda c: _sum(c.server_user_ns, c.server_system_ns), format_duration),
    ("client CPU", lambda c: _sum(c.client_user_ns, c.client_system_ns), format_duration),
    ("WAL", lambda c: c.wal_bytes, format_bytes),
    ("buffers", lambda c: _sum(c.shared_hit, c.shared_read), number_text),
    ("dirtied", lambda c: c.shared_dirtied, number_text),
    ("sent", lambda c: c.sent_bytes, format_bytes),
    ("received", lambda c: c.received_bytes, format_bytes),
)
"""Costs that are shown per row, with their titles."""

_WAYS: Final = {
    "rows": "one statement per row, waiting for each",
    "transaction": "one statement per row, waiting for each, between BEGIN and COMMIT",
    "pipeline": "one statement per row, all sent without waiting",
    "values": "VALUES with {chunk} rows per statement",
    "unnest": "one array per column, {chunk} rows per statement",
    "copy": "COPY into a temporary table, merged from there",
}


def batch_sections(view: View) -> Iterable[Section]:
    """Yield the section; none if no workload has batches."""
    if not view.result.batches:
        return
    text = (
        "An operation is a whole batch. Every variant sends the same rows; a variant that left other data "
        "than the baseline was refused. The costs below are per row."
    )
    blocks: list[Block] = [Paragraph(text)]
    for workload in dict.fromkeys(batch.workload for batch in view.result.batches):
        blocks += _costs_a_row(view, workload)
        blocks.append(_units(view, workload))
    words = atomicity_words(view.result.batches)
    if words:
        blocks.append(Paragraph(words))
    if view.result.figures:
        blocks.append(figures_table(view, "per row"))
    yield Section("batches", "Costs per row", tuple(blocks))


def atomicity_words(batches: Sequence[BatchFacts]) -> str:
    """Return which variants commit each row and which each batch; empty if all do the same."""
    single = list(dict.fromkeys(batch.variant for batch in batches if batch.commits > 1))
    others = dict.fromkeys(batch.variant for batch in batches if batch.commits == 1)
    whole = [name for name in others if name not in single]
    if not single or not whole:
        return ""
    hidden = [
        name
        for name in whole
        if any(batch.variant == name and batch.implicit and batch.executions > 1 for batch in batches)
    ]
    text = (
        f"Not only speed differs: {series_words(single)} {_verb('commit', single)} each row separately, so a "
        f"failing row leaves the earlier rows in place; {series_words(whole)} {_verb('run', whole)} each "
        f"batch as one transaction, so a failing row undoes the whole batch, and {_verb('hold', whole)} "
        "every row lock until the batch ends"
    )
    if hidden:
        text += (
            f"; {series_words(hidden)} {'does' if len(hidden) == 1 else 'do'} so without an explicit BEGIN"
        )
    return f"{text}."


def _verb(word: str, names: Sequence[str]) -> str:
    return f"{word}s" if len(names) == 1 else word


def _costs_a_row(view: View, workload: str) -> Iterable[Table]:
    known = {(b.cell, b.variant): b for b in view.result.batches if b.workload == workload}
    costs = {(c.cell, c.variant): c for c in view.result.costs if c.workload == workload}
    used = [entry for entry in _A_ROW if any(entry[1](cost) for cost in costs.values())]
    places = sorted(known.keys() & costs.keys(), key=lambda place: view.order(*place))
    base = view.baseline

    def cells(read: Read, show: Show) -> list[Value]:
        return [
            _changed(
                _a_row(read(costs[cell, name]), known[cell, name]),
                _a_row(read(costs[cell, base]), known[cell, base]) if (cell, base) in costs else None,
                show,
            )
            for cell, name in places
        ]

    table = table_if_any(
        f"{workload}: cost per row, with the change from {base}",
        [known[place] for place in places],
        header("cell", lambda batch: view.cell(batch.cell)),
        header("variant", lambda batch: batch.variant),
        number("time", lambda batch: _time_a_row(view, workload, batch, known[batch.cell, base])),
        number("round trips", lambda batch: number_text(batch.round_trips / batch.rows)),
        number("statements", lambda batch: number_text(batch.executions / batch.rows)),
        *(number(title, cells(read, show)) for title, read, show in used),
    )
    return () if table is None else (table,)


def _time_a_row(view: View, workload: str, batch: BatchFacts, base: BatchFacts) -> Value:
    """Return the time per row; empty for a workload compared by throughput."""
    if view.better(workload) != "lower":
        return Value("", tone="muted")
    own, other = (
        next(
            (
                m.value
                for m in view.result.metrics
                if (m.cell, m.workload, m.variant) == (b.cell, b.workload, b.variant) and not m.again
            ),
            None,
        )
        for b in (batch, base)
    )
    return _changed(_a_row(own, batch), _a_row(other, base), format_duration)


def _a_row(number: float | None, batch: BatchFacts) -> float | None:
    return None if number is None else number / batch.rows


def _changed(own: float | None, base: float | None, show: Show) -> Value:
    if own is None:
        return Value("", tone="muted")
    return Value(show(own), note=effect_text(own / base) if own and base and own != base else "")


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _units(view: View, workload: str) -> Table:
    largest: dict[str, BatchFacts] = {}
    for batch in view.result.batches:
        if batch.workload == workload and (
            batch.variant not in largest or batch.rows > largest[batch.variant].rows
        ):
            largest[batch.variant] = batch
    size = format_count(max(batch.rows for batch in largest.values()))
    return table_of(
        f"{workload}: a batch of {size} rows",
        (largest[name] for name in view.variants if name in largest),
        header(
            "variant",
            lambda batch: Value(batch.variant, note="baseline" if batch.variant == view.baseline else ""),
        ),
        column("how rows are sent", _way),
        number("waits", lambda batch: format_count(batch.round_trips)),
        number("commits", lambda batch: format_count(batch.commits)),
        column("if a row fails", _failure),
        column("row locks", _locks),
    )


def _way(batch: BatchFacts) -> str:
    return _WAYS[batch.strategy].format(chunk=format_count(batch.chunk))


def _locks(batch: BatchFacts) -> str:
    return "each until its row commits" if batch.commits > 1 else "all until the batch ends"


def _failure(batch: BatchFacts) -> str:
    if batch.commits > 1:
        return "the earlier rows stay"
    if batch.implicit and batch.executions > 1:
        return "no row stays: the batch is one implicit transaction up to its Sync, and the rest is skipped"
    return "no row stays"


def figures_table(view: View, of: str) -> Table:
    """Return a table of published values next to measured ones, ``per row`` or ``per operation``."""
    return table_of(
        f"Published values, and values measured here, {of}",
        view.result.figures,
        header("published", lambda figure: figure.name),
        column("before → after", lambda figure: " → ".join(filter(None, (figure.before, figure.after)))),
        number("change", _published_change),
        column("measured here", lambda figure: _measured(view, figure)),
        number("change here", _change),
        column("what differs", lambda figure: figure.note),
    )


def _published_change(figure: PublishedFigure) -> str:
    return "" if figure.published_ratio is None else effect_text(figure.published_ratio)


def _change(figure: PublishedFigure) -> str:
    match figure.measured:
        case (before, after) if before:
            return effect_text(after / before)
    return ""


def _measured(view: View, figure: PublishedFigure) -> Value:
    if figure.measured is None:
        return Value("not measured" if figure.cost else "no counterpart", tone="muted")
    shows: dict[str, Show] = {
        "ns": format_duration,
        "B": format_bytes,
        "share": lambda share: f"{share * 100:.0f} %",
        "/s": lambda number: f"{number_text(number)}/s",
        "": number_text,
    }
    values = " → ".join(shows[figure.unit](number) for number in figure.measured)
    where = f", {view.cell(figure.cell)}" if figure.cell else ""
    return Value(f"{figure.cost}: {values}", note=f"{' → '.join(figure.variants)}{where}")
