"""Write what a run says beside it: as a page, as Markdown and as JSON."""

from __future__ import annotations

from pathlib import Path

from uncork.cli import console
from uncork.errors import UsageError

__all__ = ["check_page", "write_pages"]


def check_page(page: Path | None) -> None:
    """Refuse a file that could not be written, before anything is done for it; raises UsageError."""
    if page is not None and not page.absolute().parent.is_dir():
        raise UsageError(f"cannot write {page}: there is no folder {page.absolute().parent}")


def write_pages(
    folder: Path,
    page: Path | None,
    *,
    html: str,
    markdown: str,
    json: str,
    names: tuple[str, str] = ("report", "result"),
    tell: bool,
) -> None:
    """Write three forms of a report into a run's folder, the page elsewhere if `page` says so.

    `names` are those of the report and of the JSON document; `tell` says in the terminal where the page is.

    Raises:
        StoreError: if one of them cannot be written.
    """
    from uncork.store.layout import write_atomically  # noqa: PLC0415 -- keeps `uncork --help` fast

    report, document = names
    place = page or folder / f"{report}.html"
    write_atomically(folder / f"{document}.json", json)
    write_atomically(folder / f"{report}.md", markdown)
    write_atomically(place, html)
    if tell:
        console.output.print(f"\nreport: {place.resolve()}", soft_wrap=True)
