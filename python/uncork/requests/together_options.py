"""The options of `uncork load together`: several loads that start at the same instant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.load_options import OUTPUT, WHAT, AsJson, Html, RunsOutput
from uncork.requests.option import opt

__all__ = ["TogetherOptions"]

_what, _output = (partial(opt, panel=panel) for panel in (WHAT, OUTPUT))


@dataclass(frozen=True, slots=True)
class TogetherOptions:
    """Load-test a server and a service at once, in one run with one report and one clock.

    Each load has the options of its own command, in quotes. All start at the same instant, on one monotonic
    clock, after every load has connected and warmed up. The run is stored; `uncork report` shows it again.
    """

    sql: list[str] | None = _what(
        "--sql OPTIONS", 'Add a load by SQL, with the options of uncork load sql: --sql "-c 8 -T 60 bench".'
    )
    http: list[str] | None = _what(
        "--http OPTIONS",
        'Add a load by HTTP, with the options of uncork load http: --http "-c 6 -D 60 http://127.0.0.1:8080/".',
    )
    progress: int | None = _output(
        "-P, --progress SECONDS", "Report the progress of each load every SECONDS seconds."
    )
    as_json: AsJson = False
    html: Html = None
    runs: RunsOutput = DEFAULT_RUNS
