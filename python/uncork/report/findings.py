"""The sentences of findings about a database: what is wrong, its cost, what to do, and what is hidden."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.missing import HiddenWork, Unplanned, WhyUnplanned, grant
from uncork.model.results.costly_parts import CostlyPart, unexplained_part
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, share_text
from uncork.report.blocks import Block, Bullets, Code, Facts, Paragraph, Section, Step
from uncork.report.headline import capital, headline_template, join_sentences

if TYPE_CHECKING:
    from uncork.model.database.missing import Missing
    from uncork.model.results.advice import LookedAt


_PLAIN: Final = re.compile(r"[^\s'\\]+")
_NOT_TRIED: Final = "Its code is not tried yet: uncork cure tries it on a copy and hands over what helps."
_NOT_ON_A_COPY: Final = ("ALTER SYSTEM", "REINDEX", "VACUUM")
"""Beginnings of changes whose effect a fresh copy does not show."""

_CAUTIONS: Final = {
    "DROP": "This drops an object. ",
    "TRUNCATE": "This removes all rows of a table. ",
    "DELETE": "This deletes rows. ",
    "VACUUM FULL": "This locks the table against all other statements. ",
    "VACUUM (FULL": "This locks the table against all other statements. ",
    "CLUSTER": "This locks the table against all other statements. ",
    "ALTER TABLE": "This locks the table while it runs. ",
    "REINDEX": "This locks the table against writes. ",
    "CREATE INDEX": "This locks the table against writes. ",
    "CREATE UNIQUE INDEX": "This locks the table against writes. ",
}
_MAY_BE_CONCURRENT: Final = ("REINDEX", "CREATE INDEX", "CREATE UNIQUE INDEX")
"""Beginnings of statements that destroy or lock, with what their step says first, and those of them that do
not lock if they are CONCURRENTLY."""
_MOST_STEPS: Final = 3
_MOST_LOGS: Final = 5
"""Files of logs that a command names; of more it names the folders."""
_COMPOSED: Final = frozenset({"ddl", "statement"})
"""Kinds of changes whose SQL uncork composes for this database: only a trial shows that it works."""
_COSTLY_WIDTH: Final = 56
_UNKNOWN_FACTOR: Final = 100.0
"""An interval whose ends differ by more says nothing; its figures are not printed."""


def finding_headline(finding: Finding) -> str:
    """Return what is wrong, with its share of the time, as the first sentence of an answer."""
    if finding.bill is None:
        return finding.headline
    return f"{finding.headline}: {share_text(finding.bill.share)} of the busy time"


def finding_sentence(finding: Finding) -> str:
    """Return what is wrong, its share of the time and the statement."""
    text = f", in {short_template(finding.statement)}" if finding.statement else "."
    return f"{finding_headline(finding)}{text}"


def _bill_words(bill: Bill) -> str:
    span = "interval unknown"
    if bill.high is not None and bill.high <= _UNKNOWN_FACTOR * bill.low:
        span = f"95 % interval: {_seconds(bill.low)} to {_seconds(bill.high)}"
    hourly = f"{_seconds(bill.seconds_per_hour)} s of sessions' time an hour ({span})"
    return f"{share_text(bill.share)} of the busy time; {hourly}"


def _seconds(seconds: float) -> str:
    return format_count(round(seconds)) if seconds >= 10 else f"{seconds:.1f}"


def finding_step(finding: Finding) -> Step:
    """Return what to do about a finding: its first candidate, and first what that destroys or locks."""
    if not finding.candidates:
        return Step(f"{finding.headline}: look at its evidence.")
    step = _step(finding.candidates[0])
    caution = _caution(step.command)
    return Step(f"{caution}{step.text}", step.command, careful=bool(caution))


def finding_steps(findings: Iterable[Finding]) -> Iterator[Step]:
    """Yield what to do about the costliest findings; a change may remove the others."""
    yield from map(finding_step, islice(findings, _MOST_STEPS))


def careful_last(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Move the steps that lock or destroy something to the end; keep the order otherwise."""
    return tuple(sorted(steps, key=lambda step: step.careful))


def _caution(sql: str) -> str:
    statements = [" ".join(part.split()).upper() for part in sql.split(";")]
    for begin, caution in _CAUTIONS.items():
        locks = begin not in _MAY_BE_CONCURRENT
        # Later statements alter what the first one made.
        for part in statements[:1] if begin == "ALTER TABLE" else statements:
            if part.startswith(begin) and (locks or "CONCURRENTLY" not in part):
                return caution
    return ""


def _step(candidate: Candidate) -> Step:
    caution = "" if candidate.same_answers else " This can change the answers."
    if candidate.tried_first:
        return Step(f"{candidate.text}{caution} {_NOT_TRIED}")
    return Step(f"{candidate.text}{caution}", candidate.sql)


def proof_steps(
    findings: Iterable[Finding], run: str, server: str, logs: Sequence[str] = ()
) -> Iterator[Step]:
    """Yield how to prove changes on a copy, reading `logs` too; nothing if no copy can show them."""
    candidates = [candidate for finding in findings for candidate in finding.candidates]
    if any(
        candidate.habit or (candidate.sql and not candidate.sql.startswith(_NOT_ON_A_COPY))
        for candidate in candidates
    ):
        words = ["uncork", "cure", run, server_conninfo(server)]
        places = logs if len(logs) <= _MOST_LOGS else sorted({str(PurePath(name).parent) for name in logs})
        words += [word for place in places for word in ("--logs", place)]
        yield Step("Prove the changes on a copy before you make them:", shlex.join(words))


def finding_blocks(finding: Finding) -> Iterator[Block]:
    """Yield the whole finding: its evidence, its candidates, what speaks against it and how to prove it."""
    if finding.statement:
        yield Code(finding.statement, "sql")
    if finding.bill is not None:
        yield Facts((("costs", _bill_words(finding.bill)),))
    if finding.evidence:
        yield Bullets(finding.evidence)
    for candidate in finding.candidates:
        yield Paragraph(_step(candidate).text)
        if candidate.sql and not candidate.tried_first:
            untried = " (not tried)" if candidate.kind in _COMPOSED else ""
            yield Code(candidate.sql, "sql", f"To make the change{untried}")
        if candidate.undo and not candidate.tried_first:
            yield Code(candidate.undo, "sql", "To undo it")
        if candidate.against:
            yield Bullets(tuple(f"Against it: {text}" for text in candidate.against))
    if finding.against:
        yield Bullets(tuple(f"Against the finding: {text}" for text in finding.against))
    if finding.proof:
        yield Paragraph(f"To prove it: {finding.proof}")


def finding_sections(findings: Iterable[Finding]) -> Iterator[Section]:
    """Yield a section for each finding, with its number."""
    for number, finding in enumerate(findings, 1):
        yield Section(f"finding-{number}", f"{number}. {finding.headline}", tuple(finding_blocks(finding)))


def missing_words(missing: Iterable[Missing]) -> tuple[str, ...]:
    """Return what could not be judged for lack of evidence, and how to get it, in sentences."""
    return tuple(map(missing_sentence, missing))


def missing_sentence(missing: Missing) -> str:
    """Return what rules cannot find without one kind of evidence, and how to get this evidence."""
    return f"Not known: {missing.lost}. This needs {missing.what}: {missing.remedy}."


def nothing_found_words(
    sessions: float | None, costliest: Sequence[CostlyPart] = (), *, hidden: bool = False
) -> str:
    """Return the answer if there is no finding; `sessions` were busy on average, None in a log.

    If a finding could be `hidden` from the role, the answer is about what the role may see, not about all.
    A part that takes a fifth of the time, and that nothing explains, forbids to say that all is well.
    """
    if sessions == 0 and hidden:
        return "The role saw no busy session."
    if sessions == 0:
        return "No busy session was seen, so faults that cost time cannot be found."
    time = "the statements' time" if sessions is None else "the time of the busy sessions"
    part = unexplained_part(costliest)
    if part is None and hidden:
        return "uncork found no fault in what the role may see."
    if part is None:
        return f"Nothing stands out: no fault costs a tenth of {time}."
    return join_sentences((unexplained_words(part, time), capital(part.evidence)))


def unexplained_words(part: CostlyPart, time: str) -> str:
    """Return that nothing explains a large part of `time`, without a full stop."""
    name = headline_template(part.name) if part.kind == "statement" else capital(part.name)
    return f"{name} takes {share_text(part.share)} of {time}, and no rule explains why"


def costly_words(costliest: Iterable[CostlyPart], time: str = "the busy time") -> Iterator[str]:
    """Yield sentences about the costliest statements and large waits."""
    costliest = list(costliest)
    for kind, title in (("statement", "Costliest statements"), ("wait", "Large waits")):
        parts = [_costly_part(part) for part in costliest if part.kind == kind]
        if parts:
            yield f"{title}, by share of {time}: {'; '.join(parts)}."


def _costly_part(part: CostlyPart) -> str:
    name = short_template(part.name, _COSTLY_WIDTH) if part.kind == "statement" else part.name
    detail = {
        "found": f"finding {part.finding}",
        "fine": f"fine: {part.evidence}",
        "not explained": f"not explained: {part.evidence}",
    }[part.state]
    return f"{share_text(part.share)} {name} ({detail})"


def looked_at_words(found: LookedAt, sessions: float | None) -> tuple[str, ...]:
    """Return what the rules looked at, and why statements have no plan; `sessions` were busy on average."""
    parts = [
        count_words(found.statements, "statement"),
        f"{format_count(found.plans)} of them with a plan",
        count_words(found.tables, "table"),
        f"{format_count(found.indexes)} {'index' if found.indexes == 1 else 'indexes'}",
        *([] if sessions is None else [f"{sessions:.2f} busy sessions on average"]),
    ]
    looked_at = f"Looked at with {count_words(found.rules, 'rule')}: {', '.join(parts)}."
    return tuple(filter(None, (looked_at, unplanned_words(found.unplanned))))


def server_conninfo(server: str) -> str:
    """Return the connection string of ``user@host:port/database``."""
    user, _, rest = server.partition("@")
    host_port, _, database = rest.rpartition("/")
    host, _, port = host_port.rpartition(":")
    parts = {"host": host, "port": port, "user": user, "dbname": database}
    return " ".join(f"{name}={_conninfo_value(value)}" for name, value in parts.items())


def _conninfo_value(value: str) -> str:
    """Return a value as a connection string needs it: in quotes if it is empty or has special characters."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_LEAST_HIDDEN: Final = 0.05
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
    return hidden is not None and (hidden.share is None or hidden.share >= _LEAST_HIDDEN)


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
        statement
        for statement in unplanned
        if statement.why == "not readable" and statement.share >= _LEAST_HIDDEN
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
