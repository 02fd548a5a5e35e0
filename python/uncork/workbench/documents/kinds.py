"""One row a kind of run: how it is read, and which forms its report has.

Each row stands in a module of its own, which is loaded when a run of its kind is wanted: reports of all kinds
together take long to load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

from uncork.errors import StoreError
from uncork.report.write.json_document import json_text
from uncork.store.layout import read_manifest
from uncork.workbench.guard.store import read_guard

if TYPE_CHECKING:
    from rich.console import Console

    from uncork.report.blocks import Document

__all__ = ["Forms", "Kind", "kind_named", "kind_of"]

Found = TypeVar("Found")


class Forms(NamedTuple):
    """A report in the forms that are kept beside its run."""

    html: str
    markdown: str
    json: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[Found]):
    """What there is for one kind of run.

    `read` returns what a stored run shows, `result` the public part of it; `document` makes the page, `brief`
    what Markdown is made of (flame graphs, and parts of which there are hundreds, are left out); `terminal`
    prints it; `markdown` writes it, where that is not the brief document.
    """

    read: Callable[[Path], Found]
    document: Callable[[Path, Found], Document]
    brief: Callable[[Found], Document]
    terminal: Callable[[Found, Console], None]
    result: Callable[[Found], Any] = lambda found: found
    markdown: Callable[[Found], str] | None = None

    def text(self, found: Found) -> str:
        """Return the report as Markdown."""
        from uncork.report.write.markdown import markdown_text  # noqa: PLC0415 -- only for this form

        return self.markdown(found) if self.markdown is not None else markdown_text(self.brief(found))

    def json(self, found: Found) -> str:
        """Return the result as JSON; `report.write.schemas` has its schema."""
        return json_text(self.result(found))

    def forms(self, folder: Path, found: Found) -> Forms:
        """Return the report in all forms that are kept beside the run."""
        from uncork.report.write.html import html_page  # noqa: PLC0415 -- what draws charts takes long to load

        return Forms(html_page(self.document(folder, found)), self.text(found), self.json(found))


_ROWS: Final = {
    "experiment": "experiments",
    "load": "loads",
    "sweep": "sweeps",
    "log": "logs",
    "database": "databases",
    "cpu": "stacks",
    "import": "imports",
    "guard": "guards",
}


def kind_of(folder: Path) -> Kind[Any]:
    """Return the row of a stored run: that of guards, too, for an experiment that a guard measured.

    Raises:
        StoreError: if the run is damaged, or of a kind that this uncork does not know.
    """
    kind = read_manifest(folder).kind
    if kind not in _ROWS:
        raise StoreError(f"{folder}: a run of kind {kind} is not known to this uncork; update it")
    return kind_named("guard" if kind == "experiment" and read_guard(folder) is not None else kind)


def kind_named(name: str) -> Kind[Any]:
    """Return the row of a kind of run; raises KeyError if there is none."""
    return cast("Kind[Any]", import_module(f"uncork.workbench.documents.{_ROWS[name]}").KIND)
