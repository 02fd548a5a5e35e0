"""In which form a run is shown, and how all forms of it are written beside it: page, Markdown and JSON."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from uncork.cli import console
from uncork.errors import StoreError, UsageError

__all__ = ["BenchForm", "Form", "check_forms", "check_page", "chosen_form", "write_beside", "write_pages"]

_DENIED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)

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
    report, document = names
    files = {f"{document}.json": json, f"{report}.md": markdown}
    place = write_beside(folder, files, html, page or folder / f"{report}.html")
    if tell and place is not None:
        console.output.print(f"\nreport: {place.resolve()}", soft_wrap=True)


def write_beside(folder: Path, files: Mapping[str, str], html: str, page: Path) -> Path | None:
    """Write files into a run's folder, and the page; return where that is.

    A run of others may only be read: then a page elsewhere is all that is written, and without one None is
    returned, after saying so. What was measured is shown all the same.

    Raises:
        StoreError: if something else is wrong with the place, such as a full disk.
    """
    from uncork.store.layout import write_atomically  # noqa: PLC0415 -- keeps `uncork --help` fast

    try:
        for name, text in files.items():
            write_atomically(folder / name, text)
    except StoreError as error:
        if getattr(error.__cause__, "errno", None) not in _DENIED:
            raise
        if page.parent == folder:
            console.note(
                f"{folder} may only be read, so no page is written; --html FILE writes one elsewhere"
            )
            return None
    write_atomically(page, html)
    return page
