"""Sweep a load over levels: what is asked for, and what is shown of it. The same for SQL and HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import write_pages
from uncork.errors import UsageError
from uncork.model.sweep import SweepAxis, SweepSpec, Visit, parse_objectives
from uncork.model.units import format_duration, parse_duration

if TYPE_CHECKING:
    from uncork.cli.load import LoadForm
    from uncork.model.sweep_result import SweepResult
    from uncork.workbench.http_loads import HttpJob
    from uncork.workbench.loads import LoadJob
    from uncork.workbench.sweeps import SweepWanted

__all__ = ["SweepAsked", "report_sweep", "sweep_load", "sweep_wanted"]

_VISIT_NS: Final = 2_000_000_000
_SHORTEST_NS: Final = 200_000_000
_BUDGET_NS: Final = 180_000_000_000
_MOST_RATE: Final = 10_000_000.0
_MOST: Final[dict[SweepAxis, float]] = {"clients": 512.0, "streams": 256.0, "rate": _MOST_RATE}
"""Where a sweep ends that is not told where."""


@dataclass(frozen=True, slots=True)
class SweepAsked:
    """What was typed of a sweep, unread, and what the load says that bears on it.

    `axes` are what can be raised. `starts` are where each begins, None where that is to be found.
    `visit_ns` is how long a visit lasts, None if nothing was said, and `visit_option` says it. `excluded` are
    options that were given and do not go with a sweep.
    """

    sweep: str | None
    to: str | None
    objective: str | None
    budget: str | None
    axes: tuple[SweepAxis, ...]
    starts: dict[SweepAxis, float | None]
    visit_ns: int | None
    visit_option: str
    excluded: tuple[str, ...]
    seed: int


def sweep_wanted(asked: SweepAsked) -> SweepWanted | None:
    """Return the sweep that the words ask for; None if they ask for none. Pure.

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
                choice = " or ".join(f"--sweep {one}" for one in asked.axes)
                raise UsageError(f"{option} belongs to a sweep: add {choice}")
        return None
    axis = next((one for one in asked.axes if one == asked.sweep), None)
    if axis is None:
        choice = f"{', '.join(asked.axes[:-1])} or {asked.axes[-1]}"
        raise UsageError(f'--sweep "{asked.sweep}": what is raised is {choice}')
    for option in asked.excluded:
        raise UsageError(f"{option} does not go with --sweep {axis}: leave it out")
    start, end = asked.starts[axis], _end(asked.to, axis)
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
    visit = _VISIT_NS if asked.visit_ns is None else asked.visit_ns
    if visit < _SHORTEST_NS:
        raise UsageError(f"{asked.visit_option}: a visit must last {format_duration(_SHORTEST_NS)} at least")
    sweep = SweepSpec(axis, start or 1.0, end, visit, budget, objectives, seed=asked.seed)
    return SweepWanted(sweep, start)


def _end(text: str | None, axis: SweepAxis) -> float:
    if text is None:
        return _MOST[axis]
    whole = axis != "rate"
    try:
        end = float(int(text)) if whole else float(text)
    except ValueError as error:
        raise UsageError(f'--to "{text}": give a {"whole " if whole else ""}number') from error
    if not 1 <= end <= _MOST_RATE:
        raise UsageError(f"--to {text} must lie between 1 and {_MOST_RATE:.0f}")
    return end


def sweep_load(
    job: LoadJob | HttpJob, wanted: SweepWanted, runs: Path, *, as_json: bool, html: Path | None
) -> None:
    """Sweep, show what came of it, and end with the status that says whether all went well."""
    from uncork.workbench.sweep_results import build_sweep_result  # noqa: PLC0415
    from uncork.workbench.sweeps import new_sweep  # noqa: PLC0415

    session = new_sweep(runs, job, wanted)
    console.note(f"run {session.folder.name}")
    unit = session.unit
    status = session.sweep(lambda visit: console.note(_visit_line(visit, wanted.spec, unit)), console.note)
    if not (session.folder / "sweep_visits").is_dir():
        raise typer.Exit(ExitStatus.INTERRUPTED)
    result = build_sweep_result(session.folder)
    form: LoadForm = "json" if as_json else "terminal"
    _show(result, form)
    _write(session.folder, result, form, html)
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


def _visit_line(visit: Visit, spec: SweepSpec, unit: str) -> str:
    """Return what a visit saw in one line."""
    phase = f"round {visit.round}" if visit.round else "exploring"
    one = visit.level == 1
    noun = "a second" if spec.axis == "rate" else spec.axis.removesuffix("s" if one else "")
    level = f"{visit.level:g} {noun}"
    p99 = "" if visit.p99_ns is None else f", p99 {format_duration(visit.p99_ns)}"
    wrong = f", {visit.wrong} went wrong" if visit.wrong else ""
    return f"{phase}, {level}: {visit.throughput:.1f} {unit}{p99}{wrong}"
