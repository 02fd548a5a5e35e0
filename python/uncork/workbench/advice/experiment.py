"""Write the experiment that would prove the first change of a finding."""

from __future__ import annotations

from pathlib import Path

from uncork.errors import UsageError
from uncork.experiment.draft import experiment_text
from uncork.model.database.finding import Finding
from uncork.model.database.index import within_transaction
from uncork.model.results.advice import AdviceResult
from uncork.model.units import count_words
from uncork.workbench.experiment.drafting import draft_of


def experiment_of(result: AdviceResult, number: int, folder: Path, dsn: str | None) -> str:
    """Return an experiment file about a finding: its statement, with and without each provable change.

    `dsn` is a database to read the definitions of the tables from, if it is known. Raises
    UsageError if there is no such finding, or nothing about it can be proven by SQL on a copy.
    """
    if number > len(result.findings):
        many = count_words(len(result.findings), "finding")
        raise UsageError(f"--experiment {number}: there are {many}; choose one of them")
    finding = result.findings[number - 1]
    changes = _changes(finding)
    if not changes:
        raise UsageError(
            f"--experiment {number}: no change of this finding is SQL that a copy of the database can try; "
            f"{finding.proof[:1].lower()}{finding.proof[1:] or 'compare before and after by hand'}"
        )
    return experiment_text(draft_of(folder, str(finding.templates[0]), dsn, changes))


def _changes(finding: Finding) -> dict[str, str]:
    """Return the SQL of each change that a copy can try, by the name of its variant."""
    provable = finding.for_experiment
    names = (
        ["changed"] if len(provable) == 1 else [f"change-{place}" for place in range(1, len(provable) + 1)]
    )
    return {name: within_transaction(candidate.sql) for name, candidate in zip(names, provable, strict=True)}
