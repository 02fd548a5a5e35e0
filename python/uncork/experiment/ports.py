"""What the runner needs of the world. Adapters stand in `engines`, `load` and `store`; fakes in the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from uncork.model.answer import Answer
from uncork.model.block import BlockMeasurement, BlockRequest
from uncork.model.engine import EngineOverhead
from uncork.model.http_trial import AskedRequest, HttpAnswer, TrialRequest
from uncork.model.measurement import Measurement
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.service import Served, ServiceJob
from uncork.model.trial import Arm, Cell, Trial

__all__ = ["Clock", "Evidence", "Load", "Observers", "Server", "Services", "Sink", "Until", "Watching"]


class Server(Protocol):
    """A database server with the experiment's data on it.

    Every method may raise `ServerCrash` when the server has gone away.
    """

    @property
    def restartable(self) -> bool:
        """Whether `restart` gives a new server process: restarts are then the unit of the statistics."""

    @property
    def alive(self) -> bool:
        """Whether the server answers."""

    def start(self) -> None:
        """Bring the server up, or connect to it. Raises SetupError or ConnectError."""

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        """Say, once started, why a variant cannot be run here; None if it can."""

    def restart(self) -> None:
        """Begin a new life of the server; does nothing where it is not ours to restart."""

    def recover(self) -> None:
        """Bring the server back after a crash. Raises ServerCrash if it does not come."""

    def stop(self) -> None:
        """Remove everything that the run made there. Safe to call at any time, and twice."""

    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Make a variant's data in a cell. Raises SetupError."""

    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        """Make a database beside the variants' own. Raises SetupError."""

    def beside(self, name: str, variant: str) -> Target:
        """Say where such a database is for a variant."""

    def restore(self, cell: Cell, arm: Arm) -> None:
        """Put an arm's data into the state that `build` left."""

    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore the data of several arms at once, and read it into the cache."""

    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute an experiment's own statements that undo a trial, each by itself. Raises SetupError."""

    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read an arm's data into the cache."""

    def warm_beside(self) -> None:
        """Read the databases beside the variants' own into the cache."""

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Say where an arm's load goes."""

    def column(self, cell: Cell, arm: Arm, query: str) -> list[str | None]:
        """Return a query's first column. Raises SetupError if it fails."""

    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        """Return a digest of a query's rows in any order. Raises SetupError if it fails."""

    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Execute a request's operations once and return what its statements answer.

        In the form that all engines share (see `model.answer`); what gives no rows is left out. Raises
        SetupError if one fails.
        """

    def explain(
        self, cell: Cell, arm: Arm, name: str, statement: str, values: Sequence[str | None]
    ) -> ExecutedPlan | None:
        """Execute a statement under EXPLAIN and undo it; None if it has no plan."""

    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the sizes of an arm's tables and indexes."""

    def snapshot(self, cell: Cell, arm: Arm) -> Snapshot:
        """Read the counters that concern an arm."""

    def facts(self) -> Mapping[str, Mapping[str, str]]:
        """Describe server and machine, by heading."""


class Load(Protocol):
    """Sends a trial's load."""

    def run(self, request: TrialRequest) -> Measurement:
        """Carry out one trial. Raises LoadError if the load cannot be sent at all."""

    def run_block(self, block: BlockRequest) -> BlockMeasurement:
        """Carry out a block whose arms take turns. Raises LoadError if the load cannot be sent at all."""

    def ask(self, served: Served, requests: Sequence[AskedRequest], timeout_ns: int) -> list[HttpAnswer]:
        """Return what a service answers to requests, one by one. Raises LoadError if one has no answer."""


class Services(Protocol):
    """Starts and ends what runs beside the database."""

    def lacking(self, jobs: Sequence[ServiceJob], requires: Sequence[str]) -> str | None:
        """Say what these services need and is not here; None if nothing."""

    def begin(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> None:
        """Start the services that need no other one, so that several get ready at the same time.

        `serve` waits until they are ready. Raises ServiceCrash if one cannot be started.
        """

    def serve(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> Served:
        """Start services in order, but for those that run already, and return the last one.

        `label` says in the log whose they are, `beside` names databases beside the variant's own. Raises
        ServiceCrash if one ends, or is not ready in time.
        """

    def cpu_ns(self, served: Served) -> tuple[int, int] | None:
        """Return the processor time that the services behind it have used, in user mode and in the kernel."""

    def exit_reason(self, served: Served) -> str | None:
        """Say how a service ended that should run; None if all of them do."""

    def release(self, database: str | None = None) -> None:
        """End the services that use a database, or all."""

    def stop(self) -> None:
        """End all, and remove what they left. Safe to call at any time, and twice."""


class Watching(Protocol):
    """An observer beside a trial; `cpu_ns` is the processor time that it took itself, once it has ended."""

    cpu_ns: int | None


class Observers(Protocol):
    """Watches trials whose variant says so."""

    def beside(self, observer: str, target: Target) -> AbstractContextManager[Watching]:
        """Watch for as long as the context lasts. Raises SetupError if it cannot."""


class Evidence(Protocol):
    """Looks at a server while a load runs that is not timed."""

    def gather(
        self, place: tuple[Cell, str, str], kinds: Sequence[str], request: TrialRequest, load: Load
    ) -> str | None:
        """Carry out the load, look meanwhile, and keep what was seen; return why it could not be, if so."""


class Sink(Protocol):
    """Keeps what was found. Raises StoreError, for example when the disk is full."""

    def trials(self, trials: Sequence[tuple[Trial, Measurement]]) -> None:
        """Keep trials, all or none of them."""

    def plans(self, cell: Cell, workload: str, variant: str, plans: Sequence[ExecutedPlan]) -> None:
        """Keep executed plans."""

    def relations(self, cell: Cell, variant: str, relations: Sequence[Relation]) -> None:
        """Keep sizes."""

    def answer(self, cell: Cell, workload: str, variant: str, difference: str) -> None:
        """Keep how a variant's answer differs from the baseline's where it may."""

    def data_check(self, cell: Cell, variant: str, name: str, value: str | None) -> None:
        """Keep what a question to a variant's data answered."""

    def refusal(self, cell: Cell, workload: str, variant: str, reason: str) -> None:
        """Keep that a variant was refused, and why."""

    def overhead(self, overhead: EngineOverhead) -> None:
        """Keep what the client of an engine takes by itself."""

    def environment(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        """Keep what server and machine are."""


class Until(Protocol):
    """Says what still needs trials, where that is not how precise the effects are."""

    @property
    def reason(self) -> str:
        """Why the run ends when nothing is open any more: a sentence."""

    def open_pairs(self) -> set[tuple[Cell, str]]:
        """Return the cells and workloads that need more trials, by what was kept so far."""


class Clock(Protocol):
    """Tells how much time has passed."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds since some moment; never goes back."""
