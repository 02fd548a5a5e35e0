"""The metrics of a stored run, for comparisons and histories.

The code that reads a kind of run is loaded when a run of that kind is read: loading all kinds takes longer
than reading one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from uncork.errors import UncorkError, UsageError
from uncork.model.records import build_from
from uncork.model.results.figure import Figure, PlanShape, RunFigures
from uncork.store.figures import recall_figures, remember_figures
from uncork.store.layout import Manifest, part_of, read_manifest

if TYPE_CHECKING:
    from uncork.model.results.database import DatabaseResult, TemplateActivity
    from uncork.model.results.log import LogResult

_MOST_TEMPLATES: Final = 20
MEAN: Final = "mean"
ROWS: Final = "rows each"
_COMPLETE: Final = "complete"
ASKED_FILES: Final = ("plan.json", "sweep.json", "experiment.toml", "files")
"""The files of a run that say what it was asked: the only ones fetched of runs at an address that are not
comparable."""
_ASKED: Final[dict[tuple[Path, str], dict[str, str]]] = {}
"""What complete runs were asked, cached because it never changes: a dashboard checks thousands of runs
repeatedly."""
_MOST_ASKED: Final = 1 << 15


def run_figures(folder: Path) -> RunFigures:
    """Read the metrics of a stored run.

    Raises:
        UsageError: if runs of its kind have no metrics.
        StoreError: if its files are damaged, or it has no result.
    """
    manifest = read_manifest(folder)
    if manifest.kind not in _READERS:
        series = ", ".join(FIGURED)
        raise UsageError(
            f"{manifest.id} is a run of kind {manifest.kind}, which has no metrics to compare; "
            f"these kinds have some: {series}"
        )
    read = _READERS[manifest.kind](folder, manifest)
    return build_from(
        RunFigures,
        manifest,
        command=_command(manifest),
        asked=asked_of(folder, manifest),
        environment=read.environment,
        figures=tuple(read.figures),
        plans=read.plans,
        note=read.note,
        more=tuple(read.more),
    )


# ---- kinds ----


class Read(NamedTuple):
    """What was read of a run: see `RunFigures`."""

    figures: Iterable[Figure]
    environment: Mapping[str, Mapping[str, str]] = {}
    plans: tuple[PlanShape, ...] = ()
    note: str = ""
    more: Iterable[Figure] = ()


def _read_load(folder: Path, manifest: Manifest) -> Read:
    from uncork.analysis.load.figures import load_figures  # noqa: PLC0415 -- see the module
    from uncork.analysis.load.result import build_measured_result  # noqa: PLC0415

    load = build_measured_result(folder, manifest)
    return Read(load_figures(load), load.environment)


def _read_together(folder: Path, manifest: Manifest) -> Read:
    """Read the metrics of loads that started together: their subjects begin with the name of the load."""
    figures, environment = [], dict[str, Mapping[str, str]]()
    for name, part in _loads_of(folder, manifest):
        read = _read_load(part, read_manifest(part))
        figures += [replace(figure, subject=f"{name} {figure.subject}".strip()) for figure in read.figures]
        environment = {**read.environment, **environment}
    return Read(figures, environment)


def _loads_of(folder: Path, manifest: Manifest) -> Iterator[tuple[str, Path]]:
    for name in manifest.options.get("loads", ()):
        part = part_of(folder, name)
        if part is not None:
            yield name, part


def _read_experiment(folder: Path, _manifest: Manifest) -> Read:
    from uncork.analysis.experiment.figures import experiment_figures  # noqa: PLC0415 -- see the module
    from uncork.store.query import RunReader  # noqa: PLC0415

    with closing(RunReader(folder)) as reader:
        found, plans = experiment_figures(reader)
        return Read(found, reader.environment(), plans)


def _read_sweep(folder: Path, _manifest: Manifest) -> Read:
    from uncork.analysis.load.figures import sweep_figures  # noqa: PLC0415 -- see the module
    from uncork.analysis.load.sweep import build_sweep_result  # noqa: PLC0415

    swept = build_sweep_result(folder)
    return Read(sweep_figures(swept), swept.environment)


def _read_log(folder: Path, _manifest: Manifest) -> Read:
    from uncork.analysis.log.result import stored_log_result  # noqa: PLC0415 -- see the module

    return Read(_log_figures(stored_log_result(folder)))


def _read_database(folder: Path, _manifest: Manifest) -> Read:
    from uncork.analysis.database.result import stored_database_result  # noqa: PLC0415 -- see the module

    watched = stored_database_result(folder)
    subjects = statement_subjects(watched)
    costliest, more = (
        [figure for activity in some for figure in _statement_figures(activity, watched, subjects)]
        for some in (watched.templates[:_MOST_TEMPLATES], watched.templates[_MOST_TEMPLATES:])
    )
    figures = (*_database_figures(watched), *costliest, *_table_sizes(watched))
    settings = {f"setting {setting.name}": setting.value for setting in watched.settings}
    return Read(figures, {"server": {"version": watched.server_version, **settings}}, more=more)


def _read_cure(folder: Path, _manifest: Manifest) -> Read:
    from uncork.analysis.runs.cure_figures import cure_figures, proven_words  # noqa: PLC0415 -- see the module
    from uncork.store.run_documents import read_cure  # noqa: PLC0415 -- see the module

    cured = read_cure(folder)
    return Read(cure_figures(cured), note=proven_words(cured))


def _read_import(folder: Path, manifest: Manifest) -> Read:
    from uncork.store.imports import read_figures  # noqa: PLC0415 -- see the module

    return Read(read_figures(folder), dict(manifest.options.get("environment", {})))


_READERS: Final[dict[str, Callable[[Path, Manifest], Read]]] = {
    "experiment": _read_experiment,
    "load": _read_load,
    "together": _read_together,
    "sweep": _read_sweep,
    "log": _read_log,
    "database": _read_database,
    "import": _read_import,
    "cure": _read_cure,
}
FIGURED: Final = tuple(_READERS)
"""The kinds of run that have metrics."""


def remembered_figures(folder: Path) -> RunFigures:
    """Read the metrics of a stored run, from their cache if possible: comparisons read many runs.

    Raises:
        UsageError, StoreError: as `run_figures`.
    """
    run = recall_figures(folder)
    if run is None:
        run = replace(run_figures(folder), more=())
        if run.status == _COMPLETE:
            remember_figures(folder, run)
    return run


def remember(folder: Path) -> None:
    """Cache the metrics of a run that has just ended, so that no comparison waits for them.

    If this fails, the metrics are read when they are needed, and errors are reported then.
    """
    with contextlib.suppress(UncorkError):
        remembered_figures(folder)


def asked_of(folder: Path, manifest: Manifest) -> dict[str, str]:
    """Return what a run was asked to do, by name: equal in comparable runs.

    Raises:
        StoreError: if its files are damaged.
    """
    if manifest.status != _COMPLETE:
        return _asked_of(folder, manifest)
    key = folder, manifest.started_at
    found = _ASKED.get(key)
    if found is None:
        if len(_ASKED) >= _MOST_ASKED:
            _ASKED.clear()
        found = _ASKED[key] = _asked_of(folder, manifest)
    return found


def _asked_of(folder: Path, manifest: Manifest) -> dict[str, str]:
    if manifest.kind == "load":
        from uncork.analysis.load.figures import asked_of_load  # noqa: PLC0415 -- see the module
        from uncork.store.loads import LoadReader  # noqa: PLC0415

        with closing(LoadReader(folder, manifest, ASKED_FILES)) as reader:
            return asked_of_load(reader.plan())
    if manifest.kind == "together":
        return {
            f"{name}: {key}": value
            for name, part in _loads_of(folder, manifest)
            for key, value in _asked_of(part, read_manifest(part)).items()
        }
    if manifest.kind == "sweep":
        from uncork.analysis.load.figures import asked_of_sweep  # noqa: PLC0415 -- see the module
        from uncork.store.loads import SweepReader  # noqa: PLC0415

        with closing(SweepReader(folder, manifest, ASKED_FILES)) as sweep:
            return asked_of_sweep(sweep.plan(), sweep.sweep())
    if manifest.kind == "experiment":
        from uncork.store.query import RunReader  # noqa: PLC0415 -- see the module

        with closing(RunReader(folder, manifest, ASKED_FILES)) as reader:
            text = reader.specification()
        files = sorted((folder / "files").glob("*"))
        options = {key: manifest.options.get(key) for key in ("levels", "workloads")}
        return {
            "experiment file": _digest(text.encode()),
            "files beside it": _digest(b"\0".join(path.read_bytes() for path in files)) if files else "none",
            "levels and workloads": json.dumps(options, sort_keys=True),
        }
    if manifest.kind == "import":
        return {str(key): str(value) for key, value in manifest.options.get("asked", {}).items()}
    return {"question": manifest.question}


def _command(manifest: Manifest) -> str:
    if manifest.kind == "experiment":
        return f"uncork rerun {manifest.id}"
    return str(manifest.options.get("command", ""))


def _log_figures(result: LogResult) -> Iterator[Figure]:
    if result.first_us is None or result.last_us is None or result.last_us <= result.first_us:
        return
    seconds, found = (result.last_us - result.first_us) / 1e6, result.executions
    if found.count:
        yield Figure("", "executions", found.count / seconds, "/s", "")
        yield Figure("", "mean", found.sum_ns / found.count, "ns", "lower")
        yield Figure("", "time in statements", found.sum_ns / 1e9 / seconds, "", "lower")
    for template in result.templates[:_MOST_TEMPLATES]:
        if template.executions:
            yield Figure(short_text(template.text), "mean", template.mean_ns, "ns", "lower")


def _database_figures(result: DatabaseResult) -> Iterator[Figure]:
    if result.tree.sessions > 0:
        yield Figure("", "busy sessions", result.tree.sessions, "", "lower")
    for node in (node for node in result.tree.children if node.kind == "class" and node.sessions > 0):
        yield Figure("", f"sessions in {node.name}", node.sessions, "", "lower")


def statement_subjects(result: DatabaseResult) -> dict[int, str]:
    """Return the subject of each template's metrics: its text, with a digest if another has the same."""
    cut = Counter(short_text(template.text) for template in result.templates)
    return {
        template.number: short_text(template.text)
        if cut[short_text(template.text)] == 1
        else f"{short_text(template.text)} {_digest(template.text.encode())}"
        for template in result.templates
    }


def _statement_figures(
    template_activity: TemplateActivity, result: DatabaseResult, subjects: Mapping[int, str]
) -> Iterator[Figure]:
    seconds, facts = (result.watch.ended_us - result.watch.begun_us) / 1e6, template_activity.statements
    if facts is None or not facts.calls or seconds <= 0:
        return
    calls, subject = facts.calls, subjects[template_activity.number]
    yield Figure(subject, "calls", calls / seconds, "/s", "")
    if facts.execution_ns > 0:
        mean = facts.execution_ns / calls
        yield Figure(subject, MEAN, mean, "ns", "lower", count=calls, within=facts.mean_error())
    if facts.rows:
        yield Figure(subject, ROWS, facts.rows / calls, "", "")


def _table_sizes(result: DatabaseResult) -> Iterator[Figure]:
    for table in result.tables:
        if table.bytes:
            yield Figure(table.name, "size of table", table.bytes, "B", "lower", "exact")


def short_text(text: str) -> str:
    """Return a text on one line, shortened, as the subject of a metric."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else f"{flat[:79]}…"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
