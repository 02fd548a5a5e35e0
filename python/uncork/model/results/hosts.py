"""What several hosts show in the result of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HostFacts", "HostScopes", "ScopeEffect"]


@dataclass(frozen=True, slots=True)
class ScopeEffect:
    """An effect from `count` observations, with its interval; an infinite bound is None."""

    count: int
    ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class HostScopes:
    """What a comparison shows in two scopes; its own interval is the wider of both.

    `these_hosts` is the effect on the hosts that were measured, from their rounds. `hosts_like_these` is that
    on other hosts of the same kind, from one mean per host; None with too few hosts.
    """

    these_hosts: ScopeEffect
    hosts_like_these: ScopeEffect | None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host of a run that was merged from several, and its runs.

    `itself` is the effect of the baseline on itself in its rounds, in the cell and workload in which they
    differ most; None if nothing complete was measured. `odd` means that they differ by more than chance, at
    the error rate of the experiment for all hosts together. `lost` says why the host did not measure until
    the end, with the round that it measured then; empty if it did.
    """

    number: int
    name: str
    processor: str
    rounds: int
    runs: tuple[str, ...]
    itself: ScopeEffect | None
    odd: bool
    lost: str = ""
