"""In which form a run is shown, and how all forms of it are written beside it: page, Markdown and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from uncork.cli import console
from uncork.errors import UsageError

__all__ = ["BenchForm", "Form", "check_forms", "check_page", "chosen_form", "write_pages"]

Form = Literal["terminal", "json", "markdown"]
BenchForm = Form | Literal["go-bench"]
"""As `Form`, where there are figures that benchstat reads."""


def check_forms(**wanted: bool) -> None:
    """Refuse two forms of what is printed, each named as its option; raises UsageError."""
    chosen = [f"--{name.replace('_', '-')}" for name, is_wanted in wanted.items() if is_wanted]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} both print the result: choose one")


def chosen_form(*, as_json: bool, markdown: bool) -> Form:
    """Return in which form a run is shown; raises UsageError if two are asked for."""
    check_forms(json=as_json, markdown=markdown)
    return "json" if as_json else "markdown" if markdown else "terminal"


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
