"""Guard a stored experiment: compare its effects, costs and plans with those of earlier comparable runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path

from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import Place
from uncork.errors import UsageError
from uncork.experiment.plan.order import cells
from uncork.experiment.spec.gates import default_gates, gate_workloads, parse_gate
from uncork.experiment.spec.guard import check_gates
from uncork.experiment.spec.schema import Spec
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import Gate, metric_of
from uncork.model.trial import Cell
from uncork.requests.guard import GuardRequest, Tell
from uncork.requests.source import Options, run_source
from uncork.store.query import RunReader
from uncork.workbench.experiment.session import new_run
from uncork.workbench.guard.gate_figures import FIGURES
from uncork.workbench.guard.question import Question, drawn_seed, known_of


def read_experiment(folder: Path, wanted: GuardRequest) -> Question:
    """Read a stored experiment and the request to guard it.

    Each gate applies to each variant except the baseline, in each cell. A gate on the workload's own metric
    compares the effect with earlier effects. A gate on costs or plans compares them with earlier ones.

    Raises:
        UsageError: if the request does not fit the experiment.
        StoreError: if the run is damaged.
    """
    for side in (wanted.baseline, wanted.candidate):
        if side.says or wanted.same:
            raise UsageError(
                f"--{side.role}: a stored experiment is compared with its comparable runs; guard its file to "
                "compare two sides"
            )
    for option, given in {"--url": wanted.url, "--header": wanted.headers}.items():
        if given:
            raise UsageError(f"{option} is for stored loads; {folder.name} is an experiment")
    if wanted.stored and wanted.times > 1:
        raise UsageError("--stored measures nothing: leave out --times")
    with closing(RunReader(folder)) as reader:
        spec, name = run_source(reader).spec, reader.manifest.name
    gates = tuple(dict.fromkeys((*map(parse_gate, wanted.gates), *spec.guard.parsed)))
    for message in check_gates(spec, gates):
        raise UsageError(message)
    places = tuple(place for gate in gates or default_gates(spec) for place in _places(gate, spec))
    return Question(folder, run_figures(folder), name, places, wanted, drawn_seed(wanted), known_of(wanted))


def measure_experiment(root: Path, question: Question, notify: Tell) -> Callable[[], list[RunFigures]]:
    """Return a function that measures the experiment again, as often as requested, with new seeds.

    Raises:
        UsageError: if it was measured on an existing server, and the request names none.
    """
    wanted = question.wanted
    with closing(RunReader(question.folder)) as reader:
        if reader.manifest.server.startswith("existing") and wanted.choice.dsn is None:
            raise UsageError(
                f"run {reader.manifest.id} was measured on {reader.manifest.server}; name that server with "
                "--dsn"
            )
    seeds = iter(range(question.seed, question.seed + 1_000))

    def once() -> RunFigures:
        given = wanted.options
        changes = Options(budget_ns=given.budget_ns, precision=given.precision, seed=next(seeds))
        with closing(RunReader(question.folder)) as reader:
            source = run_source(reader, changes)
        session = new_run(root, source, wanted.choice)
        notify(f"run {session.folder.name}")
        for _ in session.events():
            pass
        return run_figures(session.folder)

    return lambda: [once() for _ in range(wanted.times)]


def _places(gate: Gate, spec: Spec) -> Iterator[Place]:
    """Yield each place where a gate applies: every compared variant in every cell."""
    metric = metric_of(gate)
    if metric.source == "size":
        others = [name for name in spec.variants if name != spec.baseline]
        for cell, variant in product(cells(spec), others):
            find = partial(_size, f"{variant}{cell.at}")
            levels = (("variant", variant), *cell.levels)
            yield Place(gate, find, "the sizes of its tables and indexes are not stored", "", levels)
    for workload in gate_workloads(gate, spec):
        own = spec.workloads[workload].metric == gate.metric
        for cell in cells(spec):
            for variant in spec.compared(workload):
                if variant == spec.baseline:
                    continue
                subject = f"{variant} on {workload}{cell.at}"
                levels = (("variant", variant), *cell.levels)
                if metric.source == "plan":
                    yield Place(gate, _nothing, "", workload, levels, partial(_shapes, subject))
                    continue
                names = (metric.title,) if metric.source == "own" else FIGURES.get(gate.metric, ())
                names = (f"against {spec.baseline}",) if own else names
                missing = _missing(gate, spec, workload, cell)
                yield Place(gate, partial(_figure, subject, names), missing, workload, levels)


def _figure(subject: str, names: tuple[str, ...], run: RunFigures) -> Figure | None:
    found = (run.figure((subject, name)) for name in names)
    # A metric of the file can be 0 or less, which has no ratio to the past.
    return next(
        (figure for figure in found if figure is not None and (figure.scale != "ratio" or figure.value > 0)),
        None,
    )


def _size(subject: str, run: RunFigures) -> Figure | None:
    """Return the total size of a variant's tables and indexes."""
    found = [
        figure for figure in run.figures if figure.subject == subject and figure.name.startswith("size of ")
    ]
    total = sum(figure.value for figure in found)
    return Figure(subject, "size", total, "B", "lower", "exact") if found else None


def _shapes(subject: str, run: RunFigures) -> str | None:
    """Return the plans of a variant's statements as one text."""
    found = [f"{plan.statement}\n{plan.shape}" for plan in run.plans if plan.subject == subject]
    return "\n".join(found) if found else None


def _nothing(run: RunFigures) -> Figure | None:
    return None


def _missing(gate: Gate, spec: Spec, workload: str, cell: Cell) -> str:
    title, own = metric_of(gate).title, spec.workloads[workload].metric
    if gate.metric in FIGURES and metric_of(gate).source in ("latency", "rate"):
        return f"the workload is compared by {GATE_METRICS[own].title}, so no effect on {title} is stored"
    above = " above 0" if metric_of(gate).source == "own" else ""
    return f"a stored experiment holds no {title}{above} for it{cell.at}"
