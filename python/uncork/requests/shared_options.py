"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from uncork.requests.option import Opt

__all__ = ["RUNS_HELP", "AsJson", "Full", "Html", "Markdown", "Quiet", "Runs", "Top"]

RUNS_HELP: Final = "Where runs are stored: a folder, or an address such as s3://BUCKET/PREFIX."

Runs = Annotated[Path, Opt("--runs DIR", RUNS_HELP, envvar="UNCORK_RUNS", show_default=True)]
AsJson = Annotated[bool, Opt("--json", "Print JSON.")]
Markdown = Annotated[bool, Opt("--markdown", "Print Markdown.")]
Html = Annotated[Path | None, Opt("--html FILE", "Write the HTML report to FILE.")]
Top = Annotated[int, Opt("--top N", "Number of templates to show in the terminal. Default: 10.")]
Full = Annotated[bool, Opt("--full", "Show all tables in the terminal.")]
Quiet = Annotated[bool, Opt("-q, --quiet", "Do not report progress.")]
