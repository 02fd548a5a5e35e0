"""Changes that people often try first, whatever is wrong, measured beside the proven ones.

More memory for sorts and hashes helps statements that spill to disk, and no others. An index on each column
contains the needed one if it has a single column; the others take disk and slow down writes. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.model.database.workload import CapturedWorkload
from uncork.model.units import count_words

USUAL: Final = "usual"
"""The kind of these changes."""
_MEMORY: Final = "work_mem"
_MUCH: Final = "256MB"


def usual_arms(
    chosen: Sequence[Arm], workload: CapturedWorkload, columns: Mapping[str, Sequence[str]]
) -> tuple[Arm, ...]:
    """Return the usual remedies that differ from what was chosen.

    `columns` are the columns of tables that can have a B-tree index, as SQL; an index on each is tried on the
    tables of the chosen indexes.
    """
    found = []
    everything = tuple(statement.template for statement in workload.statements)
    if not any(_MEMORY in arm.settings for arm in chosen):
        found.append(
            Arm(
                name="more-memory",
                kind=USUAL,
                text=f"More memory for each sort and hash (work_mem = {_MUCH}).",
                sql=f"SET {_MEMORY} = '{_MUCH}';",
                undo=f"RESET {_MEMORY};",
                settings={_MEMORY: _MUCH},
                templates=everything,
            )
        )
    tables = {table for arm in chosen if arm.kind == "index" for table in arm.tables if columns.get(table)}
    if tables:
        wanted = [(table, column) for table in sorted(tables) for column in columns[table]]
        script = "\n".join(f"CREATE INDEX ON {table} ({column});" for table, column in wanted)
        many = count_words(len(wanted), "column")
        found.append(
            Arm(
                name="index-on-each-column",
                kind=USUAL,
                text=f"An index on each of the {many} of {' and '.join(sorted(tables))}.",
                sql=script,
                undo="",
                setup=script,
                tables=tuple(sorted(tables)),
                templates=everything,
            )
        )
    return tuple(found)
