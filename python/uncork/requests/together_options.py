"""The options of `uncork load together`: several loads that start at the same instant. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from uncork.errors import UsageError
from uncork.model.load import LoadPart
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob
from uncork.requests.load_options import OUTPUT, SWEEP, WATCH, WHAT, AsJson, Html, RunsOutput
from uncork.requests.option import names_given, opt, options_of
from uncork.requests.part import PART
from uncork.requests.sql_options import SqlOptions

Job = TypeVar("Job", LoadJob, HttpJob)

_LEAST: Final = 2
_OF_THE_RUN: Final = (
    *("progress", "progress_timestamp", "per_command", "as_json", "go_bench", "html", "hdr_log"),
    *("show_script", "initialise", "write_requests"),
)
"""Options of a load that its run has, not the load; and options with which nothing is sent."""
_WATCHED: Final = ("service_pid", "postgres")
"""Options of what to watch that a load which starts with others has too."""


_what, _output = (partial(opt, panel=panel) for panel in (WHAT, OUTPUT))


@dataclass(frozen=True, slots=True)
class TogetherOptions:
    """Load-test a server and a service at once, in one run with one report and one clock.

    Each load has the options of its own command, in quotes. All start at the same instant, on one monotonic
    clock, after every load has connected and warmed up. The run is stored; `uncork report` shows it again.
    """

    sql: list[str] | None = _what(
        "--sql OPTIONS",
        'Add a load by SQL with these options of uncork load sql, in quotes, such as "-c 8 -T 60 bench".',
    )
    http: list[str] | None = _what(
        "--http OPTIONS",
        'Add a load by HTTP with these options of uncork load http, in quotes, such as "-D 60 http://127.0.0.1/".',
    )
    progress: int | None = _output(
        "-P, --progress SECONDS", "Report the progress of each load every SECONDS seconds."
    )
    as_json: AsJson = False
    html: Html = None
    runs: RunsOutput = DEFAULT_RUNS


def check_together(options: SqlOptions | HttpOptions, verb: str) -> None:
    """Raise UsageError if the options of one load cannot be used for loads that start together.

    `verb` is the option that holds them, such as ``--sql``.
    """
    for name in names_given(options, (SWEEP, PART, WATCH), _WATCHED):
        raise UsageError(f"{verb}: {name} cannot be used for loads that start together; leave it out")
    for option in options_of(type(options)):
        if option.field in _OF_THE_RUN and getattr(options, option.field) != option.default:
            raise UsageError(
                f"{verb}: {option.name} is not an option of one load here; give it before {verb} if "
                "`uncork load together` has it, or leave it out"
            )


def together_job(job: Job, progress_s: int | None) -> Job:
    """Return the job of a load that starts at the instant that its run gives."""
    return replace(job, spec=replace(job.spec, part=LoadPart(), progress_s=progress_s))


def named_loads(jobs: Sequence[AnyLoad]) -> Mapping[str, AnyLoad]:
    """Return the loads by name: ``sql`` and ``http``, numbered if there are several of a kind.

    Raises UsageError if there is only one.
    """
    if len(jobs) < _LEAST:
        raise UsageError(
            "load together needs two loads: --sql OPTIONS and --http OPTIONS, or one of them twice; a single "
            "load is `uncork load sql` or `uncork load http`"
        )
    kinds = ["sql" if isinstance(job, LoadJob) else "http" for job in jobs]
    counts, seen, names = Counter(kinds), Counter[str](), []
    for kind in kinds:
        seen[kind] += 1
        names.append(kind if counts[kind] == 1 else f"{kind}-{seen[kind]}")
    return dict(zip(names, jobs, strict=True))
