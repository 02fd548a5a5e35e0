"""Join the tables of an experiment's runs on several hosts into one run, also while they still measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uncork.errors import StoreError
from uncork.model.stored_run import RunHost
from uncork.model.tables.register import TABLES
from uncork.store.query import RunReader
from uncork.store.tables import append_table

if TYPE_CHECKING:
    import pyarrow as pa

_OF_TRIALS: Final = frozenset(
    {
        *("trials", "slices", "statements", "plans", "relations", "refusals", "answers", "data_checks"),
        "overheads",
    }
)
_TABLES: Final = tuple(name for name in TABLES if name in _OF_TRIALS or name.startswith("system_"))
_NUMBERED: Final = {"round": 1, "sampling": 0}
"""Columns whose numbers each run counts from this one on."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a run has stored since it was last read: `rounds` are the numbers of its rounds in the whole."""

    rounds: list[int]
    tables: list[tuple[str, pa.Table]] = field(default_factory=list, repr=False)


class Joining:
    """Appends what runs have stored to the tables of the run at `target`, with rounds numbered anew.

    The caller gives each run a number, by which later calls recognise it.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._free = dict(_NUMBERED)
        self._numbers: dict[tuple[int, str], dict[int, int]] = {}
        self._taken: set[Path] = set()

    def read(self, number: int, source: Path) -> Joined:
        """Read what a run has stored since the last call, with the numbers of the whole.

        Raises:
            StoreError: if a table is damaged.
        """
        import pyarrow as pa  # noqa: PLC0415 -- loading it takes a while
        import pyarrow.parquet as pq  # noqa: PLC0415

        tables: list[tuple[str, pa.Table]] = []
        for name in _TABLES:
            for path in sorted((source / name).glob("*.parquet")):
                if path in self._taken:
                    continue
                try:
                    tables.append((name, pq.read_table(path)))
                except (OSError, pa.ArrowException) as error:
                    raise StoreError(f"{path}: damaged: {error}") from error
                self._taken.add(path)
        for column in _NUMBERED:
            self._number(number, column, [one for _, one in tables if column in one.column_names])
        rounds = self._numbers[number, "round"]
        measured = {
            place for name, table in tables if name == "trials" for place in table["round"].to_pylist()
        }
        return Joined(
            sorted(rounds[place] for place in measured),
            [(name, self._renumbered(number, one)) for name, one in tables],
        )

    def append(self, joined: Joined) -> None:
        """Append what was read. Raises StoreError if it cannot be written."""
        for name, table in joined.tables:
            append_table(self._target, name, table)

    def _number(self, number: int, column: str, tables: Sequence[pa.Table]) -> None:
        """Give numbers of the whole to the numbers that a run has in a column, in their order."""
        known = self._numbers.setdefault((number, column), {})
        found = {one for table in tables for one in table[column].unique().to_pylist()}
        for one in sorted(found - known.keys() - {None}):
            known[one] = self._free[column]
            self._free[column] += 1

    def _renumbered(self, number: int, table: pa.Table) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        for column in [text for text in _NUMBERED if text in table.column_names]:
            known = self._numbers[number, column]
            places = pc.index_in(table[column], pa.array(list(known), table[column].type))
            values = pa.array(list(known.values()), pa.int64()).take(places.combine_chunks())
            table = table.set_column(table.column_names.index(column), column, values)
        return table


def host_numbers(hosts: Sequence[RunHost]) -> list[int]:
    """Return a number from 1 on for each run. Runs of one machine, or of machines of one name, share it."""
    numbers: list[int] = []
    for place, host in enumerate(hosts):
        same = (
            numbers[earlier]
            for earlier, other in enumerate(hosts[:place])
            if host.name == other.name or (host.machine == other.machine and host.machine)
        )
        numbers.append(next(same, max(numbers, default=0) + 1))
    return numbers


def processor_words(reader: RunReader) -> str:
    """Return a run's processors in words, such as "8 × EPYC 7B13"; empty if it does not say."""
    machine = reader.environment().get("machine", {})
    return f"{machine.get('processors', '?')} × {machine['processor']}" if "processor" in machine else ""
