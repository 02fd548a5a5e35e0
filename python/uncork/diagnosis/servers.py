"""Say on which of several servers a finding of logs is. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from uncork.model.database.finding import Finding
from uncork.model.results.log import ErrorFacts, LogResult

_SHOWN: Final = 3


def for_servers(finding: Finding, log: LogResult) -> Finding:
    """Return a finding with the servers on which its statements took their time, if logs are of several."""
    if not log.servers or not finding.templates or " on server " in finding.headline:
        return finding
    times = Counter[str]()
    for template in log.templates:
        if template.number in finding.templates:
            for part in template.servers:
                times[part.name] += part.sum_ns
    total = times.total()
    if not total:
        return finding
    ranked = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) == 1:
        words = f"All of its time is on server {ranked[0][0]}."
    else:
        shares = [f"{name} {_percent(spent / total)}" for name, spent in ranked[:_SHOWN]]
        more = f", {len(ranked) - _SHOWN} others" if len(ranked) > _SHOWN else ""
        words = f"Its time by server: {', '.join(shares)}{more}."
    return replace(finding, evidence=(*finding.evidence, words))


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else "under 1 %"


def servers_of(errors: Sequence[ErrorFacts]) -> Counter[str]:
    """Return how often errors happened on each server."""
    counts = Counter[str]()
    for server in (server for error in errors for server in error.servers):
        counts[server.name] += server.count
    return counts


def on_servers(counts: Counter[str]) -> str:
    """Return where something happened, the most frequent first: " on server a"; "" without names."""
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if name]
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
    return f" on {'server' if len(names) == 1 else 'servers'} {', '.join(names[:_SHOWN])}{more}"
