"""What several hosts show in the result of an experiment."""

from __future__ import annotations

from uncork.model.records import Record


class ScopeEffect(Record):
    """An effect from `count` observations, with its interval; an infinite bound is None."""

    count: int
    ratio: float | None
    low: float | None
    high: float | None


class HostScopes(Record):
    """What a comparison shows in two or three scopes; its own interval is the widest.

    `these_hosts` is the effect on the hosts that were measured, from their rounds. `hosts_like_these` is that
    on other hosts of the same kind, from one mean per host; None with too few hosts. `other_times` is that at
    other times, from one mean per wave; None with too few waves, or if hosts did not measure together.
    """

    these_hosts: ScopeEffect
    hosts_like_these: ScopeEffect | None
    other_times: ScopeEffect | None = None


class HostFacts(Record):
    """A host of an experiment that several measured, and its runs.

    `itself` is the effect of the baseline on itself in its rounds, in the cell and workload in which they
    differ most; None if nothing complete was measured. `odd` means that they differ by more than chance, at
    the error rate of the experiment for all hosts together. `lost` says why the host did not measure until
    the end, with the round that it measured then; empty if it did. `waves` is in how many waves it measured;
    0 if the runs were merged afterwards.
    """

    number: int
    name: str
    processor: str
    rounds: int
    runs: tuple[str, ...]
    itself: ScopeEffect | None
    odd: bool
    lost: str = ""
    waves: int = 0
