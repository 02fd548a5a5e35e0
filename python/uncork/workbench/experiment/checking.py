"""Check what a run would meet, before any server starts: SQL, settings, and an existing server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from uncork.engines.setting_check import SettingChecker, binaries_here
from uncork.errors import UsageError
from uncork.experiment.plan.order import PlanDocument
from uncork.experiment.plan.server_settings import server_settings
from uncork.experiment.run.sent_sql import Form, SentSql, sent_sql
from uncork.experiment.spec.problems import Problem, line_of, refuse
from uncork.experiment.spec.schema import Spec
from uncork.model.engine import POSTGRESQL
from uncork.profile.syntax import GRAMMAR, ParsedSql, parse_sql
from uncork.requests.server import ServerChoice
from uncork.requests.source import Source
from uncork.workbench.experiment.forecasts import plan_with_forecast


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
