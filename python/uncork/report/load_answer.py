"""The answer of a load: the first sentence a reader sees, and the doubts about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.load import LoadOutcome
from uncork.model.load_result import LoadResult
from uncork.model.units import format_count, format_duration
from uncork.report.load_words import clients_words, codes_words, rate_text, share_text
from uncork.report.system_blocks import system_doubts
from uncork.report.words import count_words

__all__ = ["compose_load_answer", "compose_load_warnings"]

_SHORT_NS: Final = 10_000_000_000
"""Below this, what happens to a server now and then (checkpoints, autovacuum, a cold cache) hardly shows."""
_FEW: Final = 1_000
"""With fewer operations, the 0.99 quantile rests on less than ten of them."""
_STOLEN: Final = 0.01
"""The part of the time that a hypervisor may take before it is said."""


def compose_load_answer(result: LoadResult) -> str:
    """Return what came of a load in one sentence: how many, how fast, how many went wrong."""
    counts, elapsed = result.counts, result.run.elapsed_ns
    outcome = result.run.outcome
    if outcome is LoadOutcome.REFUSED:
        return _refused(result)
    opening = {
        LoadOutcome.INTERRUPTED: "Interrupted: ",
        LoadOutcome.CONNECTION_LOST: "The server went away: ",
        LoadOutcome.DEADLINE: "Cut short at its deadline: ",
    }.get(outcome, "")
    if not counts.succeeded:
        failed = f"none of {count_words(counts.started, 'transaction')} succeeded"
        reason = f": {counts.first_error}" if counts.first_error else ""
        return _sentence(f"{opening}{failed if counts.started else 'no transaction was started'}{reason}")
    rate = f"{rate_text(result.operations_per_second)} transactions a second over {format_duration(elapsed)}"
    text = f"{opening}{rate} by {_by(result)}; {_latency(result)}; {_errors(result)}"
    return _sentence(text)


def compose_load_warnings(result: LoadResult) -> tuple[str, ...]:
    """Return what would make an expert hesitate, one sentence each, the gravest first."""
    parts = (_went_wrong(result), _too_late(result), _thin(result))
    return tuple(_sentence(text) for part in parts for text in part)


def _refused(result: LoadResult) -> str:
    refused = sum(result.counts.connect_errors.values())
    many = (
        f"{count_words(refused, 'connection')} could not be opened" if refused else "no connection was opened"
    )
    reason = result.run.message or result.counts.first_error or codes_words(result.counts.connect_errors)
    return _sentence(f"Nothing was measured, because {many}: {reason}")


def _by(result: LoadResult) -> str:
    settings = result.settings
    if not settings.open_loop:
        return clients_words(settings)
    arrivals = result.counts.arrivals or 0
    seconds = result.run.elapsed_ns / 1e9
    arrived = f", of {rate_text(arrivals / seconds)} that arrived" if seconds else ""
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
        parts.append(f"{format_count(counts.failed)} failed ({share_text(counts.failed, counts.started)})")
    if counts.skipped:
        parts.append(f"{format_count(counts.skipped)} were skipped")
    if counts.unsent:
        parts.append(f"{format_count(counts.unsent)} were never sent")
    refused = sum(counts.connect_errors.values())
    if refused:
        parts.append(f"{count_words(refused, 'connection')} refused")
    return ", ".join(parts) if parts else "no errors"


def _went_wrong(result: LoadResult) -> Iterator[str]:
    """Yield what failed."""
    counts = result.counts
    if result.run.outcome is not LoadOutcome.COMPLETE and result.run.message and counts.started:
        yield f"the load ended early ({result.run.outcome}): {result.run.message}"
    if counts.errors:
        first = f"; the first said: {counts.first_error}" if counts.first_error else ""
        yield f"failed transactions by SQLSTATE: {codes_words(counts.errors)}{first}"
    cut = counts.failed - sum(counts.errors.values())
    if cut > 0:
        yield f"{count_words(cut, 'transaction')} under way at the end counted as failed"
    if counts.connect_errors and result.run.outcome is not LoadOutcome.REFUSED:
        yield f"connections that could not be opened: {codes_words(counts.connect_errors)}"
    if result.connections.lost:
        lost = count_words(result.connections.lost, "connection")
        yield f"{lost} broke and had to be opened again; what they carried failed"


def _too_late(result: LoadResult) -> Iterator[str]:
    """Yield what was not sent, or too late, or more than once."""
    counts = result.counts
    arrivals = counts.arrivals or 0
    limit = format_duration(result.settings.latency_limit_ns or 0)
    if counts.unsent:
        yield (
            f"{_of(counts.unsent, arrivals)} arrivals ({share_text(counts.unsent, arrivals)}) found no free "
            "connection before the end: the server did not keep up with the rate, and as they are in no "
            "latency here, the true ones are worse; lower the rate (-R), or allow more connections "
            "(--max-clients)"
        )
    if counts.skipped:
        yield (
            f"{_of(counts.skipped, arrivals)} arrivals ({share_text(counts.skipped, arrivals)}) were "
            f"skipped, for they were over {limit} late before they could start (-L); they are in no latency "
            "here"
        )
    if counts.late:
        share = share_text(counts.late, counts.started)
        yield f"{count_words(counts.late, 'transaction')} ({share}) took longer than the limit of {limit}"
    if counts.retried:
        many = count_words(counts.retried, "transaction")
        yield f"{many} needed more than one try: {codes_words(counts.retries)}"


def _thin(result: LoadResult) -> Iterator[str]:
    """Yield why the figures may not be what they seem."""
    succeeded, elapsed, generator = result.counts.succeeded, result.run.elapsed_ns, result.generator
    if succeeded and elapsed < _SHORT_NS:
        yield (
            f"it lasted {format_duration(elapsed)}: under 10 s, checkpoints, autovacuum and a cold cache "
            "hardly show; measure longer (-T 60) before you rely on it"
        )
    if 0 < succeeded < _FEW:
        yield f"with only {count_words(succeeded, 'transaction')}, the 99 % figure rests on fewer than ten"
    if result.system is not None:
        yield from system_doubts(result.system)
    elif elapsed and generator.steal_ns > _STOLEN * elapsed:
        stolen = format_duration(generator.steal_ns)
        yield f"the hypervisor took {stolen} of processor time away meanwhile"
    if generator.throttled_ns and result.system is None:
        throttled = format_duration(generator.throttled_ns)
        yield f"the control group was throttled for {throttled}: its processor limit shaped the figures"
    if succeeded and not result.settings.open_loop:
        yield (
            "in a closed loop a stall of the server also holds back the transactions that would have felt it "
            "(coordinated omission), so high percentiles flatter; a fixed rate (-R) shows them"
        )


def _of(part: int, whole: int) -> str:
    return f"{format_count(part)} of {format_count(whole)}"


def _sentence(text: str) -> str:
    stripped = text.rstrip(". \n")
    return f"{stripped[:1].upper()}{stripped[1:]}."
