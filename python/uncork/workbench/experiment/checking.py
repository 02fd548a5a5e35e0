"""Check what a run would meet, before any server starts: SQL, settings, and an existing server."""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from uncork.engines.setting_check import SettingChecker, binaries_here
from uncork.errors import UncorkError, UsageError
from uncork.experiment.plan.feasibility import LARGE_SETUP
from uncork.experiment.plan.forecast import TYPICAL, Seen
from uncork.experiment.plan.order import PlanDocument, arms, plan_document
from uncork.experiment.plan.server_settings import server_settings
from uncork.experiment.plan.slicing import SLICE_NS
from uncork.experiment.run.sent_sql import Form, SentSql, sent_sql
from uncork.experiment.spec.problems import Problem, line_of, refuse
from uncork.experiment.spec.schema import Spec
from uncork.model.engine import POSTGRESQL
from uncork.model.units import format_duration
from uncork.profile.syntax import GRAMMAR, ParsedSql, parse_sql
from uncork.requests.server import ServerChoice
from uncork.requests.source import Source
from uncork.stats.power import StdDevs, cautious_scatter
from uncork.store.layout import Manifest, list_runs
from uncork.store.query import RunReader


def checked_plan(root: Path, source: Source, choice: ServerChoice, file: str) -> PlanDocument:
    """Check an experiment, and return its plan with the warnings of both.

    For `choice`, `file` and the errors raised, see `check_source`; for `root`, see `plan_with_forecast`.
    """
    warnings = check_source(source, choice, file)
    document = plan_with_forecast(root, source)
    return replace(document, warnings=(*document.warnings, *warnings))


def check_source(source: Source, choice: ServerChoice, file: str) -> tuple[str, ...]:
    """Check the SQL of an experiment, its settings, and an existing server to measure on.

    `file` is the experiment file's name in messages. Nothing is started, fetched or changed.

    Returns:
        Warnings: what could not be checked, and variants that a run would skip.

    Raises:
        SpecError: with every problem, one per line.
        UsageError, SetupError, ConnectError: if the existing server cannot be used, as `run` does.
    """
    spec = source.spec
    if POSTGRESQL not in spec.engines:
        if choice.dsn is not None:
            raise UsageError("--dsn: no variant of this experiment runs on PostgreSQL")
        return ()
    found: list[Problem] = []
    if choice.dsn is None:
        version, warnings = _check_embedded(spec, choice, found)
    else:
        version, warnings = _check_existing(spec, choice, found)
    if version is not None and version > GRAMMAR:
        warnings.append(
            f"the server runs PostgreSQL {version}, which is newer than uncork's grammar ({GRAMMAR}), so the "
            "SQL was not checked"
        )
    else:
        found += sql_problems(spec, file, source.text)
    refuse(found, file, source.text)
    return tuple(warnings)


# ---- SQL ----


def sql_problems(spec: Spec, file: str, content: str) -> list[Problem]:
    """Return a problem for each text that PostgreSQL's grammar rejects, or that cannot run where it stands.

    A mistake that several variants share is reported once.
    """
    found: dict[tuple[tuple[str, ...], int, str], Problem] = {}
    for sql in sent_sql(spec):
        parsed = parse_sql(sql.sent)
        reason = parsed.error or _misfit(sql.form, parsed)
        if reason is None:
            continue
        place = _place(spec, sql, parsed, file, content)
        shown = _line(sql.filled, parsed.line) if parsed.error else ""
        message = f"{reason}{': ' if shown else ''}{shown}{_remedy(sql, parsed, shown)}"
        problem = Problem(place[0], message, *place[1:])
        found.setdefault((problem.key, parsed.line, reason), problem)
    return list(found.values())


def _misfit(form: Form, parsed: ParsedSql) -> str | None:
    """Return why statements that the grammar accepts cannot run where they stand; None if they can."""
    statements = parsed.statements
    if not statements:
        return None if form is Form.SCRIPT else "has no statement, only comments; add SQL"
    if form is Form.STATEMENT and len(statements) > 1:
        return (
            f'has {len(statements)} statements in one text, which only protocol = "simple" can send; '
            'write a list: sql = ["...", "..."]'
        )
    if form is Form.QUERY and not statements[-1].returns:
        return "does not return rows; write a query, such as SELECT"
    if any(statement.copies for statement in statements):
        return "COPY from or to the client does not work here; use INSERT, or COPY with a file on the server"
    alone = next((statement.alone for statement in statements if statement.alone), None)
    if alone is not None and len(statements) > 1:
        remedy = _INSTEAD.get(alone, "")
        return f"{alone} cannot run together with other statements, which are one transaction{remedy}"
    return None


_INSTEAD = {
    "VACUUM": "; leave it out, because uncork vacuums and analyses the data after the set-up",
    "CREATE INDEX CONCURRENTLY": "; write CREATE INDEX without CONCURRENTLY",
    "DROP INDEX CONCURRENTLY": "; write DROP INDEX without CONCURRENTLY",
    "REINDEX CONCURRENTLY": "; write REINDEX without CONCURRENTLY",
    "ALTER SYSTEM": "; write the setting in [server.settings]",
}


def _remedy(sql: SentSql, parsed: ParsedSql, shown: str) -> str:
    if not parsed.error:
        return ""
    if shown.startswith("\\"):
        return "; psql's commands do not work here: write SQL"
    of = "" if shown in sql.written or sql.variant is None else f" of variant {sql.variant}"
    return f"; correct the SQL{of}"


def _place(
    spec: Spec, sql: SentSql, parsed: ParsedSql, file: str, content: str
) -> tuple[tuple[str, ...], str | None, int | None]:
    """Return the key of a mistake, the file with its SQL if that is another one, and its line there.

    If the mistake is in the text of a variant's value, the key is the value's.
    """
    shown = _line(sql.filled, parsed.line)
    values = {} if sql.variant is None else spec.variants[sql.variant].values
    for name, text in values.items():
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if shown and shown not in sql.written and any(shown in line or line in shown for line in lines):
            return ("variants", sql.variant or "", "values", name), None, None
    same = sql.filled.count("\n") == sql.written.count("\n")
    written = _line(sql.written, parsed.line) if same else shown
    if sql.file is not None:
        lines = [line.strip() for line in sql.written.splitlines()]
        number = parsed.line if same else (lines.index(shown) + 1 if shown in lines else 1)
        return sql.key, str(Path(file).parent / sql.file), number
    first = line_of(content, sql.key)
    offset = parsed.line - 1 if same else 0
    lines = content.splitlines()
    for number in (first + offset, first + offset + 1):
        if written and number <= len(lines) and written in lines[number - 1]:
            return sql.key, None, number
    return (
        sql.key,
        None,
        next((n for n in range(first, len(lines) + 1) if written and written in lines[n - 1]), first),
    )


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip().rstrip(";") if number <= len(lines) else ""


# ---- settings, and the server ----


_NOT_DOWNLOADED = "the settings were not checked, because the first run downloads the embedded PostgreSQL"


def _check_embedded(spec: Spec, choice: ServerChoice, found: list[Problem]) -> tuple[int | None, list[str]]:
    binaries = binaries_here(choice.binaries)
    if binaries is None:
        if choice.binaries is not None:
            raise UsageError(
                f"there is no postgres in {choice.binaries}; set --pg-bin to the folder that contains it"
            )
        return GRAMMAR, [_NOT_DOWNLOADED]
    checker = SettingChecker(binaries)
    found += (
        Problem(("server", "settings", name), reason)
        for name, reason in checker.refused(spec.server.settings)
    )
    for variant, settings in _own_settings(spec).items():
        found += (
            Problem(("variants", variant, "settings", name), reason)
            for name, reason in checker.refused(
                settings, of_database=settings.keys() - server_settings(spec, variant).keys()
            )
        )
    return checker.major(), []


def _check_existing(spec: Spec, choice: ServerChoice, found: list[Problem]) -> tuple[int, list[str]]:
    extensions = {
        name: variant.extensions
        for name, variant in spec.variants.items()
        if variant.extensions and spec.engine(name) == POSTGRESQL
    }
    checked = choice.server(spec.server.settings).check(extensions, _own_settings(spec))
    found += (
        Problem(("variants", variant, "settings", name), reason) for variant, name, reason in checked.refused
    )
    warnings = []
    for variant, reason in checked.lacking.items():
        if variant == spec.baseline:
            found.append(Problem(("variants", variant, "extensions"), f"{reason}, and this is the baseline"))
        else:
            warnings.append(f"variant {variant} will be skipped: {reason}")
    return checked.version, warnings


def _own_settings(spec: Spec) -> dict[str, dict[str, object]]:
    """Return the settings of each variant on PostgreSQL that has some."""
    return {
        name: dict(variant.settings)
        for name, variant in spec.variants.items()
        if variant.settings and spec.engine(name) == POSTGRESQL
    }


# ---- plan an experiment with the variation that an earlier stored run of it showed ----


_LEAST_ROUNDS = 3
"""A run with fewer rounds does not show how much rounds vary."""

_COMPLETE = "complete"

Rows = Iterable[Mapping[str, Any]]


def plan_with_forecast(root: Path, source: Source) -> PlanDocument:
    """Plan an experiment; its forecast uses the newest complete run of the same text, except for `[stop]`.

    Damaged and too short runs are ignored.
    """
    if not any(workload.fitted for workload in source.spec.workloads.values()):
        return plan_document(source.spec)
    for manifest in reversed(list(list_runs(root))):
        if not isinstance(manifest, Manifest) or manifest.kind != "experiment":
            continue
        if manifest.status != _COMPLETE or manifest.name != source.spec.experiment.name:
            continue
        try:
            with closing(RunReader(root / manifest.id, manifest)) as reader:
                if not _same(reader, source):
                    continue
                seen = cells_seen(source.spec, reader.figures(), reader.times())
                setup_ns = reader.setup_ns()
        except (UncorkError, OSError, tomllib.TOMLDecodeError):
            continue
        if seen:
            basis = f"the variation and operation times of run {manifest.id}"
            return _with_setup(plan_document(source.spec, seen, basis, setup_ns), manifest.id)
    return plan_document(source.spec)


def _with_setup(document: PlanDocument, run: str) -> PlanDocument:
    """Add a warning to a plan if set-up takes a large part of its budget."""
    if document.setup_ns is None or document.setup_ns < LARGE_SETUP * document.worst_ns:
        return document
    took, budget = map(format_duration, (document.setup_ns, document.worst_ns))
    warning = (
        f"set-up took {took} in run {run}, which leaves little of the budget of {budget}: raise it with "
        "--budget, or measure fewer levels with --set"
    )
    return replace(document, warnings=(*document.warnings, warning))


def _same(reader: RunReader, source: Source) -> bool:
    """Return whether a stored run measured the same experiment, apart from its stopping rule."""
    stored, wanted = tomllib.loads(reader.specification()), tomllib.loads(source.text)
    stored.pop("stop", None)
    wanted.pop("stop", None)
    return stored == wanted and all(reader.read_file(name) == text for name, text in source.files.items())


def cells_seen(spec: Spec, figures: Rows, times: Rows) -> dict[str, list[Seen]]:
    """Return the variation of each fitted workload in each cell of a run, from its stored rows.

    For `figures` and `times`, see `RunReader`.
    """
    means: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in times:
        means[row["cell"], row["workload"], row["variant"]].append(row["mean_ns"])
    blocks: dict[tuple[str, str], dict[tuple[int, int], list[Mapping[str, Any]]]]
    blocks = defaultdict(lambda: defaultdict(list))
    for row in figures:
        if row["value"] is not None and row["value"] > 0.0:
            blocks[row["cell"], row["workload"]][row["round"], row["block"]].append(row)
    found: dict[str, list[Seen]] = defaultdict(list)
    for (cell, workload), trials in sorted(blocks.items()):
        if workload not in spec.workloads or not spec.workloads[workload].fitted:
            continue
        scatters = [
            std_dev
            for variant in spec.compared(workload)
            if variant != spec.baseline and (std_dev := _std_dev(trials, spec.baseline, variant)) is not None
        ]
        times_of = [means.get((cell, workload, arm.variant)) for arm in arms(spec, workload)]
        known = [fmean(values) for values in times_of if values]
        if scatters and known:
            widest = max(scatters, key=lambda scatter: scatter.of_unit(4, 1))
            usual = fmean(known)
            operation_ns = tuple(fmean(values) if values else usual for values in times_of)
            found[workload].append(Seen(operation_ns, widest))
    return dict(found)


def _std_dev(
    blocks: Mapping[tuple[int, int], Sequence[Mapping[str, Any]]], baseline: str, variant: str
) -> StdDevs | None:
    """Estimate the standard deviations of one comparison; None if there are too few rounds.

    A block is stored as one value. The part of its variation that cycles explain is assumed to be typical,
    but at most all of it.
    """
    rounds: dict[int, list[list[float]]] = defaultdict(list)
    cycles = []
    for (number, _), rows in blocks.items():
        logs = {(row["variant"], row["again"]): math.log(row["value"]) for row in rows}
        wanted = [(variant, False), (baseline, False), (baseline, True)]
        if not all(one in logs for one in wanted):
            continue
        above, below, again = (logs[one] for one in wanted)
        rounds[number].append([above - (below + again) / 2.0])
        cycles.append(max(min(row["elapsed_ns"] for row in rows) / SLICE_NS, 1.0))
    if len(rounds) < _LEAST_ROUNDS:
        return None
    seen = cautious_scatter(list(rounds.values()), TYPICAL)
    several = fmean(cycles)
    cycle = min(TYPICAL.cycle, seen.block * math.sqrt(several))
    block = math.sqrt(max(seen.block**2 - cycle**2 / several, 0.0))
    return StdDevs(cycle, block, seen.round)
