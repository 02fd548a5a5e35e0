"""The ports of the runner. Adapters are in `engines`, `load` and `store`; fakes are in the tests."""

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
from uncork.model.variant_evidence import Sampling


class Server(Protocol):
    """A database server with the experiment's data. Every method may raise `ServerCrash`."""

    @property
    def restartable(self) -> bool:
        """Return whether `restart` gives a new server process; if so, the statistical unit is the round."""

    @property
    def alive(self) -> bool:
        """Return whether the server answers."""

    def start(self) -> None:
        """Start the server, or connect to it. Raises SetupError or ConnectError."""

    def lacking(self, variant: str, extensions: Sequence[str] = ()) -> str | None:
        """Return why a variant cannot run on the started server; None if it can."""

    def restart(self) -> None:
        """Restart the server; do nothing if uncork does not control it."""

    def recover(self) -> None:
        """Start the server again after a crash. Raises ServerCrash if that fails."""

    def stop(self) -> None:
        """Remove everything that the run created there. Safe to call at any time, and twice."""

    def begin_setup(self) -> None:
        """Make data quickly from now on: a server of our own does not wait for its disk."""

    def end_setup(self) -> None:
        """Write all data to disk, and wait for it as usual from now on."""

    def build_base(self, conninfo: str, *, keep_statistics: bool = False) -> str:
        """Copy a database, with which `build` then begins; return how. Raises SetupError."""

    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Create a variant's data in a cell. Raises SetupError."""

    def build_beside(self, name: str, script: str, timeout_ns: int) -> None:
        """Create a database beside the variants' own. Raises SetupError."""

    def beside(self, name: str, variant: str) -> Target:
        """Return how a variant reaches such a database."""

    def restore(self, cell: Cell, arm: Arm) -> None:
        """Restore an arm's data to the state that `build` left."""

    def restore_all(self, homes: Sequence[tuple[Cell, Arm]]) -> None:
        """Restore the data of several arms at once, and read it into the cache."""

    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute the experiment's own statements that undo a trial, one by one. Raises SetupError."""

    def warm(self, cell: Cell, arm: Arm) -> None:
        """Read an arm's data into the cache."""

    def cool(self, cell: Cell, arm: Arm) -> None:
        """Restart an arm's server with empty caches. Raises SetupError if that is impossible."""

    def warm_beside(self) -> None:
        """Read the databases beside the variants' own into the cache."""

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Return the target of an arm's load."""

    def column(self, cell: Cell, arm: Arm, query: str) -> list[str | None]:
        """Return a query's first column. Raises SetupError if it fails."""

    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        """Return a digest of a query's rows in any order. Raises SetupError if it fails."""

    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Execute a request's operations once and return the results of its statements.

        The results have the form that all engines share (see `model.answer`); statements without rows are
        left out. Raises SetupError if one fails.
        """

    def explain(
        self,
        cell: Cell,
        arm: Arm,
        name: str,
        statement: str,
        values: Sequence[str | None],
        settings: Mapping[str, str],
    ) -> ExecutedPlan | None:
        """Execute a statement under EXPLAIN with the settings, and undo it; return None if it has no plan."""

    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the sizes of an arm's tables and indexes."""

    def command(
        self,
        cell: Cell,
        arm: Arm,
        command: Sequence[str],
        files: Mapping[str, str],
        environment: Mapping[str, str],
        timeout_ns: int,
    ) -> str:
        """Run a command about an arm's data; return the last line that it prints. Raises SetupError."""

    def snapshot(self, cell: Cell, arm: Arm, *, updates: bool = False) -> Snapshot:
        """Read the counters that belong to an arm; with `updates` also those of updated rows."""

    def facts(self) -> Mapping[str, Mapping[str, str]]:
        """Return facts about server and machine, by heading."""


class Load(Protocol):
    """Sends a trial's load."""

    def run(self, request: TrialRequest) -> Measurement:
        """Run one trial. Raises LoadError if the load cannot be sent at all."""

    def run_block(self, block: BlockRequest) -> BlockMeasurement:
        """Run a block whose arms take turns. Raises LoadError if the load cannot be sent at all."""

    def ask(self, served: Served, requests: Sequence[AskedRequest], timeout_ns: int) -> list[HttpAnswer]:
        """Return a service's answers to requests, one by one. Raises LoadError if one has no answer."""


class Services(Protocol):
    """Starts and ends the services beside the database."""

    def lacking(self, jobs: Sequence[ServiceJob], requires: Sequence[str]) -> str | None:
        """Return what these services need that is missing; None if nothing."""

    def begin(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> None:
        """Start the services that need no other one, so that several become ready at the same time.

        `serve` waits until they are ready. Raises ServiceCrash if one cannot be started.
        """

    def serve(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> Served:
        """Start the services that do not run yet, in order, and return the last one.

        `label` identifies their owner in the log, and `beside` names databases beside the variant's own.
        Raises ServiceCrash if one ends, or is not ready in time.
        """

    def cpu_ns(self, served: Served) -> tuple[int, int] | None:
        """Return the processor time that the services behind it have used, in user mode and in the kernel."""

    def exit_reason(self, served: Served) -> str | None:
        """Return how a service ended that should run; None if all of them run."""

    def release(self, database: str | None = None) -> None:
        """End the services that use a database, or all."""

    def stop(self) -> None:
        """End all services, and remove what they left. Safe to call at any time, and twice."""


class Watching(Protocol):
    """An observer beside a trial; `cpu_ns` is its own processor time, available after it has ended."""

    cpu_ns: int | None


class Observers(Protocol):
    """Watches trials of variants that have an observer."""

    def beside(self, observer: str, target: Target) -> AbstractContextManager[Watching]:
        """Watch while the context is open. Raises SetupError if that is impossible."""


class Evidence(Protocol):
    """Samples a server while an untimed load runs."""

    def gather(
        self,
        place: tuple[Cell, str, str],
        kinds: Sequence[str],
        request: TrialRequest,
        load: Load,
        lengths: Sampling,
    ) -> str | None:
        """Run the load, sample and store meanwhile; return the reason if that was impossible."""


class Sink(Protocol):
    """Stores results. Raises StoreError, for example when the disk is full."""

    def trials(self, trials: Sequence[tuple[Trial, Measurement]]) -> None:
        """Store trials, all or none of them."""

    def plans(self, cell: Cell, workload: str, variant: str, plans: Sequence[ExecutedPlan]) -> None:
        """Store executed plans."""

    def relations(self, cell: Cell, variant: str, relations: Sequence[Relation]) -> None:
        """Store sizes."""

    def answer(self, cell: Cell, workload: str, variant: str, difference: str) -> None:
        """Store how a variant's answer differs from the baseline's, if it may differ."""

    def data_check(self, cell: Cell, variant: str, name: str, value: str | None) -> None:
        """Store the result of a data check."""

    def refusal(self, cell: Cell, workload: str, variant: str, reason: str) -> None:
        """Store that a variant was refused, and why."""

    def overhead(self, overhead: EngineOverhead) -> None:
        """Store the overhead of an engine's client."""

    def environment(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        """Store the facts about server and machine."""


class Until(Protocol):
    """Decides what still needs trials, if that does not depend on the precision of effects."""

    @property
    def reason(self) -> str:
        """Return a sentence saying why the run ends when nothing is open."""

    def open_pairs(self) -> set[tuple[Cell, str]]:
        """Return the cells and workloads that need more trials, given the trials stored so far."""


class Clock(Protocol):
    """Measures elapsed time."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds since a fixed moment; never decreases."""
