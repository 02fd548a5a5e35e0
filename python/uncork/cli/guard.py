"""Guard against regressions: `uncork guard`."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.run import run_session
from uncork.errors import StoreError
from uncork.model.evidence import EvidenceKind

if TYPE_CHECKING:
    from uncork.model.results.guard import GuardResult

__all__ = ["register"]

_SIDE = "variant=, commit=, dsn=, setting=NAME:VALUE, value=NAME:VALUE, env=SERVICE.NAME:VALUE, image=, url="


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("guard", epilog=examples_of("guard"))(guard)


def guard(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|RUN", help="An experiment file (TOML), or a stored load.", show_default=False
        ),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option("--candidate", metavar="KIND=...", help=f"What the candidate is; repeatable: {_SIDE}"),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option("--baseline", metavar="KIND=...", help="What the baseline is, likewise."),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            metavar="GATE",
            help='A demand on the candidate, such as "p99 < +5%", "queries a request <= baseline", "plan '
            'unchanged"; repeatable, besides those of the file.',
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="The variant that both sides are; the baseline if absent.",
        ),
    ] = None,
    workload: options.Workloads = None,
    levels: options.Levels = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Longest that each of the two measurements may take; the file's, or 5min.",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            metavar="PERCENT",
            help="Give a gate up that is not decided when its interval is this narrow.",
        ),
    ] = None,
    seed: options.Seed = None,
    acknowledged: Annotated[
        Path | None,
        typer.Option("--acknowledged", metavar="FILE", help="The file of known changes."),
    ] = None,
    confirm: Annotated[
        bool,
        typer.Option("--confirm/--no-confirm", help="Measure what is broken once more before alarming."),
    ] = True,
    evidence: Annotated[
        str | None,
        typer.Option(
            "--evidence",
            metavar="KIND[,KIND...]",
            help=f"What to gather of both sides afterwards: {', '.join(get_args(EvidenceKind))}.",
        ),
    ] = None,
    same: Annotated[
        bool, typer.Option("--same", help="Guard though both sides are the same: tests the guard itself.")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="RUN", help="Go on with a guard that was interrupted: its run's id, or last."
        ),
    ] = None,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Of a stored load: judge it as it is, without measuring.")
    ] = False,
    times: Annotated[
        int, typer.Option("--times", min=1, max=100, help="Of a stored load: measure it so often.")
    ] = 1,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Of a stored load by HTTP: send it there.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", metavar="NAME:VALUE", help="Of a stored load by HTTP: a header, such as a secret one."
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Of a stored run: take runs that a guard found broken for its past, too."),
    ] = False,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here, a test case a gate.")
    ] = None,
    gobench: Annotated[
        Path | None, typer.Option("--gobench", metavar="FILE", help="Write what benchstat reads here.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary", metavar="FILE", help="Append Markdown to this file, such as $GITHUB_STEP_SUMMARY."
        ),
    ] = None,
    html: options.Html = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Say whether a candidate is worse than its baseline: two sides, measured side by side, and gates.

    Sides are two commits, settings, values, variants, servers or images of one experiment file; a stored
    load is measured again and compared with runs of before. What is broken is measured once more before it
    alarms. Exits with 0 if all gates are kept, 3 if one is broken, 4 if one is not decided.
    """
    from uncork.experiment.guard.sides import parse_side  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.requests.guard import GuardRequest  # noqa: PLC0415
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415
    from uncork.workbench.guard.guards import carry_out_guard, evidence_kinds, guard_target  # noqa: PLC0415

    for file in (junit, gobench, summary, html):
        check_page(file)
    form = chosen_form(as_json=as_json, markdown=markdown)
    sides = parse_side("baseline", baseline or []), parse_side("candidate", candidate or [])
    wanted = GuardRequest(
        target=guard_target(target, resume),
        baseline=sides[0],
        candidate=sides[1],
        gates=tuple(gate or ()),
        variant=variant,
        options=options.collect(levels, workload, budget, precision, seed),
        choice=options.server(dsn, pg_bin, port),
        acknowledged=acknowledged,
        confirm=confirm,
        evidence=evidence_kinds(evidence),
        same=same,
        words=("uncork", *sys.argv[1:]),
        stored=stored,
        times=times,
        url=url,
        headers=tuple(header or ()),
        everything=everything,
        resume=resume is not None,
    )
    measure = partial(run_session, then="see it with: uncork report")
    result, folder = carry_out_guard(runs, wanted, measure, console.note)
    report(kind_named("guard"), folder, result, form, html)
    _write(folder, result, junit=junit, gobench=gobench, summary=summary)
    if result.status:
        raise typer.Exit(result.status)


def _write(
    folder: Path, result: GuardResult, *, junit: Path | None, gobench: Path | None, summary: Path | None
) -> None:
    from uncork.report.guard.gobench import guard_gobench  # noqa: PLC0415
    from uncork.report.guard.junit import guard_junit  # noqa: PLC0415
    from uncork.report.guard.markdown import guard_markdown  # noqa: PLC0415
    from uncork.store.layout import write_atomically  # noqa: PLC0415
    from uncork.store.query import RunReader  # noqa: PLC0415

    if junit is not None:
        write_atomically(junit, guard_junit(result))
    if gobench is not None:
        environment = {}
        with suppress(StoreError):
            environment = RunReader(folder).environment()
        write_atomically(gobench, guard_gobench(result, environment))
    if summary is not None:
        try:
            with summary.open("a") as file:
                file.write(guard_markdown(result) + "\n")
        except OSError as error:
            raise StoreError(f"cannot write {summary}: {error.strerror}") from error
