"""The answer of a load: the first sentence a reader sees, and the warnings about it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.load import LoadOutcome, Stalls
from uncork.model.results.load import HttpFacts, LoadResult, ScriptFacts, SteadyFacts
from uncork.model.units import count_words, format_count, format_duration, share_text
from uncork.report.headline import capital, fitting, join_sentences
from uncork.report.load.words import clients_words, code_name, codes_words, limit_words, operation_word
from uncork.report.system_blocks import system_doubts
from uncork.report.words import capitalised, part_text, rate_text
from uncork.stats.load.stall import waits_for_acknowledgements

_SHORT_NS: Final = 10_000_000_000
"""A shorter load hardly shows occasional work of a server: checkpoints, autovacuum, a cold cache."""
_FEW: Final = 1_000
"""With fewer operations, p99 rests on fewer than ten of them."""
_SELDOM: Final = (
    "checkpoints, autovacuum and a cold cache hardly show; measure longer (-T 60)",
    "rare events hardly show; measure longer (-D 60)",
)
"""What a short load does not show: of a database, and of a service by HTTP."""
_HALF: Final = 0.5
_LIMIT: Final = 10
"""Connections that all end after the same number of requests, at least this many, reached a limit."""
_STOLEN: Final = 0.01
"""Fraction of the time that a hypervisor may take away without a warning."""


def _compose_load_answer(result: LoadResult) -> str:
    counts, elapsed = result.counts, result.run.elapsed_ns
    outcome = result.run.outcome
    if outcome is LoadOutcome.REFUSED:
        refused = sum(result.counts.connect_errors.values())
        many = (
            f"{count_words(refused, 'connection')} could not be opened"
            if refused
            else "no connection was opened"
        )
        reason = result.run.message or result.counts.first_error or codes_words(result.counts.connect_errors)
        return join_sentences((f"Nothing was measured, because {many}", capital(reason)))
    word = operation_word(result)
    opening = {
        LoadOutcome.INTERRUPTED: "Interrupted: ",
        LoadOutcome.CONNECTION_LOST: "Connection lost: ",
        LoadOutcome.DEADLINE: "Stopped at its deadline: ",
        LoadOutcome.NOTHING_SUCCEEDED: f"Ended early, after {format_duration(elapsed)}: ",
        LoadOutcome.CLIENT_ABORTED: f"Ended by an aborted client after {format_duration(elapsed)}: ",
        LoadOutcome.LEASE_ENDED: f"Lease ended after {format_duration(elapsed)}: ",
        LoadOutcome.NODE_LOST: f"Node lost after {format_duration(elapsed)}: ",
    }.get(outcome, "")
    if result.parts is not None:
        lacking = [part for part in result.parts.parts if part.ended != "complete"]
        opening = f"{len(lacking)} of {result.parts.count} parts did not complete: " if lacking else ""
    if not counts.succeeded:
        failed = f"none of {count_words(counts.started, word)} succeeded"
        headline = f"{opening}{failed if counts.started else f'no {word} was started'}"
        return join_sentences(
            (capital(headline), f"First error: {counts.first_error}" if counts.first_error else "")
        )
    who = "server" if result.http is None else "service"
    rate = f"{opening}the {who} handled {rate_text(result.operations_per_second)} {word}s a second"
    most = f"p99 {format_duration(result.operation.p99_ns or 0)}"
    trouble = _worst_trouble(result)
    clients = f" from {clients_words(result.settings)}" if not result.settings.open_loop else ""
    rest = f"Over {format_duration(elapsed)}, by {_by(result)}: {_latency(result)}{_errors(result)}"
    end = f"with {most} and {trouble or 'no errors'}"
    limit = f", limited by {limit_words(result.bottlenecks[0].resource)}" if result.bottlenecks else ""
    if _mostly_paused(result):
        limit = ", limited by pauses of 40 ms within answers"
    parts = ((clients, limit), ("", limit), (clients, ""), ("", ""))
    rest = join_sentences((rest, capital(slowest_words(result))))
    return fitting((capital(f"{rate}{by} {end}{by_what}"), rest) for by, by_what in parts)


def _mostly_paused(result: LoadResult) -> bool:
    """Return whether half of the answers wait for delayed acknowledgements, which is no lack of resources."""
    if result.http is None:
        return False
    stalls, answers = result.http.stalls, sum(result.http.statuses.values())
    return waits_for_acknowledgements(stalls, answers) and stalls.answers >= _HALF * answers


def _worst_trouble(result: LoadResult) -> str:
    counts = result.counts
    arrivals = counts.arrivals or counts.started
    if counts.failed:
        return f"{part_text(counts.failed, counts.started)} failures"
    if counts.unsent:
        return f"{part_text(counts.unsent, arrivals)} of arrivals never sent"
    if counts.skipped:
        return f"{part_text(counts.skipped, arrivals)} of arrivals skipped"
    refused = sum(counts.connect_errors.values())
    return count_words(refused, "refused connection") if refused else ""


def _by(result: LoadResult) -> str:
    settings = result.settings
    if not settings.open_loop:
        return clients_words(settings)
    arrivals = result.counts.arrivals or 0
    seconds = result.run.elapsed_ns / 1e9
    arrived = f" ({rate_text(arrivals / seconds)} a second arrived)" if seconds else ""
    return f"{count_words(result.connections.most, 'connection')}{arrived}"


def _latency(result: LoadResult) -> str:
    found = result.operation
    since = " from the intended start" if result.settings.open_loop else ""
    half, most = format_duration(found.p50_ns or 0), format_duration(found.p99_ns or 0)
    return f"half took under {half}{since}, 99 % under {most}"


def _errors(result: LoadResult) -> str:
    counts = result.counts
    parts = []
    if counts.failed:
        parts.append(f"{format_count(counts.failed)} failed ({part_text(counts.failed, counts.started)})")
    if counts.skipped:
        parts.append(f"{format_count(counts.skipped)} were skipped")
    if counts.unsent:
        parts.append(f"{format_count(counts.unsent)} were never sent")
    refused = sum(counts.connect_errors.values())
    if refused:
        parts.append(f"{count_words(refused, 'connection')} {'was' if refused == 1 else 'were'} refused")
    return f"; {', '.join(parts)}" if parts else ""


def _went_wrong(result: LoadResult) -> Iterator[str]:
    counts = result.counts
    known = (LoadOutcome.COMPLETE, LoadOutcome.NOTHING_SUCCEEDED)  # the answer says it
    if result.run.outcome not in known and result.run.message and counts.started and result.parts is None:
        yield f"the load ended early ({result.run.outcome}): {result.run.message}"
    if counts.errors and result.settings.recorded == "replay":
        many = _of(sum(counts.errors.values()), counts.started)
        yield f"the replay diverged: {many} transactions failed, but succeeded when they were recorded"
    if counts.errors:
        first = f"; first message: {counts.first_error}" if counts.first_error and counts.succeeded else ""
        what = f"failed {operation_word(result)}s by {code_name(result)}"
        yield f"{what}: {codes_words(counts.errors)}{first}"
    cut = counts.failed - sum(counts.errors.values())
    if cut > 0:
        yield f"{count_words(cut, operation_word(result))} under way at the end count as failed"
    if counts.connect_errors and result.run.outcome is not LoadOutcome.REFUSED:
        yield f"connections that could not be opened: {codes_words(counts.connect_errors)}"
    if result.connections.lost:
        lost = count_words(result.connections.lost, "connection")
        work = f"{operation_word(result)}s"
        yield f"{lost} broke and had to be opened again; the {work} on them failed"


def _answers(result: LoadResult, found: HttpFacts) -> Iterator[str]:
    lost = found.errored + found.timed_out
    if lost:
        perhaps = lost - found.unprocessed
        yield (
            f"{count_words(lost, 'request')} got no complete answer: the server did not process "
            f"{format_count(found.unprocessed)} of them, and may have processed {format_count(perhaps)}"
        )
    if found.not_started:
        yield f"{_of(found.not_started, found.planned or 0)} requests were not started"
    answers = sum(found.statuses.values())
    if waits_for_acknowledgements(found.stalls, answers):
        yield _stalled_words(found.stalls, answers)
    if found.closed and not result.settings.connect_each:
        yield _closed_words(result, found)
    if found.udp_dropped:
        yield _dropped_words(found.udp_dropped)
    if result.counts.retried:
        yield (
            f"{count_words(result.counts.retried, 'request')} had to be sent again, because the server "
            f"reported that it had not processed them: {codes_words(result.counts.retries)}"
        )


def _stalled_words(stalls: Stalls, answers: int) -> str:
    many, share = _of(stalls.answers, answers), part_text(stalls.answers, answers)
    return (
        f"{many} answers ({share}) paused midway for 40 ms while nothing was busy: the server holds the rest "
        "back until the receiver acknowledges the beginning, and receivers delay that (Nagle's algorithm; "
        f"when acknowledged early, {_of(stalls.hastened_short, stalls.hastened)} continued at once, "
        f"otherwise {_of(stalls.kept_short, stalls.kept)}); set TCP_NODELAY on the server (nginx with "
        "HTTP/2: sendfile off), or send more requests at once on each connection (-m)"
    )


def _dropped_words(dropped: int) -> str:
    return (
        f"this machine dropped {count_words(dropped, 'UDP datagram')}, because a socket's buffer was full "
        "(uncork's, or that of a server on this machine); what was lost was sent again, which takes longer: "
        "raise net.core.rmem_max to 2097152, or send with more threads (-t)"
    )


def _closed_words(result: LoadResult, found: HttpFacts) -> str:
    least, most = format_count(found.closed_least), format_count(found.closed_most)
    same = found.closed_least == found.closed_most
    many = f"{count_words(found.closed, 'connection')}, {'each ' if found.closed > 1 else ''}after "
    after = count_words(found.closed_least, "request") if same else f"{least} to {most} requests"
    how = " with GOAWAY" if found.goaways else ""
    words = f"the server closed {many}{after}{how}"
    if same and found.closed_most >= _LIMIT:
        words += ": its limit of requests per connection (nginx: keepalive_requests)"
    if result.settings.on_close == "stop":
        return f"{words}; with --on-close reconnect the load would continue"
    return f"{words}; requests waited while uncork opened new ones"


def _too_late(result: LoadResult) -> Iterator[str]:
    counts = result.counts
    arrivals = counts.arrivals or 0
    limit = format_duration(result.settings.latency_limit_ns or 0)
    if counts.unsent and result.settings.recorded == "replay":
        yield (
            f"{_of(counts.unsent, arrivals)} transactions were due but not sent before the end, because "
            "their sessions waited for earlier ones: the server did not keep up with the recorded pace. The "
            "latencies shown exclude them"
        )
    elif counts.unsent:
        yield (
            f"{_of(counts.unsent, arrivals)} arrivals ({part_text(counts.unsent, arrivals)}) found no free "
            "connection before the end: the server did not keep up with the rate. The latencies shown "
            "exclude them, so the true ones are worse; lower the rate (-R), or allow more connections "
            "(--max-clients)"
        )
    if counts.skipped:
        yield (
            f"{_of(counts.skipped, arrivals)} arrivals ({part_text(counts.skipped, arrivals)}) were "
            f"skipped, because they were over {limit} late before they could start (-L); the latencies shown "
            "exclude them"
        )
    if counts.late:
        share = part_text(counts.late, counts.started)
        many = count_words(counts.late, operation_word(result))
        yield f"{many} ({share}) took longer than the limit of {limit}"
    if counts.retried and result.http is None:
        many = count_words(counts.retried, "transaction")
        yield f"{many} needed more than one try: {codes_words(counts.retries)}"


def _thin(result: LoadResult) -> Iterator[str]:
    succeeded, elapsed, generator = result.counts.succeeded, result.run.elapsed_ns, result.generator
    if succeeded and elapsed < _SHORT_NS:
        unseen = _SELDOM[result.http is not None]
        if result.settings.recorded == "replay":  # it lasts as long as its recording
            unseen = f"{unseen.partition(';')[0]}; replay a longer recording"
        yield (
            f"the load lasted {format_duration(elapsed)}: in under 10 s, {unseen} before you rely on these "
            "numbers"
        )
    unsteady = _unsteady_words(result)
    if unsteady:
        yield unsteady
    if 0 < succeeded < _FEW:
        many = count_words(succeeded, operation_word(result))
        yield f"with only {many}, p99 rests on fewer than ten of them"
    if result.system is not None:
        yield from system_doubts(result.system)
    elif elapsed and generator.steal_ns > _STOLEN * elapsed:
        stolen = format_duration(generator.steal_ns)
        yield f"the hypervisor took {stolen} of processor time away during the load"
    if generator.throttled_ns and result.system is None:
        throttled = format_duration(generator.throttled_ns)
        yield f"the control group was throttled for {throttled}: its CPU quota affected the numbers"
    if succeeded and not result.settings.open_loop:
        yield (
            "in a closed loop, a stall of the server also delays the start of the "
            f"{operation_word(result)}s that it would have slowed "
            "(coordinated omission), so the high percentiles understate what users see; a fixed rate (-R) "
            "shows it"
        )


def _of(part: int, whole: int) -> str:
    return f"{format_count(part)} of {format_count(whole)}"


def _sentence(text: str) -> str:
    stripped = text.rstrip(". \n")
    return f"{capitalised(stripped)}{'' if stripped.endswith('?') else '.'}"


def answer_load(result: LoadResult) -> LoadResult:
    """Return the result with its answer and warnings."""
    answers = _answers(result, result.http) if result.http else iter(())
    missing = (text.rstrip(".") for text in result.missing)
    parts = (_went_wrong(result), answers, missing, _too_late(result), _thin(result))
    warnings = tuple(_sentence(text) for part in parts for text in part)
    return replace(result, answer=_compose_load_answer(result), warnings=warnings)


_LEAST: Final = 20
"""Fewest successful executions of a script whose p95 is compared: with fewer, p95 is its maximum."""
_APART: Final = 1.05
"""How many times larger than the next one the largest p95 must be to call its script the slowest."""


def slowest_words(result: LoadResult) -> str:
    """Name the script with the largest p95, and the one that took the most time; "" for a single script."""
    found = [script for script in result.scripts if script.latency.count]
    if len(result.scripts) < 2 or not found:
        return ""
    word = "script" if result.http is None else "request"
    whole = sum(map(_time, found))
    most = max(found, key=_time)
    took = f"{share_text(_time(most) / whole)} of the time of all {word}s" if whole else ""
    ranked = sorted((script for script in found if script.latency.count >= _LEAST), key=_p95, reverse=True)
    if len(ranked) < 2 or _p95(ranked[0]) < _APART * _p95(ranked[1]):
        return f"{most.name} took {took}" if took else ""
    slowest = ranked[0]
    words = f"the slowest {word} is {slowest.name} (95 % under {format_duration(_p95(slowest))}"
    if slowest is most:
        return f"{words}, {took})" if took else f"{words})"
    return f"{words}), but {most.name} took {took}"


def _time(script: ScriptFacts) -> float:
    return script.latency.count * (script.latency.mean_ns or 0.0)


def _p95(script: ScriptFacts) -> float:
    return script.latency.p95_ns or 0.0


_METRICS: Final = {"throughput": "throughput", "p50": "the median latency"}
_LONGER: Final = 4
"""A load that did not become steady is worth repeating for this many times as long."""


def steady_sentence(result: LoadResult) -> str:
    """Return a sentence if the load was steady from its start; empty otherwise."""
    found = result.steady
    if found is None or found.verdict != "steady":
        return ""
    return f"The load was steady: {_METRICS[found.metric]} shows no warm-up in its {found.seconds} s."


def _unsteady_words(result: LoadResult) -> str:
    found = result.steady
    if found is None or found.verdict == "steady":
        return ""
    if found.verdict == "warm-up":
        who = "server" if result.http is None else "service"
        rate = f"{rate_text(found.operations_per_second or 0.0)} {operation_word(result)}s a second"
        p50, p99 = format_duration(found.p50_ns or 0), format_duration(found.p99_ns or 0)
        return (
            f"the load was steady after {_seconds(found)} s: from then on, the {who} handled {rate} with p50 "
            f"{p50} and p99 {p99}; {_warm_up(result, found)} leaves the time before out"
        )
    if found.start_ns is not None:
        return (
            f"the load did not become steady: its first {_seconds(found)} s differ from the rest, which "
            f"is too short to judge; run longer{_length(result)}, or use "
            f"{_warm_up(result, found)}"
        )
    return (
        f"the load did not become steady: {_METRICS[found.metric]} was still changing after half of its "
        f"{found.seconds} s; run longer{_length(result)}, or the figures depend on how long it ran"
    )


def _seconds(found: SteadyFacts) -> int:
    return round((found.start_ns or 0) / 1e9)


def _warm_up(result: LoadResult, found: SteadyFacts) -> str:
    whole = result.settings.warmup_ns + (found.start_ns or 0)
    return f"--warmup {math.ceil(whole / 1e9)}s"


def _length(result: LoadResult) -> str:
    duration_ns = result.settings.duration_ns
    if duration_ns is None:
        return ""
    option = "-T" if result.http is None else "-D"
    return f" ({option} {_LONGER * math.ceil(duration_ns / 1e9)})"
