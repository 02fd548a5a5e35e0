"""Prepare before the first timed trial: data, parameters, the answer check, plans and sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from uncork.errors import LoadError, ServiceCrash, SetupError
from uncork.experiment.plan.order import cells, texts_for
from uncork.experiment.plan.placement import (
    Placement,
    Placements,
    database_settings,
    session_settings,
)
from uncork.experiment.plan.skip_rules import NOT_HERE, answer_deadline_ns, too_slow
from uncork.experiment.ports import Clock, Load, Server, Sink
from uncork.experiment.run.answer_reasons import (
    OTHER_DATA,
    asked_again,
    changing_requests,
    changing_rows,
    wrong_requests,
)
from uncork.experiment.run.events import Event, Preparing, Refused, Skipped
from uncork.experiment.run.http_request import READING, asked_requests
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.request import (
    Pools,
    answer_request,
    explained_request,
    nothing_request,
    queries_for,
    undo_for,
)
from uncork.experiment.run.service_manager import ServiceManager
from uncork.experiment.spec.pauses import paused_ns
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import substitute
from uncork.model.answer import Answer, difference
from uncork.model.engine import EngineOverhead
from uncork.model.http_trial import HttpAnswer
from uncork.model.measurement import Measurement, Outcome
from uncork.model.request import Statement
from uncork.model.server import Snapshot
from uncork.model.services.answers import AnswerRules, allowing, answer_differences
from uncork.model.trial import Arm, Cell

_LONG_NS = 2 * 10**9
"""If filling one template takes longer than this, its services are started before the next is filled."""


class Preparation:
    """Builds the data, and records each variant's answers, plans and sizes.

    Afterwards `pools` returns the values from which the parameters of each cell, workload and variant are
    drawn. `operation_ns` is the mean time of an operation in the answer check, for each cell, workload and
    variant measured there.
    """

    def __init__(
        self,
        spec: Spec,
        server: Server,
        load: Load,
        sink: Sink,
        ledger: Ledger,
        placements: Placements,
        manager: ServiceManager,
        clock: Clock,
    ) -> None:
        self._spec = spec
        self._manager = manager
        self._clock = clock
        self._placements = placements
        self._server = server
        self._load = load
        self._sink = sink
        self._ledger = ledger
        self._columns: dict[tuple[Placement, str], list[str | None]] = {}
        self._absent: dict[str, str] = {}
        self._restored: dict[Placement, Snapshot] = {}
        self.operation_ns: dict[tuple[Cell, str, str], float] = {}

    def events(self) -> Iterator[Event]:
        """Prepare, and yield each step.

        Raises:
            SetupError: if the data cannot be made, or a workload's statement fails.
        """
        spec = self._spec
        yield Preparing("starting the server", 0, 1)
        self._server.start()
        self._sink.environment(self._server.facts())
        yield from self._skip_absent()
        self._server.begin_setup()
        begun_ns = self._clock.monotonic_ns()
        if spec.setup.copy_of is not None:
            yield Preparing("copying the database", 0, 1)
            keep = spec.setup.statistics == "keep"
            self._server.build_base(spec.setup.copy_of, keep_statistics=keep)
        templates = [template for template in self._placements.templates() if template[1] not in self._absent]
        for done, (cell, variant) in enumerate(templates):
            yield Preparing(f"filling {variant}{cell.at}", done, len(templates))
            self._build(cell, variant)
            left = len(templates) - done - 1
            long = self._clock.monotonic_ns() - begun_ns >= _LONG_NS
            if self._manager.has_services and left and cell == templates[0][0] and long:
                yield Preparing(f"starting the services of {variant}", done, len(templates))
                self._try_services(cell, variant)
            begun_ns = self._clock.monotonic_ns()
        for done, name in enumerate(spec.databases):
            yield Preparing(f"filling database {name}", done, len(spec.databases))
            self._build_beside(name)
        all_cells = cells(spec)
        yield Preparing("copying the data for each arm", 0, 1)
        homes = itertools.chain.from_iterable(map(self._placements.in_cell, all_cells))
        present = [home for home in dict.fromkeys(homes) if home[1].variant not in self._absent]
        self._manager.restore_all(present)
        self._server.end_setup()
        self._restored = {home: self._server.snapshot(*home) for home in present}
        for done, cell in enumerate(all_cells):
            yield Preparing(f"comparing answers{cell.at}", done, len(all_cells))
            if done == 0:
                yield from self._weigh_clients(cell)
            try:
                yield from self._check_cell(cell)
            finally:
                self._manager.end()

    def pools(self, cell: Cell, workload: str, variant: str) -> Pools:
        """Return the values for a workload's parameters; each query runs only once."""
        pools = {}
        home = self._placements.of(cell, Arm(variant))
        for name, query in queries_for(self._spec, cell, workload, variant).items():
            key = (home, query)
            if key not in self._columns:
                self._columns[key] = self._server.column(*home, query)
            if not self._columns[key]:
                raise SetupError(
                    f"parameter {name}: its query returned no rows to draw from; "
                    "correct the query or the set-up"
                )
            pools[name] = self._columns[key]
        return pools

    def is_changed(self, home: Placement) -> bool:
        """Return whether a placement's data may have changed since it was restored.

        It has not if the server wrote no log for it and dirtied none of its pages. Servers without
        pg_stat_statements do not tell, and then the answer is true.
        """
        before = self._restored.get(home)
        if before is None or before.wal_records is None:
            return True
        now = self._server.snapshot(*home)
        return (now.wal_records, now.shared_dirtied) != (before.wal_records, before.shared_dirtied)

    def _restore(self, home: Placement) -> None:
        """Restore a placement's data, unless it has not changed since it was last restored."""
        if self.is_changed(home):
            self._manager.restore(home)
            self._restored[home] = self._server.snapshot(*home)

    # ---- engines ----

    def _skip_absent(self) -> Iterator[Event]:
        """Leave out every variant whose engine is unavailable, with the reason.

        Raises:
            SetupError: if it is the baseline's engine, because nothing can be compared without it.
        """
        spec = self._spec
        for variant in spec.variants:
            lacking = self._server.lacking(variant, spec.variants[variant].extensions)
            lacking = lacking or self._manager.lacking(variant)
            if lacking is None:
                continue
            if variant == spec.baseline:
                raise SetupError(f"the baseline {variant} {NOT_HERE}: {lacking}")
            self._absent[variant] = reason = f"{NOT_HERE}: {lacking}"
            places = [
                (cell, name)
                for cell in cells(spec)
                for name in spec.workloads
                if variant in spec.compared(name)
            ]
            for cell, workload in places:
                self._ledger.refused[(cell, workload, variant)] = reason
                self._sink.refusal(cell, workload, variant, reason)
            if places:
                yield Skipped(*places[0], variant, reason, everywhere=True)

    def _try_services(self, cell: Cell, variant: str) -> None:
        """Start a variant's services once, so that a mistake shows before more data is filled.

        Raises:
            SetupError: if they do not start, or are not ready in time.
        """
        self._manager.restore(self._placements.of(cell, Arm(variant)))
        try:
            self._manager.served(cell, Arm(variant))
        except ServiceCrash as error:
            raise SetupError(str(error)) from error
        finally:
            self._manager.end()

    def _build(self, cell: Cell, variant: str) -> None:
        spec = self._spec
        settings, own = database_settings(spec, variant), spec.variants[variant].setup
        try:
            self._server.build(
                cell, variant, self._placements.script(cell, variant), settings, spec.setup.timeout
            )
        except SetupError as error:
            file = (spec.setup if own is None else own).file
            raise SetupError(f"{file}: {error}" if file else str(error)) from error

    def _build_beside(self, name: str) -> None:
        try:
            self._manager.build(name)
        except SetupError as error:
            file = self._spec.databases[name].file
            raise SetupError(f"{file}: {error}" if file else str(error)) from error

    def _weigh_clients(self, cell: Cell) -> Iterator[Event]:
        """Measure the overhead of each engine's client, if several engines are compared."""
        spec = self._spec
        present = [variant for variant in spec.variants if variant not in self._absent]
        first = {spec.engine(variant): variant for variant in reversed(present)}
        for engine, variant in first.items() if len(spec.engines) > 1 else ():
            yield Preparing(f"measuring the client of {engine}", 0, 1)
            target = self._server.target(*self._placements.of(cell, Arm(variant)))
            measured = self._load.run(nothing_request(target, deadline_ns=spec.stop.trial_timeout))
            times = measured.operation
            if measured.outcome != Outcome.COMPLETE or times is None:
                continue
            user_ns, system_ns = measured.client_user_ns, measured.client_system_ns
            shares = user_ns is None or system_ns is None
            cpu_ns = (
                None if user_ns is None or system_ns is None else (user_ns + system_ns) / times.executions
            )
            self._sink.overhead(
                EngineOverhead(engine, shares, times.executions, times.p50_ns, times.p99_ns, cpu_ns)
            )

    # ---- one cell ----

    def _check_cell(self, cell: Cell) -> Iterator[Event]:
        spec = self._spec
        for variant in (name for name in spec.variants if name not in self._absent):
            if self._placements.of(cell, Arm(variant)) == (cell, Arm(variant)):
                self._sink.relations(cell, variant, self._server.relations(cell, Arm(variant)))
            self._check_data(cell, variant)
        for workload in spec.workloads:
            variants = [name for name in spec.compared(workload) if name not in self._absent]
            if spec.workloads[workload].http is not None:
                yield from self._compare_requests(cell, workload, variants)
                continue
            for variant in variants:
                self._explain(cell, workload, variant)
            if len(spec.engines) > 1:
                yield from self._compare_across(cell, workload, variants)
                continue
            expected, base = self._answer(cell, workload, spec.baseline)
            for variant in variants:
                if variant != spec.baseline:
                    found, measured = self._answer(cell, workload, variant)
                    slow = too_slow(spec, cell, workload, variant, measured, base)
                    wrong = None if slow is not None else _difference(expected, found)
                    if wrong is not None:
                        wrong = self._changing(cell, workload, expected) or wrong + (
                            self._first_difference(cell, workload, variant)
                        )
                    yield from self._left_out(cell, workload, variant, slow=slow, wrong=wrong)

    def _check_data(self, cell: Cell, variant: str) -> None:
        home, texts = self._placements.of(cell, Arm(variant)), texts_for(self._spec, cell, variant)
        for name, check in self._spec.checks.items():
            query = substitute(check.sql or "", texts).strip().rstrip(";")
            key = (home, query)
            if key not in self._columns:
                try:
                    self._columns[key] = self._server.column(*home, query)
                except SetupError as error:
                    raise SetupError(f"check {name}, variant {variant}{cell.at}: {error}") from error
            answered = self._columns[key]
            self._sink.data_check(cell, variant, name, answered[0] if answered else None)

    def _compare_requests(self, cell: Cell, workload: str, variants: Sequence[str]) -> Iterator[Event]:
        """Compare the answers to the first requests: statuses, JSON as JSON, other bodies literally.

        If a variant's answers differ, the baseline is asked again, to see whether its own answers change.
        """
        spec = self._spec
        facts = spec.workloads[workload].http
        rules = AnswerRules() if facts is None else facts.rules
        again: tuple[list[HttpAnswer], str | None] | None = None
        expected = self._asked(cell, workload, spec.baseline)
        for variant in variants:
            if variant == spec.baseline:
                continue
            found = self._asked(cell, workload, variant)
            differences = answer_differences(expected[0], found[0], rules)
            if not differences and expected[1] == found[1]:
                continue
            if again is None and asked_again(spec, workload):
                again = self._asked(cell, workload, spec.baseline)
            own = [] if again is None else answer_differences(expected[0], again[0], rules)
            if spec.workloads[workload].answer == "may differ":
                changing = {difference.pattern for difference in own}
                real = [difference for difference in differences if difference.pattern not in changing]
                if real or expected[1] != found[1]:
                    told = real[0].beside("the baseline") if real else OTHER_DATA
                    self._sink.answer(cell, workload, variant, told)
                continue
            if again is not None and own:
                wider = allowing(expected[0], again[0], rules)
                wrong = changing_requests(workload, rules, own, wider)
            elif differences:
                wrong = wrong_requests(workload, rules, (expected[0], found[0]), differences)
            else:
                wrong = f"wrong answer: {OTHER_DATA}"
            yield from self._left_out(cell, workload, variant, slow=None, wrong=wrong)

    def _asked(self, cell: Cell, workload: str, variant: str) -> tuple[list[HttpAnswer], str | None]:
        """Return a variant's answers, and the digest of its check query; undo what that changed.

        Raises:
            SetupError: if it does not answer.
        """
        spec, where = self._spec, _where(cell, workload, variant)
        facts = spec.workloads[workload]
        home = self._placements.of(cell, Arm(variant))
        undo = undo_for(spec, cell, workload, variant)
        pools = self.pools(cell, workload, variant)
        requests = asked_requests(spec, cell, workload, variant, pools)
        writes = any(request.method not in READING for request in requests)
        if writes and facts.state == "reset" and not undo:
            self._restore(home)
        timeout_ns = spec.stop.trial_timeout if facts.http is None else facts.http.timeout
        try:
            served = self._manager.served(cell, Arm(variant))
            answers = self._load.ask(served, requests, timeout_ns)
        except (LoadError, ServiceCrash) as error:
            raise SetupError(f"{where}: {error}") from error
        check = spec.check(workload, variant)
        digest = None
        if check is not None:
            query = substitute(check, texts_for(spec, cell, variant))
            digest = self._server.answer_digest(*home, query)
        if undo:
            self._server.undo(*home, undo)
        return answers, digest

    def _changing(self, cell: Cell, workload: str, expected: dict[str, object]) -> str | None:
        """Ask the baseline again, and return how its own rows change; None if they do not."""
        spec = self._spec
        if not asked_again(spec, workload):
            return None
        again, _ = self._answer(cell, workload, spec.baseline)
        if _difference(expected, again) is None:
            return None
        detail = None
        if spec.workloads[workload].batch is None:
            ordered = spec.workloads[workload].answer == "same order"
            try:
                rows = [self._rows(cell, workload, spec.baseline) for _ in range(2)]
                detail = difference(*rows, ordered=ordered, gave="it first gave")
            except SetupError:
                pass
        return changing_rows(workload, detail)

    def _first_difference(self, cell: Cell, workload: str, variant: str) -> str:
        """Return where a variant's rows first differ from the baseline's; empty if unknown."""
        if self._spec.workloads[workload].batch is not None:
            return ""
        ordered = self._spec.workloads[workload].answer == "same order"
        try:
            expected, found = (self._rows(cell, workload, name) for name in (self._spec.baseline, variant))
        except SetupError:
            return ""
        differs = difference(expected, found, ordered=ordered)
        return "" if differs is None else f": {differs}"

    def _compare_across(self, cell: Cell, workload: str, variants: Sequence[str]) -> Iterator[Event]:
        """Compare answers row by row, in the form that all engines share."""
        spec = self._spec
        ordered = spec.workloads[workload].answer == "same order"
        expected = self._rows(cell, workload, spec.baseline)
        for variant in variants:
            if variant != spec.baseline:
                found = self._rows(cell, workload, variant)
                differs = difference(expected, found, ordered=ordered)
                wrong = None if differs is None else f"wrong answer: {differs}"
                if differs is not None and asked_again(spec, workload):
                    again = self._rows(cell, workload, spec.baseline)
                    detail = difference(expected, again, ordered=ordered, gave="it first gave")
                    wrong = wrong if detail is None else changing_rows(workload, detail)
                yield from self._left_out(cell, workload, variant, slow=None, wrong=wrong)

    def _rows(self, cell: Cell, workload: str, variant: str) -> list[Answer]:
        """Return a variant's answers, including its check query, and undo what it changed."""
        spec, where = self._spec, _where(cell, workload, variant)
        home = self._placements.of(cell, Arm(variant))
        undo = undo_for(spec, cell, workload, variant)
        if spec.workloads[workload].state == "reset" and not undo:
            self._restore(home)
        target, pools = self._server.target(*home), self.pools(cell, workload, variant)
        request = answer_request(spec, cell, workload, variant, target, pools)
        try:
            found = self._server.answers(*home, request)
            check = spec.check(workload, variant)
            answer = spec.workloads[workload].answer
            if answer in ("check", "may differ"):
                found = []
            if check is not None and answer != "may differ":
                query = substitute(check, texts_for(spec, cell, variant)).strip().rstrip(";")
                check_request = replace(request, statements=(Statement("check", query, ()),), operations=1)
                found += self._server.answers(*home, replace(check_request, parameters=(), transaction=False))
        except SetupError as error:
            raise SetupError(f"{where}: {error}") from error
        if undo:
            self._server.undo(*home, undo)
        return found

    def _left_out(
        self, cell: Cell, workload: str, variant: str, *, slow: str | None, wrong: str | None
    ) -> Iterator[Event]:
        reason = wrong if slow is None else slow
        if reason is None:
            return
        self._ledger.refused[(cell, workload, variant)] = reason
        self._sink.refusal(cell, workload, variant, reason)
        yield (Refused if slow is None else Skipped)(cell, workload, variant, reason)

    def _explain(self, cell: Cell, workload: str, variant: str) -> None:
        where = _where(cell, workload, variant)
        home = self._placements.of(cell, Arm(variant))
        try:
            pools = self.pools(cell, workload, variant)
            statements = explained_request(self._spec, cell, workload, variant, pools)
        except SetupError as error:
            raise SetupError(f"{where}: {error}") from error
        settings = session_settings(self._spec, variant, workload)
        plans = []
        for statement, values in statements:
            try:
                plan = self._server.explain(*home, statement.name, statement.sql, values, settings)
            except SetupError as error:
                raise SetupError(f"{where}: {error}: {statement.sql}") from error
            if plan is not None:
                plans.append(plan)
        self._sink.plans(cell, workload, variant, plans)

    def _answer(self, cell: Cell, workload: str, variant: str) -> tuple[dict[str, object], Measurement]:
        """Return a variant's answer and its measurement, and undo what it changed."""
        spec, where = self._spec, _where(cell, workload, variant)
        facts = spec.workloads[workload]
        home = self._placements.of(cell, Arm(variant))
        undo = undo_for(spec, cell, workload, variant)
        if facts.state == "reset" and not undo:
            self._restore(home)
        pools = self.pools(cell, workload, variant)
        deadline_ns = answer_deadline_ns(spec, workload, variant)
        try:
            measured = self._load.run(
                answer_request(
                    spec,
                    cell,
                    workload,
                    variant,
                    self._server.target(*home),
                    pools,
                    deadline_ns=deadline_ns,
                )
            )
        except LoadError as error:
            raise SetupError(f"{where}: {error}") from error
        cut = deadline_ns is not None and measured.outcome == Outcome.DEADLINE
        if measured.outcome != Outcome.COMPLETE and not cut:
            raise SetupError(f"{where}: {measured.message or measured.outcome}")
        if measured.started:
            paused = paused_ns(spec.statements(workload, variant))  # the answer check does not pause
            self.operation_ns[cell, workload, variant] = measured.elapsed_ns / measured.started + paused
        answer = {} if cut else self._answered(cell, workload, variant, measured)
        if undo:
            self._server.undo(*home, undo)
        return answer, measured

    def _answered(self, cell: Cell, workload: str, variant: str, measured: Measurement) -> dict[str, object]:
        """Return what must be equal: rows, their digest, and the check's rows; nothing if they may differ."""
        facts = self._spec.workloads[workload]
        if facts.answer == "may differ":
            return {}
        answer: dict[str, object] = {}
        if facts.batch is None and facts.answer != "check":
            answer = {"rows": measured.rows, "answer": measured.digest}
        check = self._spec.check(workload, variant)
        if check is not None:
            query = substitute(check, texts_for(self._spec, cell, variant))
            answer["check"] = self._server.answer_digest(*self._placements.of(cell, Arm(variant)), query)
        return answer


def _where(cell: Cell, workload: str, variant: str) -> str:
    return f"workload {workload}, variant {variant}{cell.at}"


def _difference(expected: dict[str, object], found: dict[str, object]) -> str | None:
    """Return how an answer differs from the baseline's as text; None if it does not."""
    if expected.get("rows") != found.get("rows"):
        return (
            f"wrong answer: {found['rows']} rows, but the baseline returns {expected['rows']} "
            "for the same operations"
        )
    if expected.get("answer") != found.get("answer"):
        return "wrong answer: as many rows as the baseline returns, but different ones"
    if expected.get("check") != found.get("check"):
        return f"wrong answer: {OTHER_DATA}"
    return None
