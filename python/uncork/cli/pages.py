"""Print a run in one form, and write all forms into its folder: HTML page, Markdown and JSON."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import typer

from uncork.cli import console
from uncork.errors import StoreError, UsageError
from uncork.store.layout import write_atomically

if TYPE_CHECKING:
    from rich.console import Console

    from uncork.report.blocks import Document
    from uncork.workbench.documents.kinds import Kind

Found = TypeVar("Found")

_DENIED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)

Form = Literal["terminal", "json", "markdown"]
BenchForm = Form | Literal["go-bench"]
"""As `Form`, and the format that benchstat reads."""


def check_forms(**requested: bool) -> None:
    """Raise UsageError if two output formats are requested; each is named as its option."""
    chosen = [f"--{name.replace('_', '-')}" for name, is_set in requested.items() if is_set]
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} both print the result: choose one")


def chosen_form(*, as_json: bool, markdown: bool) -> Form:
    """Return the output format; raise UsageError if two are requested."""
    check_forms(json=as_json, markdown=markdown)
    return "json" if as_json else "markdown" if markdown else "terminal"


def check_page(page: Path | None) -> None:
    """Raise UsageError if the folder of an output file does not exist, before any work is done."""
    if page is not None and not page.absolute().parent.is_dir():
        raise UsageError(f"cannot write {page}: there is no folder {page.absolute().parent}")


def write_pages(
    folder: Path,
    page: Path | None,
    *,
    html: str,
    markdown: str,
    json: str | bytes,
    name: str = "",
    tell: bool,
) -> None:
    """Write three forms of a report into a run's folder, and the HTML page to `page` if it is given.

    `name` is the name of the files; by default that of a run's own report. `tell` prints the path
    of the page. Raises StoreError if one of them cannot be written.
    """
    report, document = name or "report", name or "result"
    files: dict[str, str | bytes] = {f"{document}.json": json, f"{report}.md": markdown}
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
    """Print a report in a form, and write all forms into the run's folder (the page to `page`, if given).

    `terminal` replaces the default terminal output of the kind. Without `keep`, files are written
    only with the terminal form, which prints the path of the page, or if `page` is given. Raises
    StoreError if one of them cannot be written.
    """
    json: bytes | None = None
    if form == "terminal":
        (terminal or kind.terminal)(found, console.output)
    elif form == "json":
        json = kind.json_bytes(found)
        typer.echo(json, nl=False)
    elif form == "go-bench":
        from uncork.report.load.gobench import render_go_bench  # noqa: PLC0415 -- only loads have this form

        typer.echo(render_go_bench(kind.result(found)), nl=False)
    else:
        typer.echo(kind.text(found), nl=False)
    if keep or form == "terminal" or page is not None:
        write_forms(kind, folder, found, page, json=json, tell=form == "terminal")


def report_document(
    folder: Path,
    found: Found,
    document: Document,
    form: Form,
    page: Path | None,
    *,
    name: str,
    terminal: Callable[[Found, Console], None],
    brief: Document | None = None,
) -> None:
    """Print what was found of runs in a form, and write all forms beside a run, in files called `name`.

    `brief` is the document for Markdown if it differs. Raises StoreError if a file cannot be
    written.
    """
    from uncork.report.write.html import html_page  # noqa: PLC0415 -- a watch begins without it
    from uncork.report.write.json_document import json_text  # noqa: PLC0415
    from uncork.report.write.markdown import markdown_text  # noqa: PLC0415

    html, text, data = html_page(document), markdown_text(brief or document), json_text(found)
    if form == "terminal":
        terminal(found, console.output)
    else:
        typer.echo(data if form == "json" else text, nl=False)
    tell = form == "terminal"
    write_pages(folder, page, html=html, markdown=text, json=data, name=name, tell=tell)


def write_forms(
    kind: Kind[Found],
    folder: Path,
    found: Found,
    page: Path | None = None,
    *,
    json: bytes | None = None,
    tell: bool = False,
) -> None:
    """Write all forms of a report into the run's folder: see `write_pages`. `json` is its JSON if known."""
    html, markdown, json = kind.forms(folder, found, json)
    write_pages(folder, page, html=html, markdown=markdown, json=json, tell=tell)


def write_beside(folder: Path, files: Mapping[str, str | bytes], html: str, page: Path) -> Path | None:
    """Write files into a run's folder, and the HTML page; return the path of the page.

    If the folder is read-only, write only a page elsewhere; without one, print a note and return
    None. The result is shown either way. Raises StoreError if a file cannot be written for another
    reason, such as a full disk.
    """
    try:
        for name, text in files.items():
            write_atomically(folder / name, text)
    except StoreError as error:
        if getattr(error.__cause__, "errno", None) not in _DENIED:
            raise
        if page.parent == folder:
            console.note(f"{folder} is read-only, so no page is written; --html FILE writes one elsewhere")
            return None
    write_atomically(page, html)
    return page
