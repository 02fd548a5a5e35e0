"""The runner's ports without a world: a clock that is told the time, a load with declared latencies."""

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from uncork.errors import ServerCrash, ServiceCrash, StoreError
from uncork.model.answer import Answer, Row
from uncork.model.block import BlockMeasurement, BlockRequest
from uncork.model.engine import EngineOverhead
from uncork.model.http_trial import AskedRequest, HttpAnswer, HttpTrial, TrialRequest
from uncork.model.measurement import Latency, Measurement, Outcome, Slice
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.service import Served, ServiceJob
from uncork.model.trial import Arm, Cell, Trial

MILLISECOND = 1_000_000


class FakeClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns

    def advance(self, nanoseconds: float) -> None:
        self.now_ns += round(nanoseconds)

    def monotonic_ns(self) -> int:
        return self.now_ns


class FakeServer:
    """A server that notes what is asked of it.

    `calls` holds (what, cell, arm) in order. `columns` maps queries to their first column, `checks` maps
    variants to the digest of their check query. An arm's counters grow when `FakeLoad` writes to it.
    """

    def __init__(
        self,
        clock: FakeClock | None = None,
        *,
        restartable: bool = True,
        build_ns: int = 0,
        columns: Mapping[str, Sequence[str | None]] | None = None,
        checks: Mapping[str, str] | None = None,
        counts: bool = True,
    ) -> None:
        self.restartable = restartable
        self.alive = False
        self.calls: list[tuple[str, str, str]] = []
        self.scripts: dict[tuple[str, str], str] = {}
        self.written: dict[str, int] = {}
        self.undone: list[tuple[str, ...]] = []
        self.absent: dict[str, str] = {}
        self.rows: dict[str, tuple[Row, ...] | list[tuple[Row, ...]]] = {}  # a list: in turn
        self._clock = clock or FakeClock()
        self._build_ns = build_ns
        self._columns = columns or {}
        self._checks = checks or {}
        self._counts = counts

    def called(self, what: str) -> list[tuple[str, str]]:
        return [(cell, arm) for name, cell, arm in self.calls if name == what]

    def start(self) -> None:
        self.alive = True
        self._note("start")

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        return self.absent.get(variant)

    def restart(self) -> None:
        self._note("restart")

    def recover(self) -> None:
        self.alive = True
        self._note("recover")

    def stop(self) -> None:
        self.alive = False
        self._note("stop")

    def build_base(self, conninfo: str, *, keep_statistics: bool = False) -> str:
        self._note(f"copy {conninfo}" + (", with its statistics" if keep_statistics else ""))
        return "as a template"

    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        self._note("build", cell, Arm(variant))
        self.scripts[cell.name, variant] = script
        self._clock.advance(self._build_ns)

    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        self._note(f"build beside {name}")

    def beside(self, name: str, variant: str) -> Target:
        return Target(name, {"host": "localhost"})

    def begin_setup(self) -> None:
        self._note("begin setup")

    def end_setup(self) -> None:
        self._note("end setup")

    def warm_beside(self) -> None:
        self._note("warm beside")

    def restore(self, cell: Cell, arm: Arm) -> None:
        self._note("restore", cell, arm)

    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        for home in homes:
            self.restore(*home)
            self.warm(*home)

    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        self._note("undo", cell, arm)
        self.undone.append(tuple(statements))

    def warm(self, cell: Cell, arm: Arm) -> None:
        self._note("warm", cell, arm)

    def cool(self, cell: Cell, arm: Arm) -> None:
        self._note("cool", cell, arm)

    def target(self, cell: Cell, arm: Arm) -> Target:
        return Target(f"{cell.name}/{arm.name}", {"host": "localhost"})

    def column(self, cell: Cell, arm: Arm, query: str) -> list[str | None]:
        self._note("column", cell, arm)
        return list(self._columns[query])

    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        return self._checks.get(arm.variant, "the same")

    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        self._note("answers", cell, arm)
        rows = self.rows.get(arm.variant, (("=1",),))
        if isinstance(rows, list):
            rows = rows.pop(0)
        return [Answer(1, request.statements[0].name, rows)]

    def explain(
        self,
        cell: Cell,
        arm: Arm,
        name: str,
        statement: str,
        values: Sequence[str | None],
        settings: Mapping[str, str],
    ) -> ExecutedPlan | None:
        return ExecutedPlan(name, f"Seq Scan\n{statement}", "Seq Scan", 3, 1e6)

    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        return [Relation("item", "table", "item", 8192, 10.0, None)]

    def command(self, cell, arm, command, files, environment, timeout_ns) -> str:
        return "0"

    def snapshot(self, cell: Cell, arm: Arm, *, updates: bool = False) -> Snapshot:
        if not self._counts:
            return Snapshot("0/1", 0)
        records = self.written.get(f"{cell.name}/{arm.name}", 0)
        return Snapshot(
            "0/1", 0, shared_hit=0, shared_read=0, shared_dirtied=records, temp_blocks=records,
            wal_bytes=100 * records, wal_records=records,
        )  # fmt: skip

    def facts(self) -> Mapping[str, Mapping[str, str]]:
        return {"server": {"version": "PostgreSQL, a fake"}}

    def _note(self, what: str, cell: Cell | None = None, arm: Arm | None = None) -> None:
        self.calls.append((what, "" if cell is None else cell.name, "" if arm is None else arm.name))


class FakeLoad:
    """A load whose latencies are declared.

    A request without warm-up operations is taken for the answer check, any other for a timed trial; trials
    are numbered from 1.

    Args:
        server: what it writes to.
        clock: advanced by what a trial takes.
        latencies_ns: mean of an arm (by arm or variant name); 1 ms for others.
        noise: standard deviation of a trial's log latency.
        seed: of the noise.
        answers: (rows, digest) of a variant's answer; a list: in turn.
        crash_at: trials in which the server goes away.
        crash_raises: raise ServerCrash, instead of giving a measurement whose connection was lost.
        errors_at: trials in which an operation fails.
        histogram: of every complete trial.
    """

    def __init__(
        self,
        server: FakeServer,
        clock: FakeClock,
        latencies_ns: Mapping[str, float] | None = None,
        *,
        noise: float = 0.002,
        seed: int = 1,
        answers: Mapping[str, tuple[int, str] | list[tuple[int, str]]] | None = None,
        crash_at: Collection[int] = (),
        crash_raises: bool = False,
        errors_at: Collection[int] = (),
        histogram: bytes = b"",
        switch_ns: Mapping[str, float] | None = None,
    ) -> None:
        self.requests: list[LoadRequest] = []
        self.blocks: list[BlockRequest] = []
        self.checks: list[LoadRequest] = []
        self.sent: list[HttpTrial] = []
        self.asked: list[tuple[Served, tuple[AskedRequest, ...]]] = []
        self.bodies: dict[int, str | list[str]] = {}  # of a port; a list: in turn
        self.failing: Mapping[str, float] = {}
        self.meanwhile: Callable[[HttpTrial], None] = lambda trial: None
        self._server = server
        self._clock = clock
        self._latencies_ns = latencies_ns or {}
        self._noise = noise
        self._random = random.Random(seed)
        self._answers = answers or {}
        self._crash_at = crash_at
        self._crash_raises = crash_raises
        self._errors_at = errors_at
        self._histogram = histogram
        self._switch_ns = switch_ns or {}  # what an arm pays at the beginning of each slice

    def ask(self, served: Served, requests: Sequence[AskedRequest], timeout_ns: int) -> list[HttpAnswer]:
        self.asked.append((served, tuple(requests)))
        body = self.bodies.get(served.port, '{"id": 1}')
        if isinstance(body, list):
            body = body.pop(0)
        return [HttpAnswer(one.line, 200, body, body, len(body)) for one in requests]

    def run(self, request: TrialRequest) -> Measurement:
        if isinstance(request, HttpTrial):
            return self._requests(request)
        arm = request.target.database.rpartition("/")[2]
        operations = request.operations or 100
        self._write(request, operations)
        if request.warmup_operations == 0:
            self.checks.append(request)
            answer = self._answers.get(arm, (operations, "the same"))
            rows, digest = answer.pop(0) if isinstance(answer, list) else answer
            return measured(MILLISECOND, operations, rows=rows, digest=digest)
        self.requests.append(request)
        number = len(self.requests)
        latency = self._latency(request)
        self._clock.advance(latency * operations)
        if number in self._crash_at:
            self._server.alive = False
            if self._crash_raises:
                raise ServerCrash("the server closed the connection")
            message = "the server closed the connection"
            return measured(latency, operations, outcome=Outcome.CONNECTION_LOST, message=message)
        if number in self._errors_at:
            return measured(latency, operations, outcome=Outcome.ERRORS, message="no such row", failed=1)
        return measured(latency, operations, histogram=self._histogram)

    def run_block(self, block: BlockRequest) -> BlockMeasurement:
        """Carry out slices; each has its arm's latency with noise of its own."""
        self.blocks.append(block)
        begun = self._clock.monotonic_ns()
        times: list[list[float]] = [[] for _ in block.arms]
        counts = [0] * len(block.arms)
        slices = []
        for number, cycle in enumerate(block.cycles):
            over = block.limit_ns is not None and self._clock.monotonic_ns() - begun >= block.limit_ns
            if over and number > 0 and number % block.together == 0:
                break
            for place in cycle:
                size, latency = block.sizes[place], self._latency(block.arms[place])
                operations = size.operations or max(1, round((size.duration_ns or 0) / latency))
                at_ns = self._clock.monotonic_ns() - begun
                self._clock.advance(latency * operations + size.settle_ns)
                arm = block.arms[place].target.database.rpartition("/")[2].removesuffix("#2")
                latency += self._switch_ns.get(arm, 0.0) / operations
                times[place].append(latency)
                counts[place] += operations
                spent = round(latency * operations)
                slices.append(Slice(place, number, at_ns, spent, operations, operations, spent, 0))
        found = []
        for request, means, count in zip(block.arms, times, counts, strict=True):
            self._write(request, count + request.warmup_operations)
            found.append(measured(sum(means) / len(means), count, histogram=self._histogram))
        if len(self.blocks) in self._crash_at:
            self._server.alive = False
            message = "the server closed the connection"
            found[-1] = replace(found[-1], outcome=Outcome.CONNECTION_LOST, message=message)
        if len(self.blocks) in self._errors_at:
            failed = measured(MILLISECOND, 100, outcome=Outcome.ERRORS, message="no such row", failed=1)
            found[-1] = failed
        return BlockMeasurement(tuple(found), tuple(slices))

    def _latency(self, request: TrialRequest) -> float:
        arm = request.target.database.rpartition("/")[2]
        mean = self._latencies_ns.get(arm, self._latencies_ns.get(arm.removesuffix("#2"), MILLISECOND))
        return mean * math.exp(self._random.gauss(0, self._noise))

    def _write(self, request: TrialRequest, operations: int) -> None:
        if isinstance(request, LoadRequest) and not request.statements[0].sql.upper().startswith("SELECT"):
            written = self._server.written
            written[request.target.database] = written.get(request.target.database, 0) + operations

    def _requests(self, trial: HttpTrial) -> Measurement:
        """Carry out a trial by HTTP: `failing` is the share of requests that fail, by arm or variant."""
        self.sent.append(trial)
        self.meanwhile(trial)
        arm = trial.target.database.rpartition("/")[2]
        operations = trial.spec.operations or 100
        latency = self._latency(trial)
        self._clock.advance(latency * operations)
        share = self.failing.get(arm, self.failing.get(arm.removesuffix("#2"), 0.0))
        failed = sum(self._random.random() < share for _ in range(operations))
        found = measured(latency, operations, failed=failed)
        return replace(
            found,
            errors={"status 503": failed} if failed else {},
            statuses={200: operations - failed, 503: failed},
        )


class FakeServices:
    """Services that note who is started and ended.

    `ports` maps a service's database and POOL to the port that it got; `gone` are ports of services that have
    ended, `missing` maps services to why they cannot run here, `slow` are those that never get ready.
    """

    def __init__(self) -> None:
        self.running: dict[tuple[str, str], Served] = {}
        self.calls: list[tuple[str, str]] = []
        self.gone: set[int] = set()
        self.missing: dict[str, str] = {}
        self.slow: set[str] = set()
        self.used_ns = (0, 0)

    def lacking(self, jobs: Sequence[ServiceJob], requires: Sequence[str]) -> str | None:
        return next((self.missing[name] for name in requires if name in self.missing), None)

    def begin(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> None:
        """Nothing: a service of these is ready as soon as it is started."""

    def serve(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> Served:
        key = (database.database, repr([(job.command, job.environment) for job in jobs]))
        if jobs[-1].name in self.slow:
            raise ServiceCrash(f"service {jobs[-1].name} of {label} was not ready within 20 s")
        if key in self.running and self.running[key].port in self.gone:
            raise ServiceCrash(self.exit_reason(self.running.pop(key)))
        if key not in self.running:
            self.calls.append(("start", label))
            self.running[key] = Served(jobs[-1].name, 20_000 + len(self.calls), (len(self.calls),))
        return self.running[key]

    def cpu_ns(self, served: Served) -> tuple[int, int] | None:
        self.used_ns = (self.used_ns[0] + 3000, self.used_ns[1] + 1000)
        return self.used_ns

    def exit_reason(self, served: Served) -> str | None:
        return "service api ended (exit status 3)" if served.port in self.gone else None

    def release(self, database: str | None = None) -> None:
        for key in [key for key in self.running if database in (None, key[0])]:
            self.calls.append(("end", key[0]))
            del self.running[key]

    def stop(self) -> None:
        self.release()


class MemorySink:
    """Keeps what it is given in lists; can be full from the n-th write of trials on."""

    def __init__(self, *, full_at: int | None = None) -> None:
        self.kept: list[tuple[Trial, Measurement]] = []
        self.writes = 0
        self.kept_plans: list[tuple[str, str, str]] = []
        self.kept_relations: list[tuple[str, str]] = []
        self.data_checks: list[tuple[str, str, str, str | None]] = []
        self.refusals: list[tuple[str, str, str, str]] = []
        self.answers: list[tuple[str, str, str, str]] = []
        self.overheads: list[EngineOverhead] = []
        self.facts: Mapping[str, Mapping[str, str]] = {}
        self._full_at = full_at

    def trials(self, trials: Sequence[tuple[Trial, Measurement]]) -> None:
        self.writes += 1
        if self._full_at is not None and self.writes >= self._full_at:
            raise StoreError("cannot write trials: No space left on device")
        self.kept += trials

    def plans(self, cell: Cell, workload: str, variant: str, plans: Sequence[ExecutedPlan]) -> None:
        self.kept_plans += [(cell.name, workload, variant) for _ in plans]

    def relations(self, cell: Cell, variant: str, relations: Sequence[Relation]) -> None:
        self.kept_relations += [(cell.name, variant) for _ in relations]

    def answer(self, cell: Cell, workload: str, variant: str, difference: str) -> None:
        self.answers.append((cell.name, workload, variant, difference))

    def data_check(self, cell: Cell, variant: str, name: str, value: str | None) -> None:
        self.data_checks.append((cell.name, variant, name, value))

    def refusal(self, cell: Cell, workload: str, variant: str, reason: str) -> None:
        self.refusals.append((cell.name, workload, variant, reason))

    def overhead(self, overhead: EngineOverhead) -> None:
        self.overheads.append(overhead)

    def environment(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        self.facts = facts


def measured(
    latency_ns: float,
    executions: int = 100,
    *,
    outcome: Outcome = Outcome.COMPLETE,
    message: str | None = None,
    failed: int = 0,
    rows: int | None = None,
    digest: str | None = None,
    statements: Iterable[str] = ("only",),
    histogram: bytes = b"",
) -> Measurement:
    """Return a trial in which every operation took `latency_ns`; `failed` of its operations failed."""
    each = round(latency_ns)

    def latency(name: str) -> Latency:
        succeeded = executions - failed
        return Latency(name, succeeded, each * succeeded, *[each] * 7, histogram)

    return Measurement(
        outcome=outcome,
        message=message,
        started=executions,
        succeeded=executions - failed,
        failed=failed,
        errors={"P0002": failed} if failed else {},
        rows=executions if rows is None else rows,
        elapsed_ns=each * executions,
        latencies=tuple(latency(name) for name in statements),
        operation=latency("operation"),
        client_user_ns=10 * executions,
        client_system_ns=5 * executions,
        server_user_ns=each // 2 * executions,
        server_system_ns=each // 10 * executions,
        sent_bytes=50 * executions,
        received_bytes=100 * executions,
        steal_ns=0,
        throttled_ns=None,
        digest=digest,
    )
