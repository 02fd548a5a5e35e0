"""In which form a run is shown, and how all forms of it are written beside it: page, Markdown and JSON."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import typer

from uncork.cli import console
from uncork.errors import StoreError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from uncork.workbench.documents.kinds import Kind

__all__ = [
    "BenchForm",
    "Form",
    "check_forms",
    "check_page",
    "chosen_form",
    "report",
    "write_beside",
    "write_forms",
    "write_pages",
]

Found = TypeVar("Found")

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


def report(
    kind: Kind[Found],
    folder: Path,
    found: Found,
    form: BenchForm,
    page: Path | None,
    *,
    terminal: Callable[[Found, Console], None] | None = None,
    keep: bool = True,
) -> None:
    """Print a report in a form, and write all forms of it beside its run (the page to `page`, if named).

    `terminal` prints it otherwise than its kind does by default. Without `keep`, files are written only with
    the form of the terminal, which says where the page is, or where `page` is named.

    Raises:
        StoreError: if one of them cannot be written.
    """
    if form == "terminal":
        (terminal or kind.terminal)(found, console.output)
    elif form == "go-bench":
        from uncork.report.load.gobench import render_go_bench  # noqa: PLC0415 -- only for this form

        typer.echo(render_go_bench(kind.result(found)), nl=False)
    else:
        typer.echo(kind.json(found) if form == "json" else kind.text(found), nl=False)
    if keep or form == "terminal" or page is not None:
        write_forms(kind, folder, found, page, tell=form == "terminal")


def write_forms(
    kind: Kind[Found], folder: Path, found: Found, page: Path | None = None, *, tell: bool = False
) -> None:
    """Write all forms of a report beside its run: see `write_pages`."""
    html, markdown, json = kind.forms(folder, found)
    write_pages(folder, page, html=html, markdown=markdown, json=json, tell=tell)


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
