"""The kinds of runs: how each is read, and the forms of its report.

Each kind has its own module, which is loaded on first use, because loading the reports of all kinds is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

from uncork.errors import StoreError
from uncork.report.write.json_document import json_bytes, json_text
from uncork.store.layout import read_manifest

if TYPE_CHECKING:
    from rich.console import Console

    from uncork.report.blocks import Document

Found = TypeVar("Found")


class Forms(NamedTuple):
    """A report in the forms that are stored with its run."""

    html: str
    markdown: str
    json: bytes


@dataclass(frozen=True, slots=True)
class Kind(Generic[Found]):
    """How one kind of run is read and reported.

    `read` reads a stored run, and `result` returns the public part of what it read. `brief` builds
    the document for Markdown, without flame graphs and very long parts, and `page` that of the HTML
    page if it has more. `terminal` prints the report. `markdown` writes the Markdown if it is not
    made from the brief document.
    """

    read: Callable[[Path], Found]
    brief: Callable[[Found], Document]
    terminal: Callable[[Found, Console], None]
    page: Callable[[Path, Found], Document] | None = None
    result: Callable[[Found], Any] = lambda found: found
    markdown: Callable[[Found], str] | None = None

    def document(self, folder: Path, found: Found) -> Document:
        """Return the document of the HTML page."""
        return self.brief(found) if self.page is None else self.page(folder, found)

    def text(self, found: Found) -> str:
        """Return the report as Markdown."""
        from uncork.report.write.markdown import markdown_text  # noqa: PLC0415 -- only for this form

        return self.markdown(found) if self.markdown is not None else markdown_text(self.brief(found))

    def json(self, found: Found) -> str:
        """Return the result as JSON; its schema is in `report.write.schemas`."""
        return json_text(self.result(found))

    def json_bytes(self, found: Found) -> bytes:
        """Return the result as JSON in UTF-8."""
        return json_bytes(self.result(found))

    def forms(self, folder: Path, found: Found, json: bytes | None = None) -> Forms:
        """Return the report in all forms that are stored with the run; `json` is its JSON if it is known."""
        from uncork.report.write.html import html_page  # noqa: PLC0415 -- only for this form

        page, text = html_page(self.document(folder, found)), self.text(found)
        return Forms(page, text, self.json_bytes(found) if json is None else json)


_ROWS: Final = {
    "experiment": "experiments",
    "load": "loads",
    "sweep": "sweeps",
    "log": "logs",
    "database": "databases",
    "cpu": "stacks",
    "service": "services",
    "import": "imports",
    "guard": "guards",
    "cure": "cures",
    "together": "together",
}


def kind_of(folder: Path) -> Kind[Any]:
    """Return the kind of a stored run; an experiment that a guard measured is of kind ``guard``.

    Raises StoreError if the run is damaged, or this version of uncork does not know its kind.
    """
    kind = read_manifest(folder).kind
    if kind not in _ROWS:
        raise StoreError(f"{folder}: this uncork does not know runs of kind {kind}; update uncork")
    if kind == "experiment":
        from uncork.workbench.guard.store import read_guard  # noqa: PLC0415 -- other kinds do without

        kind = kind if read_guard(folder) is None else "guard"
    return kind_named(kind)


def kind_named(name: str) -> Kind[Any]:
    """Return a kind of run by its name; raises KeyError if there is none."""
    return cast("Kind[Any]", import_module(f"uncork.workbench.documents.{_ROWS[name]}").KIND)
