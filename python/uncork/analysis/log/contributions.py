"""Who and what took how much of the time: executions added up by a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from uncork.analysis.log.statement_kind import kind_of
from uncork.model.records import build_from
from uncork.model.results.log import OTHERS, Contribution
from uncork.model.tables.log import OriginRow

COUNTED: Final = ("executions", "sum_us", "max_us")
"""The columns that are added up."""
_MOST: Final = 100
"""Names that a report shows; `_MOST_OF_TEMPLATE` of a single template."""
_MOST_OF_TEMPLATE: Final = 10

Origin = Literal["application", "user", "database", "host", "server"]


def contributions(
    names: Iterable[str], counts: Mapping[str, Sequence[int]], total: int, most: int = _MOST
) -> tuple[Contribution, ...]:
    """Add up executions by their names, in descending order of time; empty if there are no names.

    `counts` has the columns of `COUNTED`. Names beyond the first `most` are added up. Plain loops: to load
    Arrow's own grouping takes longer than they take for 50 000 rows.
    """
    sums = _sums(list(names), *(counts[name] for name in COUNTED))
    if not any(sums):
        return ()
    others = sums.pop(OTHERS, None)
    ranked = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    left = [*(of for _, of in ranked[most:]), *([others] if others else [])]
    if left:
        executed, times, maxima = zip(*left, strict=True)
        ranked[most:] = [(OTHERS, [sum(executed), sum(times), max(maxima)])]
    return tuple(
        Contribution(key, executions, micros * 1000, longest * 1000, micros / total if total else 0.0)
        for key, (executions, micros, longest) in ranked
    )


def _sums(
    names: Sequence[str], executions: Sequence[int], micros: Sequence[int], longest: Sequence[int]
) -> dict[str, list[int]]:
    if len(set(names)) == 1:
        return {names[0]: [sum(executions), sum(micros), max(longest)]}
    sums: dict[str, list[int]] = {}
    for key, executed, spent, most in zip(names, executions, micros, longest, strict=True):
        of = sums.get(key)
        if of is None:
            sums[key] = [executed, spent, most]
            continue
        of[0] += executed
        of[1] += spent
        of[2] = max(of[2], most)
    return sums


def of_template(rows: Sequence[OriginRow], name: Origin, total: int) -> tuple[Contribution, ...]:
    """Add up the rows of a template by a name, as `contributions` does."""
    names: list[str] = [getattr(row, name) for row in rows]
    if len(rows) == 1 and names[0] not in ("", OTHERS):
        share = rows[0].sum_us / total if total else 0.0
        return (build_from(Contribution, rows[0], name=names[0], share=share),)
    counts = {column: [getattr(row, column) for row in rows] for column in COUNTED}
    return contributions(names, counts, total, _MOST_OF_TEMPLATE)


def kinds_of(columns: Mapping[str, Sequence[Any]], total: int) -> tuple[Contribution, ...]:
    """Add up executions by the kind of statement. `columns` are those of templates."""
    executed = [at for at, executions in enumerate(columns["executions"]) if executions]
    counts = {name: [columns[name][at] for at in executed] for name in COUNTED}
    texts = columns["text"]
    return contributions((kind_of(texts[at]) for at in executed), counts, total)
