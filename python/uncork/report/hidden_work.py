"""What the role that watches a server may not see, as sentences before the findings, with the GRANT. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from uncork.model.database.missing import HiddenWork, Unplanned, WhyUnplanned, grant
from uncork.model.units import count_words, format_count, share_text
from uncork.report.blocks import Step

_LEAST: Final = 0.05
"""Smallest part of the time that is reported first if it is hidden: a finding costs a tenth."""
_STATS: Final = "pg_read_all_stats"
_BECAUSE: Final[dict[WhyUnplanned, tuple[str, str]]] = {
    "not readable": ("reads a table", "read tables"),
    "not writable": ("changes a table", "change tables"),
    "not callable": ("is refused", "are refused"),
    "no values": ("is stored", "are stored"),
    "not found": ("uses a name", "use names"),
    "row security": ("is planned", "are planned"),
    "no plan": ("is a command", "are commands"),
    "other database": ("belongs to another database", "belong to other databases"),
    "not asked": ("was", "were"),
    "refused": ("is refused", "are refused"),
}
"""The verb of each reason, for one statement and for several."""


def hides_findings(hidden: HiddenWork | None) -> bool:
    """Return whether so much work is hidden that a finding could be hidden too."""
    return hidden is not None and (hidden.share is None or hidden.share >= _LEAST)


def hidden_sentences(hidden: HiddenWork | None, unplanned: Iterable[Unplanned] = ()) -> tuple[str, ...]:
    """Return the sentences that an answer begins with; none if nothing that matters is hidden."""
    found: list[str] = []
    if hidden is not None and hides_findings(hidden):
        remedy = grant(_STATS, hidden.role)
        found.append(_what(hidden))
        found.append(
            f"A superuser can change this with {remedy}; then watch again"
            if hidden.most
            else f"{remedy} would show it"
        )
    for statement in _unreadable(unplanned):
        found.append(
            f'Role "{statement.role}" may not read the tables of statements with '
            f"{share_text(statement.share)} of the statements' time"
        )
        found.append("Their plans are missing, and so are findings that need plans")
        found.append(f"{statement.remedy} gives it the plans")
    return tuple(found)


def hidden_note(hidden: HiddenWork) -> str:
    """Return the message of a command that ends with status 1, because most of the work is hidden."""
    return (
        f'most of the work of this database is hidden from role "{hidden.role}", so findings are missing; '
        f"as a superuser, run {grant(_STATS, hidden.role)}, then watch again"
    )


def hidden_steps(
    hidden: HiddenWork | None, unplanned: Iterable[Unplanned] = (), reproduce: str = ""
) -> Iterator[Step]:
    """Yield how to let the role see more, and the command to repeat if most was hidden."""
    if hidden is not None and hides_findings(hidden):
        yield Step("As a superuser, let the role see the work of other roles:", grant(_STATS, hidden.role))
    for statement in _unreadable(unplanned):
        yield Step(
            "As a superuser, let the role read the tables, so that uncork gets plans:", statement.remedy
        )
    if hidden is not None and hidden.most and reproduce:
        yield Step("Then watch again:", reproduce)


def unplanned_words(unplanned: Sequence[Unplanned]) -> str:
    """Return why statements have no plan, by reason; empty if all have one."""
    if not unplanned:
        return ""
    many = count_words(sum(len(statement.templates) for statement in unplanned), "statement")
    return f"No plan of {many}: {'; '.join(map(_group, unplanned))}."


def _unreadable(unplanned: Iterable[Unplanned]) -> Iterator[Unplanned]:
    return (
        statement for statement in unplanned if statement.why == "not readable" and statement.share >= _LEAST
    )


def _what(hidden: HiddenWork) -> str:
    who = f'Role "{hidden.role}" may not see'
    if hidden.share is None:
        return f"{who} what the sessions of other roles do"
    share = share_text(hidden.share)
    if hidden.base == "sessions":
        return f"{who} {share} of the active sessions in this database"
    return f"{who} the statements with {share} of the statements' time in this database"


def _group(unplanned: Unplanned) -> str:
    many = len(unplanned.templates)
    verb = _BECAUSE[unplanned.why][many != 1]
    because = f"{format_count(many)} {verb}{_more(unplanned)}"
    return f"{because} ({unplanned.remedy})" if unplanned.remedy else because


def _more(unplanned: Unplanned) -> str:
    """Return how the clause of a reason goes on after its verb."""
    return {
        "not readable": f' that role "{unplanned.role}" may not read',
        "not writable": f', which role "{unplanned.role}" may not',
        "not callable": f': "{unplanned.reason}"',
        "no values": " by the server without values, in a form that cannot be planned",
        "not found": f" outside the search_path: {unplanned.reason}",
        "row security": f' differently for role "{unplanned.role}", because of row-level security',
        "no plan": " such as BEGIN, which the server does not plan",
        "other database": "",
        "not asked": " not among the costliest",
        "refused": f": {unplanned.reason}",
    }[unplanned.why]
