"""What the hosts of a merged experiment show: two scopes of each effect, and hosts that are odd."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from uncork.experiment.run.ledger import Judged, Ledger
from uncork.model.results.hosts import HostFacts, HostScopes, ScopeEffect
from uncork.model.stored_run import HostRounds
from uncork.stats.effect import Effect
from uncork.store.hosts import read_hosts
from uncork.store.layout import PARTS

__all__ = ["host_facts", "host_scopes"]


def host_scopes(ledger: Ledger, item: Judged) -> HostScopes | None:
    """Return the effect of a comparison on these hosts and on others like these; None for a single host."""
    these = ledger.these_hosts(item.cell, item.workload, item.variant) if ledger.has_hosts else None
    if these is None:
        return None
    others = ledger.like_hosts(item.cell, item.workload, item.variant)
    return HostScopes(_scope(these), None if others is None else _scope(others))


def host_facts(folder: Path, ledger: Ledger, confidence: float) -> Iterator[HostFacts]:
    """Yield the hosts of a merged run; none for other runs.

    A host is odd if its baseline differs from itself: the e-value of one of its cells and workloads reaches
    the number of all such tests divided by the error rate (Bonferroni).

    Raises:
        StoreError: if the list of hosts is damaged.
    """
    hosts = read_hosts(folder)
    noise = {host.number: [effect for _, effect in ledger.host_noise(host.number)] for host in hosts}
    needed = sum(map(len, noise.values())) / (1.0 - confidence)
    processors = _processors(folder)
    for host in hosts:
        effects = noise[host.number]
        worst = max(effects, key=lambda one: (one.e_value, abs(math.log(one.ratio))), default=None)
        yield HostFacts(
            number=host.number,
            name=host.name,
            processor=_first(host, processors),
            rounds=len(host.rounds),
            runs=host.runs,
            itself=None if worst is None else _scope(worst),
            odd=worst is not None and worst.e_value >= needed,
        )


def _scope(effect: Effect) -> ScopeEffect:
    bounded = effect.is_bounded
    return ScopeEffect(
        effect.rounds, effect.ratio, effect.low if bounded else None, effect.high if bounded else None
    )


def _processors(folder: Path) -> dict[str, str]:
    """Return the processors of the parts, by the ids of their runs; parts without a description have none."""
    found = {}
    for part in (folder / PARTS).glob("*"):
        try:
            machine = json.loads((part / "environment.json").read_text()).get("machine", {})
            name = json.loads((part / "manifest.json").read_text())["id"]
        except (OSError, ValueError, KeyError):
            continue
        found[name] = f"{machine.get('processors', '?')} × {machine.get('processor', 'unknown')}"
    return found


def _first(host: HostRounds, processors: dict[str, str]) -> str:
    return next((processors[run] for run in host.runs if run in processors), "")
