"""Sentences and a table about the hosts of an experiment that was measured on several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.results.experiment import RunResult
from uncork.model.results.hosts import HostFacts, ScopeEffect
from uncork.report.blocks import Paragraph, Section, Value
from uncork.report.cells import column, header, number, table_if_any, table_of
from uncork.report.experiment.view import View
from uncork.report.words import MEASURED, count_words, effect_with_interval, series_words

_NEEDED: Final = "a claim about others needs at least five hosts, and a metric other than success"


def host_words(result: RunResult) -> Iterator[str]:
    """Yield about which hosts the verdicts are, and which hosts are odd; nothing for a run of one host."""
    if not result.hosts:
        return
    many = count_words(len(result.hosts), "host")
    if len(result.hosts) == 1:
        yield f"All rounds were measured on {result.hosts[0].name}, which counts as one host."
        return
    measured = [comparison for comparison in result.comparisons if comparison.verdict in MEASURED]
    others = [
        comparison
        for comparison in measured
        if comparison.scopes is not None and comparison.scopes.hosts_like_these is not None
    ]
    if others:
        yield (
            f"Measured on {many}. The verdicts are about hosts like these: each interval is the wider of the "
            "one from rounds and the one from the means of hosts."
        )
        if len(others) < len(measured):
            rest = count_words(len(measured) - len(others), "comparison")
            yield f"The verdicts of {rest} are about these hosts only, because {_NEEDED}."
    else:
        yield (f"Measured on {many}. The verdicts are about these hosts only, because {_NEEDED}.")
    yield from _waves(result)
    yield from lost_words(result.hosts)
    odd = [host for host in result.hosts if host.odd]
    if odd:
        names = series_words([f"{host.name} ({_effect(host.itself)})" for host in odd])
        yield f"The baseline differs from itself on {names}. The rounds of these hosts count like the others."


def host_sections(view: View) -> Iterator[Section]:
    """Yield the section about the hosts, if there are several."""
    result = view.result
    if not result.hosts:
        return
    waves = any(host.waves for host in result.hosts)
    blocks = [
        table_of(
            "",
            result.hosts,
            header("host", lambda host: host.name),
            column("processors", lambda host: host.processor),
            number("rounds", lambda host: Value(str(host.rounds), sort=host.rounds)),
            column(
                "baseline against itself",
                lambda host: f"{_effect(host.itself)}{' (odd)' if host.odd else ''}",
            ),
        )
    ]
    compared = table_if_any(
        "Effects with their intervals by scope",
        [
            (
                f"{comparison.variant} on {view.place((comparison.cell, comparison.workload))}",
                comparison.scopes,
            )
            for comparison in result.comparisons
            if comparison.scopes is not None
        ],
        header("comparison", lambda effect: effect[0]),
        column("on these hosts", lambda effect: _effect(effect[1].these_hosts), whole=True),
        column(
            "on hosts like these", lambda effect: _effect(effect[1].hosts_like_these) or "unknown", whole=True
        ),
        column(
            "at other times",
            lambda effect: _effect(effect[1].other_times) or "unknown",
            whole=True,
            when=waves,
        ),
    )
    if compared is not None:
        blocks.append(compared)
    text = (
        "A variant may gain more on one kind of machine than on another. Rounds of one host share this "
        "difference, so the interval for other hosts has one observation per host."
        + (" Rounds of one wave likewise share what is peculiar to that time." if waves else "")
    )
    yield Section("hosts", "Hosts", (Paragraph(text), *blocks))


def _waves(result: RunResult) -> Iterator[str]:
    """Say what rounds at the same time mean for the verdicts; nothing for runs merged afterwards."""
    waves = max(host.waves for host in result.hosts)
    if waves == 0:
        return
    if any(
        comparison.scopes is not None and comparison.scopes.other_times is not None
        for comparison in result.comparisons
    ):
        yield (
            f"The hosts measured at the same time, in {waves} waves. Where the interval from the means of "
            "waves is wider still, it decides."
        )
    else:
        yield (
            f"The hosts measured at the same time, in {count_words(waves, 'wave')}: fewer than five say "
            "nothing about other times."
        )


def lost_words(hosts: Sequence[HostFacts]) -> Iterator[str]:
    """Yield which hosts were lost, and why; nothing if none was."""
    lost = [host for host in hosts if host.lost]
    if lost:
        rounds = count_words(len(lost), "round")
        names = series_words([f"{host.name} ({host.lost})" for host in lost])
        yield f"{rounds} {'was' if len(lost) == 1 else 'were'} lost with {names}."


def _effect(effect: ScopeEffect | None) -> str:
    if effect is None or effect.ratio is None:
        return ""
    return effect_with_interval(effect.ratio, effect.low, effect.high)
