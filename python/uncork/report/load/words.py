"""Texts for the counts, error codes and settings of a load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from uncork.model.results.load import LoadResult, LoadSettings
from uncork.model.units import count_words, format_count, format_duration, series_words
from uncork.report.blocks import Bullets
from uncork.report.words import capitalised, rate_text

_CODES: Final = {
    "08001": "server out of reach",
    "08003": "connection does not exist",
    "08004": "connection rejected",
    "08006": "connection lost",
    "08P01": "protocol violation",
    "22012": "division by zero",
    "23502": "not null violation",
    "23503": "foreign key violation",
    "23505": "unique violation",
    "23514": "check violation",
    "25006": "read-only transaction",
    "25P02": "transaction is aborted",
    "28000": "authorisation refused",
    "28P01": "wrong password",
    "3D000": "no such database",
    "40001": "serialization failure",
    "40P01": "deadlock",
    "42501": "insufficient privilege",
    "42601": "syntax error",
    "42703": "no such column",
    "42P01": "no such table",
    "53100": "disk full",
    "53200": "out of memory",
    "53300": "too many connections",
    "55P03": "lock not available",
    "57014": "cancelled",
    "57P01": "server shut down",
    "57P02": "server crashed",
    "57P03": "server not ready",
}
_SQL_WIDTH: Final = 60


def operation_word(result: LoadResult) -> str:
    """Return the name of one operation: ``transaction``, or ``request`` for HTTP."""
    return "transaction" if result.http is None else "request"


def code_name(result: LoadResult) -> str:
    """Return the name of the error code: ``SQLSTATE``, or ``kind`` for HTTP."""
    return "SQLSTATE" if result.http is None else "kind"


def code_words(code: str) -> str:
    """Return an SQLSTATE with its name: ``40001 serialization failure``; a rare one stays a bare code."""
    return f"{code} {_CODES[code]}" if code in _CODES else code


def codes_words(counts: Mapping[str, int]) -> str:
    """Return counts by SQLSTATE, most frequent first: ``16 × 40001 serialization failure and 4 × …``."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return series_words(f"{format_count(number)} × {code_words(code)}" for code, number in ranked)


def clients_words(settings: LoadSettings) -> str:
    """Return the clients: ``8 clients``, ``4 to 64 connections``, ``6 connections × 100 at once``."""
    many = settings.pipeline_depth
    if settings.on_close is not None:
        each = f" × {format_count(many)} at once" if many > 1 else ""
        return f"{count_words(settings.clients, 'connection')}{each}"
    if settings.max_clients > settings.clients:
        return f"{format_count(settings.clients)} to {count_words(settings.max_clients, 'connection')}"
    return count_words(settings.clients, "client")


def arrivals_words(settings: LoadSettings) -> str:
    """Describe when operations start: ``closed loop: …``, ``open loop, 300 a second (Poisson)``."""
    if settings.arrivals is None:
        return "closed loop: each client waits for its answer before it sends again"
    if settings.recorded == "replay":
        return "open loop: a replay of recorded sessions"
    if settings.arrivals == "trace":
        return "open loop, with the arrivals of the trace"
    kind = {"poisson": "Poisson", "constant": "at equal intervals", "bursts": "in bursts"}[settings.arrivals]
    if settings.burst_size is not None:
        kind += f" of {settings.burst_size}"
    return f"open loop, {rate_text(settings.rate or 0)} a second ({kind})"


def stop_words(settings: LoadSettings) -> str:
    """Describe when the load ends: after a count of operations, a time, or the trace."""
    if settings.operations is not None:
        return count_words(settings.operations, "request")
    if settings.duration_ns is not None:
        return format_duration(settings.duration_ns)
    if settings.operations_each is not None:
        return f"{count_words(settings.operations_each, 'transaction')} per client"
    return "the whole recording" if settings.recorded == "replay" else "the end of the trace"


def short_sql(text: str) -> str:
    """Return a statement on one line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= _SQL_WIDTH else f"{line[: _SQL_WIDTH - 1]}…"


_LIMITS: Final = {
    "generator": "the load generator",
    "listen backlog": "the listen backlog",
    "connection limit": "the connection limit",
    "cpu quota": "the CPU quota",
    "pool": "the connection pool",
    "commit": "commits",
    "database cpu": "the database's CPU",
    "service cpu": "the service's CPU",
    "machine cpu": "the machine's CPU",
}


def limit_words(resource: str) -> str:
    """Return a resource as it follows *limited by*: ``the connection pool``, ``locks``."""
    return _LIMITS.get(resource, resource)


def resource_title(resource: str) -> str:
    """Return a resource as the head of a line: ``Machine CPU``."""
    shown = resource.replace("cpu", "CPU")
    return capitalised(shown)


def bottleneck_lines(found: Iterable[tuple[str, str, str, str]]) -> Bullets:
    """Return one item per (resource, level or "", evidence, remedy)."""
    return Bullets(
        tuple(
            f"{resource_title(resource)}{f' at {where}' if where else ''}: {sentence}. Remedy: {remedy}."
            for resource, where, sentence, remedy in found
        )
    )
