"""Rows of large tables, in a quarter of the memory of dictionaries: they share their columns' names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

Values = tuple[Any, ...]


class _Row(Mapping[str, Any]):
    """One row, as a read-only mapping from column names to values."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Values) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Rows(Sequence[Mapping[str, Any]]):
    """Rows with the same columns. `names` are the columns, and `values` one tuple per row.

    A row is a mapping that exists only while it is used.
    """

    __slots__ = ("_places", "names", "values")

    def __init__(self, names: Sequence[str], values: Iterable[Values]) -> None:
        self.names = tuple(names)
        self.values = list(values)
        self._places = {name: place for place, name in enumerate(self.names)}

    @overload
    def __getitem__(self, place: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> Rows: ...

    def __getitem__(self, place: int | slice) -> Mapping[str, Any] | Rows:
        if isinstance(place, slice):
            return Rows(self.names, self.values[place])
        return _Row(self._places, self.values[place])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        places = self._places
        return (_Row(places, values) for values in self.values)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column; None for each row if there is no such column."""
        place = self._places.get(name)
        return [None if place is None else values[place] for values in self.values]

    def columns(self, *names: str) -> list[list[Any]]:
        """Return the values of several columns, which is faster than reading them row by row."""
        return [self.column(name) for name in names]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], *names: str) -> list[list[Any]]:
        """Return the values of several columns of any rows."""
        if isinstance(rows, Rows):
            return rows.columns(*names)
        return [[row.get(name) for row in rows] for name in names]

    def add_columns(self, names: Sequence[str], values: Sequence[Values]) -> None:
        """Add columns to these rows, whose values come in the same order. Rows in use have no new columns.

        Raises ValueError if there are fewer or more values than rows.
        """
        if len(values) != len(self.values):
            raise ValueError(f"{len(values)} values for {len(self.values)} rows")
        # One row at a time, because a second list of all rows would take as much memory again.
        for place, more in enumerate(values):
            self.values[place] = (*self.values[place], *more)
        self.names = (*self.names, *names)
        self._places = {name: place for place, name in enumerate(self.names)}
