"""Show on a small shop how uncork finds and proves a change: `uncork demo`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from uncork.cli import console
from uncork.cli.next_step import next_command, serve_command
from uncork.cli.pages import check_page, report
from uncork.cli.stored_command import redacted_command
from uncork.errors import RunError
from uncork.model.results.cure import CureResult
from uncork.model.units import format_count
from uncork.report.blocks import Step
from uncork.report.cure.answer import proven_change
from uncork.report.cure.document import render_cure_short
from uncork.report.write.terminal_text import write_steps
from uncork.requests.jobs import CureJob
from uncork.requests.option import from_values
from uncork.requests.profile_options import CureOptions, DemoOptions
from uncork.workbench.cure.curing import cure
from uncork.workbench.cure.demo import COPY_SETTINGS, CUSTOMERS, LINES, ORDERS, RATE, Shop, open_shop
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.profile.databases import record_database

_WATCH_S: Final = 13.0
_MARGIN_S: Final = 1.0
"""How long the traffic lasts before and after the watch."""
_RATE_HZ: Final = 20.0


def demo(options: DemoOptions) -> None:
    """Run the shop, watch it, prove the changes on a copy, and show what to type next."""
    check_page(options.html)
    told = (lambda _: None) if options.quiet else console.note
    told("starting a temporary PostgreSQL with a small shop; Ctrl-C ends the demo and removes the server")
    with open_shop() as shop:
        told(
            f"the shop has {format_count(CUSTOMERS)} customers, {format_count(ORDERS)} orders and "
            f"{format_count(LINES)} order lines; its programs send {RATE:g} transactions a second"
        )
        watched = _watch(options.runs, shop, told)
        seconds = options.budget / 1e9
        told(f"copying the database and measuring changes on the copy, for about {seconds:.0f} s")
        defaults = from_values(CureOptions, {})
        job = CureJob(
            watched=watched,
            source=shop.address.conninfo(),
            command=redacted_command(sys.argv[1:]),
            budget_s=seconds,
            disk=defaults.disk,
            max_read=defaults.max_read,
            settings=COPY_SETTINGS,
        )
        folder, result, trouble = cure(options.runs, job, told)
    report(kind_named("cure"), folder, result, "terminal", options.html, terminal=render_cure_short)
    console.end_early(result.status, trouble, "what was found until then is kept")
    told("the shop's server is removed, so the page's commands that name it are only examples")
    console.output.print()
    write_steps(console.output, _steps(result, options))


def _watch(runs: Path, shop: Shop, told: Callable[[str], None]) -> Path:
    told(f"the shop is slow, and the cause is not known yet; watching its server for {_WATCH_S:g} s")
    with shop.traffic(_WATCH_S + 2 * _MARGIN_S):
        seen = record_database(
            runs,
            shop.address,
            seconds=_WATCH_S,
            rate_hz=_RATE_HZ,
            command=redacted_command(sys.argv[1:]),
        )
        if seen.status == "interrupted":
            raise KeyboardInterrupt
    if seen.trouble:
        raise RunError(f"the watch ended early: {seen.trouble}")
    return seen.folder


def _steps(result: CureResult, options: DemoOptions) -> tuple[Step, ...]:
    """Return the commands to type next; first a longer demo, if this one proved nothing."""
    again = Step(
        "Nothing was proven: this machine was too busy to decide in that time. Give the demo more time:",
        next_command("demo", "--budget", "5min"),
    )
    own = (
        Step(
            "Find and prove changes for your own database (uncork only reads it):",
            next_command("cure", "host=... dbname=..."),
        ),
        Step("See all reports in a browser:", serve_command(options.runs)),
    )
    return own if proven_change(result) is not None else (again, *own)
