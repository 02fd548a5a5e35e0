"""Sweep a load over levels: what is asked for, and what is shown of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import write_pages
from uncork.errors import UsageError
from uncork.model.load import LoadSpec
from uncork.model.sweep import SweepAxis, SweepSpec, Visit, parse_objectives
from uncork.model.units import format_duration, parse_duration

if TYPE_CHECKING:
    from uncork.cli.load import LoadForm
    from uncork.cli.load_options import Asked
    from uncork.model.sweep_result import SweepResult
    from uncork.workbench.loads import LoadJob
    from uncork.workbench.sweeps import SweepWanted

__all__ = ["report_sweep", "sweep_load", "sweep_wanted"]

_VISIT_NS: Final = 2_000_000_000
_SHORTEST_NS: Final = 200_000_000
_BUDGET_NS: Final = 180_000_000_000
_MOST_CLIENTS: Final = 512
_MOST_RATE: Final = 10_000_000.0


def sweep_wanted(asked: Asked, spec: LoadSpec) -> SweepWanted | None:
    """Return the sweep that the words ask for; None if they ask for none. Pure.

    ``-c`` and ``-R`` are where it begins, ``-T`` is how long a visit lasts.

    Raises:
        UsageError: if something cannot be understood, or contradicts something else.
    """
    from uncork.workbench.sweeps import SweepWanted  # noqa: PLC0415 -- keeps `uncork --help` fast

    if asked.sweep is None:
        for option, value in (
            ("--objective", asked.objective),
            ("--to", asked.to),
            ("--budget", asked.budget),
        ):
            if value is not None:
                raise UsageError(f"{option} belongs to a sweep: add --sweep clients or --sweep rate")
        return None
    axis: SweepAxis
    if asked.sweep == "clients":
        axis = "clients"
    elif asked.sweep == "rate":
        axis = "rate"
    else:
        raise UsageError(f'--sweep "{asked.sweep}": what is raised is clients or rate')
    for option, wrong in (
        ("-t/--transactions", asked.transactions is not None),
        ("-R/--rate", axis == "clients" and (asked.rate is not None or asked.arrivals is not None)),
        ("-l/--log", asked.log),
        ("--hdr-log", asked.hdr_log is not None),
        ("--go-bench", asked.go_bench),
        ("-P/--progress", asked.progress is not None),
        ("--arrivals trace", spec.arrivals is not None and spec.arrivals.kind == "trace"),
    ):
        if wrong:
            raise UsageError(f"{option} does not go with --sweep {axis}: leave it out")
    start = (
        float(spec.clients) if axis == "clients" else None if spec.arrivals is None else spec.arrivals.rate
    )
    end = _end(asked.to, axis)
    if start is not None and start >= end:
        raise UsageError(f"the sweep ends at {end:g} (--to), which is not above its beginning, {start:g}")
    try:
        objectives = () if asked.objective is None else parse_objectives(asked.objective)
    except ValueError as error:
        raise UsageError(f"--objective: {error}") from error
    try:
        budget = _BUDGET_NS if asked.budget is None else parse_duration(asked.budget)
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from error
    visit = _VISIT_NS if asked.time is None else spec.duration_ns or _VISIT_NS
    if visit < _SHORTEST_NS:
        raise UsageError(f"-T: a visit must last {format_duration(_SHORTEST_NS)} at least")
    sweep = SweepSpec(axis, start or 1.0, end, visit, budget, objectives, seed=spec.seed)
    return SweepWanted(sweep, start)


def _end(text: str | None, axis: SweepAxis) -> float:
    if text is None:
        return float(_MOST_CLIENTS) if axis == "clients" else _MOST_RATE
    try:
        end = float(int(text)) if axis == "clients" else float(text)
    except ValueError as error:
        raise UsageError(f'--to "{text}": give a {"whole " if axis == "clients" else ""}number') from error
    if not 1 <= end <= _MOST_RATE:
        raise UsageError(f"--to {text} must lie between 1 and {_MOST_RATE:.0f}")
    return end


def sweep_load(job: LoadJob, wanted: SweepWanted, asked: Asked, runs: Path) -> None:
    """Sweep, show what came of it, and end with the status that says whether all went well."""
    from uncork.workbench.sweep_results import build_sweep_result  # noqa: PLC0415
    from uncork.workbench.sweeps import new_sweep  # noqa: PLC0415

    session = new_sweep(runs, job, wanted)
    console.note(f"run {session.folder.name}")
    status = session.sweep(lambda visit: console.note(_visit_line(visit, wanted.spec)), console.note)
    if not (session.folder / "sweep_visits").is_dir():
        raise typer.Exit(ExitStatus.INTERRUPTED)
    result = build_sweep_result(session.folder)
    form: LoadForm = "json" if asked.as_json else "terminal"
    _show(result, form)
    _write(session.folder, result, form, asked.html)
    if status == "interrupted":
        console.note("interrupted; what was measured until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if not any(level.works for level in result.levels):
        raise typer.Exit(ExitStatus.RUN_ERROR)


def report_sweep(folder: Path, form: LoadForm, *, html: Path | None) -> None:
    """Report a stored sweep again.

    Raises:
        StoreError: if it is damaged, has no result, or something cannot be written.
    """
    from uncork.workbench.sweep_results import build_sweep_result  # noqa: PLC0415

    result = build_sweep_result(folder)
    _show(result, form)
    if form == "terminal" or html is not None:
        _write(folder, result, form, html)


def _show(result: SweepResult, form: LoadForm) -> None:
    from uncork.report import sweep_writers as writers  # noqa: PLC0415

    if form == "terminal":
        writers.render_sweep_terminal(result, console.output)
        return
    render = writers.render_sweep_markdown if form == "markdown" else writers.render_sweep_json
    typer.echo(render(result), nl=False)


def _write(folder: Path, result: SweepResult, form: LoadForm, html: Path | None) -> None:
    from uncork.report import sweep_writers as writers  # noqa: PLC0415

    write_pages(
        folder,
        html,
        html=writers.render_sweep_html(result),
        markdown=writers.render_sweep_markdown(result),
        json=writers.render_sweep_json(result),
        tell=form == "terminal",
    )


def _visit_line(visit: Visit, spec: SweepSpec) -> str:
    """Return what a visit saw in one line."""
    phase = f"round {visit.round}" if visit.round else "exploring"
    noun = "a second" if spec.axis == "rate" else "client" if visit.level == 1 else "clients"
    level = f"{visit.level:g} {noun}"
    p99 = "" if visit.p99_ns is None else f", p99 {format_duration(visit.p99_ns)}"
    wrong = f", {visit.wrong} went wrong" if visit.wrong else ""
    return f"{phase}, {level}: {visit.throughput:.1f} tps{p99}{wrong}"
