"""Tables as Arrow, pandas, Polars, or rows."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from uncork.errors import UsageError
from uncork.model.extras import install_extra

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN: Final = 20


class Table:
    """Rows with named, typed columns.

    Libraries that support Arrow accept it directly (``polars.DataFrame(rows)``, ``duckdb.sql("FROM
    rows")``). Iteration yields one dict per row.
    """

    def __init__(self, data: pa.Table) -> None:
        self._data = data

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._data.column_names)

    def arrow(self) -> pa.Table:
        """Return the rows as a `pyarrow.Table`."""
        return self._data

    def pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame.

        Raises:
            UsageError: if pandas is not installed.
        """
        _loaded("pandas")
        frame: pandas.DataFrame = self._data.to_pandas()
        return frame

    def polars(self) -> polars.DataFrame:
        """Return the rows as a Polars data frame.

        Raises:
            UsageError: if Polars is not installed.
        """
        frame: polars.DataFrame = _loaded("polars").from_arrow(self._data)
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        return list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._data.to_pylist()
        return iter(rows)

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        many = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"<uncork table: {many} of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return drawn(self.columns, list(self._data.slice(0, _SHOWN).to_pylist()), len(self))


def drawn(columns: Sequence[str], rows: Sequence[dict[str, Any]], total: int) -> str:
    """Return rows as an HTML table in the notebook's own style; `total` is the number of all rows."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(_cell(row[name]) for name in columns) + "</tr>" for row in rows)
    more = f"<p>{len(rows)} of {total} rows</p>" if len(rows) < total else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if isinstance(value, bool | int | float):
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        return f'<td style="text-align:right">{text}</td>'
    return f'<td style="text-align:left">{"" if value is None else escape(str(value))}</td>'


def _loaded(name: str) -> Any:
    """Import an optional library.

    Raises:
        UsageError: if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} is not installed; use .arrow(), or install it: {install_extra(name)}"
        ) from error
