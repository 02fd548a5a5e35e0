"""What happens before the first timed trial: data, parameters, the same-answer check, plans and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from uncork.errors import LoadError, SetupError
from uncork.experiment.events import Event, Preparing, Refused
from uncork.experiment.ledger import Ledger
from uncork.experiment.plan import arms, cells, texts_for
from uncork.experiment.ports import Load, Server, Sink
from uncork.experiment.request import Pools, answer_request, statements_for
from uncork.experiment.spec import Spec
from uncork.experiment.sqltext import substitute
from uncork.model.measurement import Outcome
from uncork.model.request import LoadRequest
from uncork.model.trial import Arm, Cell

__all__ = ["Preparation"]


class Preparation:
    """Builds the data and finds out what each variant answers, how it is planned and how large it is.

    Afterwards `pools` holds, for each cell, workload and variant, what its parameters are drawn from.
    """

    def __init__(self, spec: Spec, server: Server, load: Load, sink: Sink, ledger: Ledger) -> None:
        self._spec = spec
        self._server = server
        self._load = load
        self._sink = sink
        self._ledger = ledger
        self._columns: dict[tuple[Cell, str, str], list[str | None]] = {}

    def events(self) -> Iterator[Event]:
        """Prepare, telling each step.

        Raises:
            SetupError: if the data cannot be made, or a workload's statement fails.
        """
        spec = self._spec
        yield Preparing("starting the server", 0, 1)
        self._server.start()
        self._sink.environment(self._server.facts())
        all_cells = cells(spec)
        total = len(all_cells) * len(spec.variants)
        done = 0
        for cell in all_cells:
            for variant, facts in spec.variants.items():
                yield Preparing(f"filling {variant}{cell.at}", done, total)
                script = substitute(spec.setup.sql or "", texts_for(spec, cell, variant))
                self._server.build(cell, variant, script, facts.settings, spec.setup.timeout)
                done += 1
        for done, cell in enumerate(all_cells):
            yield Preparing(f"comparing answers{cell.at}", done, len(all_cells))
            for arm in arms(spec):
                self._server.restore(cell, arm)
            yield from self._check_cell(cell)

    def pools(self, cell: Cell, workload: str, variant: str) -> Pools:
        """Return what a workload's parameters are drawn from, reading a query's result only once."""
        pools = {}
        texts = texts_for(self._spec, cell, variant)
        for name, parameter in self._spec.workloads[workload].parameters.items():
            if parameter.query is None:
                continue
            query = substitute(parameter.query, texts)
            key = (cell, variant, query)
            if key not in self._columns:
                self._columns[key] = self._server.column(cell, Arm(variant), query)
            if not self._columns[key]:
                raise SetupError(f"parameter {name}: its query gives no rows; there is nothing to draw from")
            pools[name] = self._columns[key]
        return pools

    # ---- one cell ----

    def _check_cell(self, cell: Cell) -> Iterator[Event]:
        spec = self._spec
        for variant in spec.variants:
            self._sink.relations(cell, variant, self._server.relations(cell, Arm(variant)))
        for workload in spec.workloads:
            for variant in spec.variants:
                self._explain(cell, workload, variant)
            expected = self._answer(cell, workload, spec.baseline)
            for variant in spec.variants:
                if variant == spec.baseline:
                    continue
                reason = _difference(expected, self._answer(cell, workload, variant))
                if reason is not None:
                    self._ledger.refused[(cell, workload, variant)] = reason
                    self._sink.refusal(cell, workload, variant, reason)
                    yield Refused(cell, workload, variant, reason)

    def _explain(self, cell: Cell, workload: str, variant: str) -> None:
        where = _where(cell, workload, variant)
        try:
            request = self._answer_request(cell, workload, variant)
        except SetupError as error:
            raise SetupError(f"{where}: {error}") from error
        plans = []
        for statement in statements_for(self._spec, cell, workload, variant):
            values = [request.parameters[column][0] for column in statement.columns]
            try:
                plan = self._server.explain(cell, Arm(variant), statement.name, statement.sql, values)
            except SetupError as error:
                raise SetupError(f"{where}: {error}: {statement.sql}") from error
            if plan is not None:
                plans.append(plan)
        self._sink.plans(cell, workload, variant, plans)

    def _answer(self, cell: Cell, workload: str, variant: str) -> dict[str, object]:
        where = _where(cell, workload, variant)
        facts = self._spec.workloads[workload]
        if facts.state == "reset":
            self._server.restore(cell, Arm(variant))
        try:
            measured = self._load.run(self._answer_request(cell, workload, variant))
        except LoadError as error:
            raise SetupError(f"{where}: {error}") from error
        if measured.outcome != Outcome.COMPLETE:
            raise SetupError(f"{where}: {measured.message or measured.outcome}")
        if facts.answer == "may differ":
            return {}
        answer: dict[str, object] = {"rows": measured.rows, "answer": measured.digest}
        if facts.check is not None:
            query = substitute(facts.check, texts_for(self._spec, cell, variant))
            answer["check"] = self._server.answer_digest(cell, Arm(variant), query)
        return answer

    def _answer_request(self, cell: Cell, workload: str, variant: str) -> LoadRequest:
        target = self._server.target(cell, Arm(variant))
        pools = self.pools(cell, workload, variant)
        return answer_request(self._spec, cell, workload, variant, target, pools)


def _where(cell: Cell, workload: str, variant: str) -> str:
    return f"workload {workload}, variant {variant}{cell.at}"


def _difference(expected: dict[str, object], found: dict[str, object]) -> str | None:
    """Say in words how an answer differs from the baseline's; None if it does not."""
    if expected.get("rows") != found.get("rows"):
        return (
            f"wrong answer: {found['rows']} rows where the baseline gives {expected['rows']} "
            "over the same operations"
        )
    if expected.get("answer") != found.get("answer"):
        return "wrong answer: as many rows as the baseline gives, but not the same ones"
    if expected.get("check") != found.get("check"):
        return "wrong answer: it leaves other data behind than the baseline does (the check query differs)"
    return None
