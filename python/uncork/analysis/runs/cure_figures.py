"""The metrics of a cure: what the workload costs, what its proven changes save, and on which statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from uncork.analysis.runs.figures import short_text, statement_subjects
from uncork.model.results.cure import Change, CureResult, StatementEffect, application_changes
from uncork.model.results.figure import Figure
from uncork.store.layout import find_run, read_manifest, watch_of

_S: Final = 1e9


class CuredWatch(NamedTuple):
    """The watch that a cure rests on, and the subjects of the statements that it changed on the copy."""

    cure: str
    watch: Path
    changed: tuple[str, ...]


def cured_watch(root: Path, before: Path, others: Sequence[Path]) -> CuredWatch | None:
    """Return the watch of a cure that is compared with later watches of its server; None for other runs.

    Raises:
        StoreError: if the cure or its watch is damaged.
        SetupError: if its watch is gone.
    """
    manifest = read_manifest(before)
    if manifest.kind != "cure" or any(read_manifest(folder).kind == "cure" for folder in others):
        return None
    from uncork.analysis.database.result import stored_database_result  # noqa: PLC0415 -- slow to load
    from uncork.store.run_documents import read_cure  # noqa: PLC0415 -- seldom needed

    watched = find_run(root, str(manifest.options["watched"]))
    watch = watch_of(watched) or watched
    cured = read_cure(before)
    best = [change for tried in cured.tried for change in tried.changes if change.name == tried.best]
    chosen = best if cured.chosen is None else [cured.chosen, *application_changes(cured)]
    subjects = statement_subjects(stored_database_result(watch))
    effects = [effect for change in chosen for effect in change.effects]
    numbers = dict.fromkeys(effect.template for effect in effects if _differs(effect))
    return CuredWatch(before.name, watch, tuple(subjects[number] for number in numbers if number in subjects))


def _differs(effect: StatementEffect) -> bool:
    """Return whether the interval of an effect excludes no difference."""
    return (effect.high is not None and effect.high < 1.0) or (effect.low is not None and effect.low > 1.0)


def cure_figures(result: CureResult) -> Iterator[Figure]:
    """Yield the metrics of a cure. Those of the workload are times of sessions per hour.

    A cure that proves nothing saves nothing. Its workload has no cost, because no change was measured again.
    """
    chosen = _proven(result)
    proven = [tried for tried in result.tried if tried.state == "cured"] if chosen is not None else []
    many = len(proven) if chosen is not None else len(application_changes(result))
    yield Figure("", "proven changes", many, "", "", "exact")
    net = None if chosen is None else chosen.net
    yield Figure("", "saved per hour", 0.0 if net is None else net.saved * _S, "ns", "higher")
    if chosen is None or net is None:
        return
    yield Figure("", "workload per hour", net.before * _S, "ns", "lower")
    if net.before > 0:
        after = max(0.0, net.before - net.saved)
        yield Figure("", "workload per hour with the changes", after * _S, "ns", "lower")
        yield Figure("", "workload with the changes", after / net.before, "ratio", "lower")
    seen: set[str] = set()
    for effect in chosen.effects:
        subject = short_text(effect.sql)
        if subject not in seen:  # the first of several numbers of sessions
            seen.add(subject)
            for name, value in (("mean", effect.before_ns), ("mean with the changes", effect.after_ns)):
                if value is not None and value > 0:
                    yield Figure(subject, name, value, "ns", "lower")
            if effect.ratio is not None and effect.ratio > 0:
                yield Figure(subject, "time with the changes", effect.ratio, "ratio", "lower")


def proven_words(result: CureResult) -> str:
    """Return what a cure proved, as SQL on one line; empty if it proved nothing."""
    chosen = _proven(result)
    if chosen is None:
        return ""
    return "; ".join(
        short_text(change.sql) or change.text
        for tried in result.tried
        if tried.state == "cured"
        for change in tried.changes
        if change.name == tried.best
    )


def _proven(result: CureResult) -> Change | None:
    """Return the changes that are proposed together, if measuring them again confirmed them."""
    chosen = result.chosen
    return chosen if chosen is not None and chosen.state == "cured" and chosen.net is not None else None
