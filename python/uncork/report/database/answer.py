"""The sentences of a report on a watched server: the answer, the findings that support it, the warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.costly_parts import unexplained_part
from uncork.model.results.database import DatabaseResult, TemplateActivity, TimeNode
from uncork.model.template_words import short_template
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    series_words,
    share_text,
)
from uncork.report.database.words import blocker_words, class_words, sessions_text
from uncork.report.findings import (
    costly_words,
    finding_headline,
    finding_sentence,
    hidden_sentences,
    hides_findings,
)
from uncork.report.headline import capital, fitting, headline_template, join_sentences
from uncork.report.system_blocks import system_doubts
from uncork.report.words import capitalised, instant_text

_TOLD: Final = 3
_LEAST_SHARE: Final = 0.05
"""Smallest share of the time that sentences mention."""
_LEAST_HELD: Final = 0.05
"""Fewest sessions, on average, that a blocker must block to be mentioned."""
_LEAST_PART: Final = 0.2
"""Smallest fraction of all blocked sessions that a blocker must block to be mentioned."""
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
    first = next((finding for finding in result.findings if finding.bill is not None), None)
    if first is not None:
        return fitting(((finding_headline(first), answer), (first.headline, answer)))
    top = next(
        (template for template in result.templates if template.number >= 0 and template.sessions), None
    )
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
    share = sum(node.share for node in result.tree.children if node.name == IDLE)
    longest = max(result.transactions, key=lambda transaction: transaction.sessions, default=None)
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
    top = result.busiest
    if top is None or not uneven(result):
        return ""
    at = instant_text(top.start_us).rpartition(" ")[2]
    return f", {sessions_text(top.sessions)} in the busiest {top.length_s} s (from {at} UTC)"


def _part(node: TimeNode) -> str:
    event = next((child for child in node.children if child.kind == "event"), None)
    detail = f" ({event.name})" if event is not None and event.sessions >= node.sessions / 2 else ""
    return f"{share_text(node.share)} {class_words(node.name)}{detail}"


def _blocked(top: TemplateActivity, result: DatabaseResult) -> str:
    if not result.blockers or not top.classes or top.classes[0].name != "Lock":
        return ""
    blocker = result.blockers[0]
    if blocker.sessions < _LEAST_HELD or not blocker.application:
        return ""
    did = {IDLE: "idle in transaction", CPU: "running"}.get(blocker.state, class_words(blocker.state))
    return f", blocked by application {blocker.application}, which was {did}"


def _compose_database_reasons(result: DatabaseResult) -> tuple[str, ...]:
    """Return what is worth changing, the costliest first, then other large parts of the time."""
    found = [finding_sentence(finding) for finding in result.findings]
    healthy = result.tree.sessions and not found and result.run.status != "failed"
    if healthy and not hides_findings(result.hidden) and unexplained_part(result.costliest) is None:
        found = ["No change is needed: no problem costs enough time to be worth fixing."]
    known = costly_words(result.costliest)
    return tuple([*found, *known, *_blockers(result), *_waits(result), *_work(result), *_elsewhere(result)])


def _elsewhere(result: DatabaseResult) -> Iterator[str]:
    others = [database for database in result.databases if database.name != result.database]
    if others:
        names = series_words(
            [f"{usage.name or '(none)'} {sessions_text(usage.sessions)}" for usage in others[:_TOLD]]
        )
        yield f"Other databases of this server are not part of these shares. Their busy sessions: {names}."


def _blockers(result: DatabaseResult) -> Iterator[str]:
    held = sum(blocker.sessions for blocker in result.blockers)
    if sum(node.share for node in result.tree.children if node.name == "Lock") < _LEAST_SHARE:
        return
    if any(finding.rule in _REPORT_BLOCKERS and finding.bill for finding in result.findings):
        return  # a finding reports it
    for blocker in result.blockers[:_TOLD]:
        if blocker.sessions < max(_LEAST_HELD, _LEAST_PART * held):
            continue
        chain = f", in chains of up to {blocker.chain}" if blocker.chain > 1 else ""
        many = f"{sessions_text(blocker.sessions)} sessions on average (at most {blocker.most}{chain})"
        until = ""
        if blocker.transaction_ns is not None:
            until = f"; its transaction was open for up to {format_duration(blocker.transaction_ns)}"
        yield f"{many} waited behind {blocker_words(blocker)}{until}."


def _waits(result: DatabaseResult) -> Iterator[str]:
    for node in result.tree.children:
        if node.name == "Client" and node.share >= _LEAST_SHARE:
            yield (
                f"{share_text(node.share)} of the time the server waited for the client to send or receive "
                "data (the network, or work of the application in between)."
            )


def _work(result: DatabaseResult) -> Iterator[str]:
    block = result.block_bytes
    counted = [
        (template, template.statements) for template in result.templates if template.statements is not None
    ]
    if counted:
        top, figures = max(counted, key=lambda item: item[1].shared_read)
        read = sum(statement.shared_read for _, statement in counted)
        if read * block >= 100_000_000:
            yield (
                f"Statements read {format_bytes(read * block)} from outside shared buffers, "
                f"{share_text(figures.shared_read / read)} of it in: {short_template(top.text)}"
            )


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
        yield from (f"{capitalised(text)}." for text in system_doubts(result.system))
    due = watch.samples + watch.missed
    if watch.missed > _LEAST_SHARE * due:
        yield (
            f"{format_count(watch.missed)} of {format_count(due)} samples were missed: answers took "
            f"{format_duration(watch.answer_ns)} on average; a lower --rate loads the server less."
        )
    for name in result.resets:
        yield f"The counters of {name} were reset during the watch: they count from the reset on."
    thrown = sum(counter.delta for counter in result.counters if counter.counter == "dealloc")
    if thrown:
        yield (
            "pg_stat_statements was full and evicted statements, so the numbers of rare statements are "
            "incomplete: raise pg_stat_statements.max."
        )
    active = result.tree.sessions - sum(
        child.sessions for child in result.tree.children if child.name == IDLE
    )
    missed = 0.0 if watch.hidden or result.own_active is None else result.own_active - active
    if result.own_active is not None and missed > max(_AGAINST * result.own_active, _LEAST_MISSED):
        yield (
            f"The server itself counted {sessions_text(result.own_active)} active sessions, samples saw "
            f"{sessions_text(active)}: either all its processors were busy, so that samples came late, or "
            "long statements ended that had started before the watch."
        )


def answer_database(result: DatabaseResult) -> DatabaseResult:
    """Return the result with its answer, reasons and warnings."""
    result = replace(result, warnings=tuple(_warnings(result)))
    answer = (*hidden_sentences(result.hidden, result.unplanned), _compose_database_answer(result))
    return replace(result, answer=join_sentences(answer), reasons=_compose_database_reasons(result))
