"""The sentences of a report on a watched server: the answer, the findings that support it, the warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from uncork.model.results.database import (
    CPU,
    IDLE,
    BlockerFacts,
    DatabaseResult,
    ForeignKeyFacts,
    TableFacts,
    TemplateActivity,
    TimeNode,
)
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.database.words import blocker_words, class_words, sessions_text
from uncork.report.findings import finding_headline, finding_sentence
from uncork.report.headline import capital, fitting, headline_template, join_sentences
from uncork.report.quantity_words import instant_text, share_text
from uncork.report.system_blocks import system_doubts
from uncork.report.words import count_words, series_words

__all__ = ["answer_database", "uneven"]

_TOLD: Final = 3
_LEAST_SHARE: Final = 0.05
"""Smallest share of the time that sentences mention."""
_LEAST_HELD: Final = 0.05
"""Fewest sessions, on average, that a blocker must block to be mentioned."""
_LEAST_PART: Final = 0.2
"""Smallest fraction of all blocked sessions that a blocker must block to be mentioned."""
_TEMPORARY: Final = 10_000_000
"""Bytes of temporary files below which they are not worth a sentence."""
_UNUSED: Final = 10_000_000
"""Bytes of indexes below which their upkeep and size are not worth a sentence; the tables list them
anyway."""
_SMALL: Final = 10_000
"""Rows below which full scans of a table are not mentioned."""
_BURST: Final = 2.0
_BURST_SESSIONS: Final = 0.5
"""How many times the average, and how many sessions more, the busiest seconds must have to be mentioned."""
_AGAINST: Final = 0.2
_LEAST_MISSED: Final = 0.5
"""Active sessions that samples may miss without a warning: as a fraction of the server's count, and in
sessions."""
_MOSTLY: Final = 0.5
_LEFT_IDLE_NS: Final = 1_000_000_000
"""Fraction of the busy time that sessions are idle in transaction, and the typical pause below which it is
the time between statements: longer pauses are transactions that were left idle."""
_REPORT_BLOCKERS: Final = frozenset(
    {"deadlock", "explicit-table-lock", "forgotten-transaction", "hot-row", "lock-wait"}
)
"""Findings that say who blocks whom."""


def _compose_database_answer(result: DatabaseResult) -> str:
    """Return where the time of the server's sessions goes: the template first, then the classes of time."""
    seconds = format_duration((result.watch.ended_us - result.watch.begun_us) * 1000)
    if not result.tree.sessions:
        seen = " that this role may see" if result.watch.hidden else ""
        samples = count_words(result.watch.samples, "sample")
        known = result.own_active if result.watch.hidden else None
        count = f"the server itself counted {sessions_text(known)} active ones" if known else ""
        return join_sentences(
            (f"No session{seen} was busy in the {seconds} watched ({samples})", capital(count))
        )
    parts = [_part(node) for node in result.tree.children[:_TOLD] if node.share >= _LEAST_SHARE]
    number = sessions_text(result.tree.sessions)
    verb = "session was" if number == "1.00" else "sessions were"
    average = f"{number} {verb} busy on average{_burst(result)}"
    answer = f"{average}: {series_words(parts)}" if parts else average
    brief = f"{number} {verb} busy on average, {parts[0]}" if parts else answer
    first = next((one for one in result.findings if one.bill is not None), None)
    if first is not None:
        return fitting(((finding_headline(first), answer), (first.headline, answer)))
    top = next((one for one in result.templates if one.number >= 0 and one.sessions), None)
    if top is None:
        return fitting(((answer, ""), (brief, answer)))
    pauses = _pauses(result)
    if pauses:
        return fitting(((pauses[0], f"{pauses[1]} {answer}"),))
    takes = f"{headline_template(top.text)} takes {share_text(top.share)} of the time"
    busy = "1 busy session" if number == "1.00" else f"{number} busy sessions"
    blocked = _blocked(top, result)
    return fitting(
        (
            (f"{takes}{blocked}" if blocked else f"{takes} of {busy}", answer),
            (takes, f"It is{blocked.removeprefix(',')}. {answer}" if blocked else answer),
        )
    )


def _pauses(result: DatabaseResult) -> tuple[str, str] | None:
    """Return who keeps transactions waiting between statements, if that is most of the time, and how long."""
    share = sum(node.share for node in result.tree.children if node.name == IDLE)
    longest = max(result.transactions, key=lambda one: one.sessions, default=None)
    if share < _MOSTLY or longest is None or longest.gap_ns >= _LEFT_IDLE_NS:
        return None
    who = f"application {longest.application}" if longest.application else "their client"
    after = f" after {headline_template(longest.text)}" if longest.text else ""
    return (
        f"Transactions wait for {who} between their statements for {share_text(share)} of the busy time",
        f"The pauses{after} typically take {format_duration(float(f'{longest.gap_ns:.2g}'))}.",
    )


def uneven(result: DatabaseResult) -> bool:
    """Return whether the average hides a burst: some seconds are far busier than the rest."""
    top = result.busiest
    return (
        top is not None
        and top.sessions >= _BURST * result.tree.sessions
        and top.sessions - result.tree.sessions >= _BURST_SESSIONS
    )


def _burst(result: DatabaseResult) -> str:
    """Return the number of busy sessions in the busiest seconds, if the average hides them."""
    top = result.busiest
    if top is None or not uneven(result):
        return ""
    at = instant_text(top.start_us).rpartition(" ")[2]
    return f", {sessions_text(top.sessions)} in the busiest {top.length_s} s (from {at} UTC)"


def _part(node: TimeNode) -> str:
    """Return one class of the tree in words, with its event if that is most of it."""
    event = next((child for child in node.children if child.kind == "event"), None)
    detail = f" ({event.name})" if event is not None and event.sessions >= node.sessions / 2 else ""
    return f"{share_text(node.share)} {class_words(node.name)}{detail}"


def _blocked(top: TemplateActivity, result: DatabaseResult) -> str:
    """Return who blocks the costliest template, if it mostly waits for locks."""
    if not result.blockers or not top.classes or top.classes[0].name != "Lock":
        return ""
    blocker = result.blockers[0]
    if blocker.sessions < _LEAST_HELD or not blocker.application:
        return ""
    did = {IDLE: "idle in transaction", CPU: "running"}.get(blocker.state, class_words(blocker.state))
    return f", blocked by application {blocker.application}, which was {did}"


def _compose_database_reasons(result: DatabaseResult) -> tuple[str, ...]:
    """Return what is worth changing, the costliest first, then other large parts of the time."""
    found = [finding_sentence(one) for one in result.findings]
    if result.tree.sessions and not found and result.run.status != "failed":
        found = ["No change is needed: no problem costs enough time to be worth fixing."]
    return tuple([*found, *_blockers(result), *_waits(result), *_work(result)])


def _blockers(result: DatabaseResult) -> Iterator[str]:
    held = sum(one.sessions for one in result.blockers)
    if sum(node.share for node in result.tree.children if node.name == "Lock") < _LEAST_SHARE:
        return
    if any(one.rule in _REPORT_BLOCKERS and one.bill for one in result.findings):
        return  # a finding reports it
    for one in result.blockers[:_TOLD]:
        if one.sessions < max(_LEAST_HELD, _LEAST_PART * held):
            continue
        yield f"{_held(one)} waited behind {blocker_words(one)}{_open(one)}."


def _held(one: BlockerFacts) -> str:
    chain = f", in chains of up to {one.chain}" if one.chain > 1 else ""
    return f"{sessions_text(one.sessions)} sessions on average (at most {one.most}{chain})"


def _open(one: BlockerFacts) -> str:
    if one.transaction_ns is None:
        return ""
    return f"; its transaction was open for up to {format_duration(one.transaction_ns)}"


def _waits(result: DatabaseResult) -> Iterator[str]:
    for node in result.tree.children:
        if node.name == "Client" and node.share >= _LEAST_SHARE:
            yield (
                f"{share_text(node.share)} of the time the server waited for the client to send or receive "
                "data (the network, or work of the application in between)."
            )


def _work(result: DatabaseResult) -> Iterator[str]:
    block = result.block_bytes
    counted = [(one, one.statements) for one in result.templates if one.statements is not None]
    if counted:
        top, figures = max(counted, key=lambda item: item[1].shared_read)
        read = sum(one.shared_read for _, one in counted)
        if read * block >= 100_000_000:
            yield (
                f"Statements read {format_bytes(read * block)} from outside shared buffers, "
                f"{share_text(figures.shared_read / read)} of it in: {short_template(top.text)}"
            )
        top, figures = max(counted, key=lambda item: item[1].temp_written)
        if figures.temp_written * block >= _TEMPORARY:
            yield (
                "Sorts and hashes that did not fit work_mem wrote "
                f"{format_bytes(sum(one.temp_written for _, one in counted) * block)} of temporary files, "
                f"most of it in: {short_template(top.text)}"
            )
        compiled = sum(one.jit_ns or 0 for _, one in counted)
        total = sum(one.execution_ns for _, one in counted)
        if total and compiled / total >= _LEAST_SHARE:
            yield f"Compiling statements (jit) took {share_text(compiled / total)} of statement time."
    scanned = [one for one in result.tables if (one.whole_reads or 0) >= 1 and (one.rows or 0) >= _SMALL]
    for table in sorted(scanned, key=lambda one: -one.seq_rows)[:_TOLD]:
        times = round(table.whole_reads or 0)
        scans = "once" if times == 1 else f"{format_count(times)} times"
        yield (
            f"Sequential scans read the whole table {table.name} {scans} "
            f"({count_words(table.seq_rows, 'row')})."
        )


def _compose_upkeep(result: DatabaseResult) -> tuple[str, ...]:
    """Return what tables and indexes need, whether or not it costs time now."""
    return tuple(_upkeep(result))


def _upkeep(result: DatabaseResult) -> Iterator[str]:
    told = {name for one in result.findings for name in one.objects}
    indexes = [one for one in result.indexes if one.name not in told]
    same = [one for one in indexes if one.warning in ("duplicate", "covered")]
    if sum(one.bytes or 0 for one in same) >= _UNUSED:
        size = format_bytes(sum(one.bytes or 0 for one in same))
        yield (
            f"{_indexes(len(same))} ({size}) "
            f"{'duplicates another' if len(same) == 1 else 'duplicate others'}: "
            f"{_names(one.name for one in same)}."
        )
    unused = [one for one in indexes if one.warning == "unused" and one.bytes]
    if unused and not result.standby and sum(one.bytes or 0 for one in unused) >= _UNUSED:
        since = (
            f"since {instant_text(result.counted_since_us)} UTC"
            if result.counted_since_us is not None
            else "since counting began"
        )
        size = format_bytes(sum(one.bytes or 0 for one in unused))
        yield (
            f"{_indexes(len(unused))} ({size}) {'was' if len(unused) == 1 else 'were'} never scanned "
            f"{since}: {_names(one.name for one in unused)}."
        )
    tables = {one.oid: one for one in result.tables}
    keys_left = [one for one in result.foreign_keys if one.name not in told]
    bare = [one for one in keys_left if not one.indexed and _costs(one, tables)]
    if bare:
        keys = count_words(len(bare), "foreign key")
        yield (
            f"{keys} {'has' if len(bare) == 1 else 'have'} no index, so each delete of a referenced row "
            f"scans the whole referencing table: {_names(f'{one.table} ({one.columns})' for one in bare)}."
        )


def _costs(key: ForeignKeyFacts, tables: Mapping[int, TableFacts]) -> bool:
    """Return whether rows were deleted for which a large table had to be scanned."""
    refers, referred = tables.get(key.table_oid), tables.get(key.referred_oid)
    return bool(refers and referred and (refers.rows or 0) >= _SMALL and referred.deleted)


def _indexes(number: int) -> str:
    return "1 index" if number == 1 else f"{format_count(number)} indexes"


def _names(found: Iterable[str]) -> str:
    names = list(found)
    return series_words(names[:4]) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _compose_database_warnings(result: DatabaseResult) -> tuple[str, ...]:
    """Return the reasons to trust the numbers less."""
    return tuple(_warnings(result))


def _warnings(result: DatabaseResult) -> Iterator[str]:
    watch = result.watch
    if result.run.status == "failed":
        yield (
            "The connection to the server was lost: samples until then are kept, the growth of its counters "
            "is missing."
        )
    if result.run.status == "interrupted":
        yield "Watching was interrupted: the numbers cover the time until then."
    if watch.hidden:
        yield (
            f"{sessions_text(watch.hidden)} sessions on average, idle ones included, belong to other roles "
            "and "
            f'are hidden from "{result.role}": these numbers exclude them.'
        )
    if result.system is not None:
        yield from (f"{text[:1].upper()}{text[1:]}." for text in system_doubts(result.system))
    due = watch.samples + watch.missed
    if watch.missed > _LEAST_SHARE * due:
        yield (
            f"{format_count(watch.missed)} of {format_count(due)} samples were missed: answers took "
            f"{format_duration(watch.answer_ns)} on average; a lower --rate loads the server less."
        )
    for name in result.resets:
        yield f"The counters of {name} were reset during the watch: they count from the reset on."
    thrown = sum(one.delta for one in result.counters if one.counter == "dealloc")
    if thrown:
        yield (
            "pg_stat_statements was full and evicted statements, so the numbers of rare statements are "
            "incomplete: raise pg_stat_statements.max."
        )
    active = result.tree.sessions - sum(one.sessions for one in result.tree.children if one.name == IDLE)
    missed = 0.0 if watch.hidden or result.own_active is None else result.own_active - active
    if result.own_active is not None and missed > max(_AGAINST * result.own_active, _LEAST_MISSED):
        yield (
            f"The server itself counted {sessions_text(result.own_active)} active sessions, samples saw "
            f"{sessions_text(active)}: either all its processors were busy, so that samples came late, or "
            "long statements ended that had started before the watch."
        )


def answer_database(result: DatabaseResult) -> DatabaseResult:
    """Return the result with its answer, reasons and warnings, and with what to do about its upkeep."""
    result = replace(result, upkeep=_compose_upkeep(result), warnings=_compose_database_warnings(result))
    return replace(result, answer=_compose_database_answer(result), reasons=_compose_database_reasons(result))
