"""What the hosts of an experiment show: the scopes of each effect, and hosts that are odd."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from uncork.experiment.run.ledger import Judged, Ledger
from uncork.model.records import build_from
from uncork.model.results.hosts import HostFacts, HostScopes, ScopeEffect
from uncork.stats.effect import Effect
from uncork.store.hosts import read_hosts


def host_scopes(ledger: Ledger, item: Judged) -> HostScopes | None:
    """Return the effect of a comparison on these hosts, on others, and at other times; None for one host."""
    these = ledger.these_hosts(item.cell, item.workload, item.variant) if ledger.has_hosts else None
    if these is None:
        return None
    place = (item.cell, item.workload, item.variant)
    others, times = ledger.like_hosts(*place), ledger.other_times(*place)
    return HostScopes(
        _scope(these),
        None if others is None else _scope(others),
        None if times is None else _scope(times),
    )


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
    for host in hosts:
        effects = noise[host.number]
        worst = max(effects, key=lambda effect: (effect.e_value, abs(math.log(effect.ratio))), default=None)
        yield build_from(
            HostFacts,
            host,
            rounds=len(host.rounds),
            itself=None if worst is None else _scope(worst),
            odd=worst is not None and worst.e_value >= needed,
            waves=len(set(host.waves)),
        )


def _scope(effect: Effect) -> ScopeEffect:
    bounded = effect.is_bounded
    return ScopeEffect(
        effect.rounds, effect.ratio, effect.low if bounded else None, effect.high if bounded else None
    )
