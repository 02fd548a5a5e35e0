"""The parts of a merged load: sentences about what went wrong with them, and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from uncork.model.results.load import LoadResult, PartFacts, PartsFacts
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Table
from uncork.report.cells import column, header, number, table_of
from uncork.report.load.words import operation_word, rate_text
from uncork.report.quantity_words import duration_text
from uncork.report.words import count_words, series_words

_LATE_NS: Final = 50_000_000
"""A part that starts later than this after its start time is named: a twentieth of an interval."""
_STEP_NS: Final = 10_000_000
"""A clock whose offset changes by more than this was set; quartz drifts by 3 ms a minute at most."""
_APART_NS: Final = 1_000_000_000
"""Parts without a start time that begin farther apart than this are named: their seconds do not coincide."""


def parts_reasons(result: LoadResult) -> Iterator[str]:
    """Yield what to know about the parts, one sentence each, the gravest first."""
    found = result.parts
    if found is None:
        return
    yield from _lost(result, found)
    yield from _limits(found)
    for part in found.parts:
        if part.disagrees:
            factors = series_words(
                [f"{name} is {by:.2g} times as high" for name, by in part.disagrees.items()], "and"
            )
            yield f"{_name(part)} disagrees with the others: its {factors}."
    for part in found.parts:
        if part.start_late_ns is not None and part.start_late_ns > _LATE_NS:
            late = format_duration(part.start_late_ns)
            yield f"{_name(part)} started {late} after its start time: it was not ready before."
    yield from _clocks(found)
    apart = max((part.began_after_ns or 0 for part in found.parts if part.start_late_ns is None), default=0)
    if apart > _APART_NS:
        yield (
            f"The parts began up to {format_duration(apart)} apart by the clocks of their machines; "
            "--start-at starts them together."
        )


def _lost(result: LoadResult, found: PartsFacts) -> Iterator[str]:
    word = operation_word(result)
    for part in found.parts:
        if part.lost is not None:
            yield _lost_sentence(part, found, word)
        elif part.ended == "missing":
            unknown = "" if part.unknown is None else count_words(part.unknown, word)
            sent = f": up to {unknown} may have been sent" if unknown else ""
            yield f"Part {part.number} of {found.count} is missing{sent}."
        elif part.ended == "killed":
            yield (
                f"{_name(part)} was killed after second {part.seconds:.0f}: "
                f"{count_words(part.started, word)} are counted, up to {format_count(part.unknown or 0)} "
                f"more may have been sent. From then on, the load came from {found.count - 1} of "
                f"{found.count} parts."
            )
        elif part.ended != "complete":
            yield f"{_name(part)} ended early, at second {part.seconds:.0f}: {part.ended}."


def _lost_sentence(part: PartFacts, found: PartsFacts, word: str) -> str:
    """Return what is known about a part whose node was lost: the sentence names the second."""
    second = part.lost_s or 0.0
    gone = [other for other in found.parts if other.lost_s is not None and other.lost_s <= second]
    unknown = (
        "how many more were sent is not known"
        if part.unknown is None
        else f"up to {format_count(part.unknown)} more may have been sent"
    )
    return (
        f"{_name(part)} was lost at second {second:.0f} ({part.lost}): {count_words(part.started, word)} are "
        f"counted, {unknown}. From then on, the load came from {found.count - len(gone)} of {found.count} "
        "nodes."
    )


def _clocks(found: PartsFacts) -> Iterator[str]:
    """Yield the nodes whose clocks were set while the load ran."""
    for part in found.parts:
        drift, bound = part.clock_drift_ns, part.clock_bound_ns
        if drift is not None and bound is not None and abs(drift) > _STEP_NS + bound:
            yield (
                f"{_name(part)} had its clock set by {format_duration(abs(drift))} during the load: its "
                "seconds may not coincide with those of the others."
            )


def _limits(found: PartsFacts) -> Iterator[str]:
    known = [part for part in found.parts if part.limit is not None]
    limited = [part for part in known if part.limit == "yes"]
    perhaps = [part for part in known if part.limit == "perhaps"]
    if limited:
        names = series_words([str(part.number) for part in limited], "and")
        sentence = f"{len(limited)} of {found.count} generators were the limit (part {names})"
        if found.without is not None:
            rate, p50, p99 = found.without
            sentence += f"; without them: {rate_text(rate)} a second, "
            sentence += f"p50 {duration_text(p50)}, p99 {duration_text(p99)}"
        yield f"{sentence}."
    elif perhaps:
        yield f"{len(perhaps)} of {found.count} generators were perhaps the limit."
    elif known:
        yield f"None of the {count_words(len(known), 'generator')} was the limit."


def parts_table(result: LoadResult) -> Table | None:
    """Return the parts side by side, with accounts that close; None if the load was not merged."""
    found = result.parts
    if found is None:
        return None
    parts, whole = found.parts, result.operation
    limits = {"yes": "the limit", "perhaps": "perhaps the limit", "no": "not the limit"}

    def of_parts(read: Callable[[PartFacts], str], total: str = "") -> list[str]:
        return [*map(read, parts), total]

    def counts(read: Callable[[PartFacts], int | None]) -> list[str]:
        return of_parts(lambda part: _count(read(part)), _sum([read(part) for part in parts]))

    return table_of(
        f"Parts: planned {operation_word(result)}s are started, not started or unknown",
        range(len(parts) + 1),
        header("part", of_parts(lambda part: f"{part.number}/{found.count}", "all")),
        column("machine", of_parts(lambda part: part.host)),
        column("ended", of_parts(_ended)),
        number("planned", counts(lambda part: part.planned)),
        number("started", counts(lambda part: part.started)),
        number("not started", counts(lambda part: part.not_started)),
        number("unknown", counts(lambda part: part.unknown)),
        number("per second", of_parts(_rate, rate_text(result.operations_per_second))),
        number("p50", of_parts(lambda part: duration_text(part.p50_ns), duration_text(whole.p50_ns))),
        number("p99", of_parts(lambda part: duration_text(part.p99_ns), duration_text(whole.p99_ns))),
        number("clock", of_parts(_clock), when=any(part.clock_bound_ns is not None for part in parts)),
        column("generator", of_parts(lambda part: limits.get(part.limit or "", ""))),
        column("run", of_parts(lambda part: part.run or "")),
    )


def _rate(part: PartFacts) -> str:
    return rate_text(part.operations_per_second)


def _ended(part: PartFacts) -> str:
    done = part.ended in ("complete", "missing")
    return part.ended if done else f"{part.ended}, second {part.seconds:.0f}"


def _name(part: PartFacts) -> str:
    return f"Part {part.number} on {part.host}" if part.host else f"Part {part.number}"


def _clock(part: PartFacts) -> str:
    """Return how far the node's clock was ahead of the coordinator's, with the bound of that."""
    if part.clock_offset_ns is None or part.clock_bound_ns is None:
        return ""
    offset_ms, bound_ms = part.clock_offset_ns / 1e6, part.clock_bound_ns / 1e6
    sign = "−" if offset_ms < 0 else "+"
    return f"{sign}{abs(offset_ms):.1f} ± {bound_ms:.1f} ms"


def _count(value: int | None) -> str:
    return "" if value is None else format_count(value)


def _sum(values: Sequence[int | None]) -> str:
    """Return a sum as text; empty if a part of it is not known."""
    known = [value for value in values if value is not None]
    return format_count(sum(known)) if len(known) == len(values) else ""
