"""The experiment file: TOML text in, a `Spec` out, or every problem with its line and key.

The text comes in as an argument and the SQL files beside it through a function, so nothing here touches
the disk. Validation and the published JSON schema come from the same classes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from uncork.errors import SpecError
from uncork.experiment.spec import problems
from uncork.experiment.spec.batches import BATCH, CHUNKED, Strategy
from uncork.experiment.spec.checks import check_spec
from uncork.experiment.spec.data_checks import DataCheck
from uncork.experiment.spec.fields import (
    Name,
    Nanoseconds,
    Section,
    Setting,
    Share,
    Word,
    needs_sql,
    several,
)
from uncork.experiment.spec.growth import Growth
from uncork.experiment.spec.guard import Guard
from uncork.experiment.spec.http_workloads import HttpFacts
from uncork.experiment.spec.inlining import inline_files, service_files
from uncork.experiment.spec.overrides import OwnSetup, OwnWorkload
from uncork.experiment.spec.services import Database, OwnHttp, OwnService, Service
from uncork.experiment.spec.single_variant import too_few, with_variant
from uncork.experiment.spec.sources import BatchFacts, Generator, Parameter
from uncork.experiment.spec.stopping import StoppingRule
from uncork.experiment.spec.time_zones import TimeZones
from uncork.model.engine import POSTGRESQL
from uncork.model.evidence import EvidenceKind

__all__ = [
    "METRICS",
    "BatchFacts",
    "ExperimentFacts",
    "Generator",
    "Observer",
    "Parameter",
    "Server",
    "Setup",
    "Spec",
    "StoppingRule",
    "Variant",
    "Workload",
    "parse_spec",
]

Observer = Literal["system", "sessions", "perf"]

METRICS: dict[str, Literal["lower", "higher"]] = {
    "latency_mean": "lower",
    "latency_p50": "lower",
    "latency_p90": "lower",
    "latency_p95": "lower",
    "latency_p99": "lower",
    "throughput": "higher",
    "success": "higher",
}
"""Each metric, and which direction is better."""


class ExperimentFacts(Section):
    """What is asked."""

    name: Name = Field(description="Short name; runs are called after it.")
    question: str = Field(min_length=1, description="The question, as a person would ask it.")
    source: str | None = Field(
        default=None, description="Where the question or the published figures come from."
    )
    seed: int = Field(default=1, ge=0, description="Seed of everything random: order of trials, parameters.")
    engine: str = Field(default=POSTGRESQL, description="The engine of variants that name none.")
    evidence: list[EvidenceKind] = Field(
        default_factory=list,
        description="What is gathered in trials of their own, after the timed ones: waits, cpu (user and "
        "kernel), stacks, syscalls; plans are always kept.",
    )


class Variant(Section):
    """One answer to the question."""

    title: str | None = Field(default=None, description="How reports call it; the name if absent.")
    baseline: bool = Field(
        default=False, description="True for the one variant the others are compared with."
    )
    values: dict[Word, str] = Field(
        default_factory=dict, description="Texts that stand for `:name` in set-up and workload SQL."
    )
    settings: dict[str, Setting] = Field(
        default_factory=dict,
        description="Server settings of this variant's databases (ALTER DATABASE ... SET); with shared data, "
        "and on engines besides PostgreSQL, of its workloads' connections.",
    )
    observe: Observer | None = Field(
        default=None,
        description="What watches the server beside this variant's trials: system (machine and processes, "
        "ten times a second), sessions (pg_stat_activity, twenty times), perf (99 stacks a second of each "
        "processor). In such an experiment nothing is sampled beside the other trials.",
    )
    batching: Strategy | None = Field(
        default=None,
        description="How the rows of a workload's batch reach the server. rows: a statement each, and each "
        "its own transaction; transaction: the same between BEGIN and COMMIT; pipeline: the same, sent "
        "without waiting; values: many rows a statement; unnest: an array a column; copy: COPY into a "
        "temporary table. All but rows make a batch one transaction.",
    )
    engine: str | None = Field(
        default=None,
        description="The database engine: postgresql, duckdb, clickhouse (chdb, in the client's process), "
        "sqlite, mysql (MySQL or MariaDB, at UNCORK_MYSQL_DSN), or dbapi:MODULE for any driver that follows "
        "PEP 249. The experiment's if absent.",
    )
    server: Name | None = Field(
        default=None,
        description="An existing server of its own, by the name that the command line gives it (as `uncork "
        "guard --candidate dsn=...` does); the run's server if absent.",
    )
    extensions: list[Word] = Field(
        default_factory=list,
        description="Extensions of PostgreSQL that its databases have; where the server has not got one, the "
        "variant is skipped with that reason.",
    )
    connect: dict[Word, Setting] = Field(
        default_factory=dict,
        description="What the driver's connect takes, for dbapi and mysql; {folder} is a folder of the "
        "variant's own, and a text that begins with $ names an environment variable.",
    )
    setup: OwnSetup | None = Field(default=None, description="Its own set-up, in place of [setup]'s SQL.")
    workloads: dict[Name, OwnWorkload] = Field(
        default_factory=dict, description="Its own SQL for a workload, in place of the workload's."
    )
    chunk: int | None = Field(
        default=None, ge=1, description="The most rows a statement, for values and unnest; all if absent."
    )
    service: Name | None = Field(
        default=None, description="The service that its requests go to; the last one of the file if absent."
    )
    services: dict[Name, OwnService] = Field(
        default_factory=dict, description="What it changes of services: command, environment, files."
    )
    http: OwnHttp | None = Field(
        default=None, description="How it sends requests: version, streams and clients of its own."
    )

    @model_validator(mode="after")
    def _chunked(self) -> Self:
        if self.chunk is not None and self.batching not in CHUNKED:
            raise problems.at(("chunk",), 'is for batching = "values" and "unnest" only')
        return self


class Setup(Section):
    """How a variant's data is made, once for each variant and cell."""

    sql: str | None = Field(default=None, description="SQL that creates and fills the tables.")
    file: str | None = Field(default=None, description="A file beside this one that holds the SQL.")
    timeout: Nanoseconds = Field(default=600 * 10**9, description="The longest a set-up may take.")
    shared: bool = Field(
        default=False,
        description="Variants and cells whose set-up comes out the same share one database, made once. What "
        "a trial changes must then be undone by the workload's undo.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


class Workload(Section):
    """What is sent and how: a statement, or several as one transaction, or requests by HTTP, by clients."""

    title: str | None = None
    sql: str | Annotated[tuple[str, ...], Field(strict=False)] | None = Field(
        default=None, description="One statement, or a list that together is one operation."
    )
    file: str | None = Field(default=None, description="A file beside this one that holds one statement.")
    transaction: bool = Field(
        default=False, description="Wrap the statements of an operation in BEGIN and COMMIT."
    )
    metric: Literal[
        "latency_mean", "latency_p50", "latency_p90", "latency_p95", "latency_p99", "throughput", "success"
    ] = Field(
        default="latency_p50",
        description="What variants are compared by; success is the share of requests that succeed in time, "
        "compared in percentage points.",
    )
    precision: Share | None = Field(default=None, description="In place of stop.precision.")
    practical: Share | None = Field(
        default=None, description="In place of stop.practical; of success in percentage points."
    )
    clients: int | str = Field(
        default=1, description='Connections in a closed loop: a number, or a factor: ":sessions".'
    )
    threads: int = Field(default=1, ge=1, le=64, description="Threads of the load generator.")
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    placement: Literal["auto", "together", "free"] = Field(
        default="auto",
        description="together: generator and backends share one processor, so that trials are alike; free: "
        "the kernel decides; auto: together for one client, else free.",
    )
    duration: Nanoseconds | None = Field(
        default=None,
        description="How long a trial measures. Without duration and operations, uncork chooses: the arms of "
        "a block take turns in slices of some 20 ms, as many as the budget holds.",
    )
    operations: int | None = Field(
        default=None, ge=1, description="How many operations a trial measures, in place of duration."
    )
    blocks: int | None = Field(
        default=None,
        ge=2,
        le=100,
        description="Blocks of it in a round, where trials have a length; stop.blocks if absent.",
    )
    warmup_operations: int = Field(
        default=20, ge=0, description="Operations before measuring, in each trial."
    )
    state: Literal["keep", "reset"] = Field(
        default="reset",
        description="reset: what a trial changed is undone before the next; keep: it stays for the next.",
    )
    undo: str | Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(),
        description="One statement, or a list, that undoes what a trial changed, in place of restoring the "
        "data; not timed.",
    )
    variants: list[Name] = Field(default_factory=list, description="Variants it compares; all if absent.")
    answer: Literal["same", "same order", "may differ"] = Field(
        default="same",
        description="Variants must return the same rows (of requests: the same status and body, JSON as "
        "JSON), else they are refused.",
    )
    check: str | None = Field(
        default=None, description="A query run after the answer check's operations; it must agree as well."
    )
    parameters: dict[Word, Parameter] = Field(default_factory=dict)
    batch: BatchFacts | None = Field(
        default=None, description="Makes an operation a batch of rows; see below."
    )
    http: HttpFacts | None = Field(
        default=None, description="Makes an operation a request to the variant's service; see below."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.duration is not None and self.operations is not None:
            raise ValueError(
                "give either duration or operations, or neither: uncork then chooses what fits the budget"
            )
        if isinstance(self.clients, int) and 1 <= self.clients < self.threads:
            raise ValueError(f"threads ({self.threads}) cannot exceed clients ({self.clients})")
        if self.http is None:
            needs_sql(self.sql)
        if self.undo and self.state == "keep":
            raise ValueError('undo contradicts state = "keep"')
        return self

    @model_validator(mode="after")
    def _requests(self) -> Self:
        if self.http is None and self.metric == "success":
            raise problems.at(("metric",), "success is that of requests: the workload needs http")
        clashing = [name for name in ("file", "sql", "batch", "transaction") if getattr(self, name)]
        if self.http is not None and clashing:
            raise problems.at((clashing[0],), "is for SQL; this workload sends requests by http")
        return self

    @model_validator(mode="after")
    def _batch(self) -> Self:
        if self.batch is None:
            return self
        if self.transaction:
            raise ValueError("transaction is the variants' choice for a batch: their batching decides")
        if self.operations is None:
            raise ValueError("a batch uses up rows: give operations, not duration")
        if self.check is None and self.answer != "may differ":
            raise ValueError(
                "a batch needs a check: the query that shows what data every strategy must leave behind "
                '(or answer = "may differ")'
            )
        named, known = set(self.batch.columns), set(self.parameters)
        if self.batch.query is not None and known:
            raise ValueError("give either batch.query or parameters, not both")
        if self.batch.query is None and named != known:
            raise ValueError(
                "the columns of the batch must be the parameters, or come from batch.query; "
                f"different: {', '.join(sorted(named ^ known))}"
            )
        return self

    @property
    def sources(self) -> dict[str, Parameter]:
        """Where each column of the parameter table comes from; the rows of batch.query stay together."""
        if self.batch is None:
            return self.parameters
        query = self.batch.query
        if query is None:
            return {name: self.parameters[name] for name in self.batch.columns}
        rows = query.strip().rstrip(";")
        table = f"(\n{rows}\n) AS {BATCH}"
        return {
            name: Parameter(query=f"SELECT {name} FROM {table}", pick="sequence")  # noqa: S608
            for name in self.batch.columns
        }

    @property
    def fitted(self) -> bool:
        """Whether uncork chooses how long trials are."""
        return self.duration is None and self.operations is None

    @property
    def undoing(self) -> tuple[str, ...]:
        """The statements that undo a trial, as written."""
        return several(self.undo)

    def shares_processor(self, clients: int) -> bool:
        """Say whether generator and backends work on one processor (on a server of our own)."""
        return self.placement == "together" or (self.placement == "auto" and clients == 1)

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements of one operation, as written."""
        return several(self.sql)


class Server(Section):
    """The server under test."""

    settings: dict[str, Setting] = Field(
        default_factory=dict, description="Settings of the embedded server (postgresql.conf)."
    )


Level = str | int | float | bool


class Spec(Section):
    """A whole experiment file."""

    experiment: ExperimentFacts
    variants: dict[Name, Variant] = Field(
        min_length=1,
        description="Two or more; exactly one is the baseline. `uncork guard` takes one, or none as well.",
    )
    factors: dict[Word, Annotated[list[Level], Field(min_length=1)] | dict[str, str]] = Field(
        default_factory=dict,
        description="Dimensions swept for every variant: a list of levels, or a table of names and SQL.",
    )
    setup: Setup
    time_zones: dict[Word, TimeZones] = Field(
        default_factory=dict, description="Offsets of time zones as rows, for set-up SQL."
    )
    workloads: dict[Name, Workload] = Field(min_length=1)
    services: dict[Name, Service] = Field(
        default_factory=dict,
        description="Programs that run beside the database, in the order of their start.",
    )
    databases: dict[Name, Database] = Field(
        default_factory=dict, description="Databases beside the variants' own, for services to read."
    )
    checks: dict[Name, DataCheck] = Field(
        default_factory=dict, description="Questions asked once of each variant's data."
    )
    server: Server = Server()
    stop: StoppingRule = StoppingRule()
    growth: Growth | None = None
    guard: Guard = Guard()
    _made: dict[str, str] = PrivateAttr(default_factory=dict)
    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def made(self) -> Mapping[str, str]:
        """The texts that were made when the file was read: of `time_zones`, by name."""
        return self._made

    @property
    def files(self) -> Mapping[str, str]:
        """The files beside the experiment that its services need, by name."""
        return self._files

    @model_validator(mode="after")
    def _baseline(self) -> Self:
        count = sum(variant.baseline for variant in self.variants.values())
        if count != 1 and len(self.variants) > 1:
            raise problems.at(
                ("variants",),
                f"exactly one variant must have baseline = true; found {count or 'none'} "
                f"among {', '.join(self.variants)}",
            )
        return self

    @property
    def baseline(self) -> str:
        """The name of the variant the others are compared with."""
        return next(name for name, variant in self.variants.items() if variant.baseline)

    def engine(self, variant: str) -> str:
        """Return the engine of a variant."""
        return self.variants[variant].engine or self.experiment.engine

    @property
    def engines(self) -> tuple[str, ...]:
        """Every engine that a variant runs on, each once."""
        return tuple(dict.fromkeys(map(self.engine, self.variants)))

    def compared(self, workload: str) -> tuple[str, ...]:
        """Return the variants that a workload compares, in file order; the baseline is always among them."""
        chosen = {*(self.workloads[workload].variants or self.variants), self.baseline}
        return tuple(name for name in self.variants if name in chosen)

    @property
    def http_workloads(self) -> tuple[str, ...]:
        """The workloads that send requests by HTTP."""
        return tuple(name for name, facts in self.workloads.items() if facts.http is not None)

    def services_of(self, variant: str) -> tuple[str, ...]:
        """Return the services that run for a variant, in order: last the one that its requests go to."""
        if not self.services:
            return ()
        wanted = {self.variants[variant].service or list(self.services)[-1]}
        for name in reversed(self.services):
            if name in wanted:
                wanted |= set(self.services[name].after)
        return tuple(name for name in self.services if name in wanted)

    def setup_sql(self, variant: str) -> str:
        """Return the set-up of a variant, as written."""
        own = self.variants[variant].setup
        return (self.setup if own is None else own).sql or ""

    def statements(self, workload: str, variant: str) -> tuple[str, ...]:
        """Return the statements that a variant sends for an operation, as written."""
        own = self.variants[variant].workloads.get(workload)
        return self.workloads[workload].statements if own is None else several(own.sql)

    def undoing(self, workload: str, variant: str) -> tuple[str, ...]:
        """Return the statements that undo a trial of a variant, as written."""
        own = self.variants[variant].workloads.get(workload)
        return self.workloads[workload].undoing if own is None or own.undo is None else several(own.undo)

    def check(self, workload: str, variant: str) -> str | None:
        """Return the check of a workload for a variant, as written."""
        own = self.variants[variant].workloads.get(workload)
        return self.workloads[workload].check if own is None or own.check is None else own.check

    def precision(self, workload: str) -> float:
        """Return how narrow the intervals of a workload should become."""
        return self.workloads[workload].precision or self.stop.precision

    def practical(self, workload: str) -> float:
        """Return the difference that matters on a workload."""
        return self.workloads[workload].practical or self.stop.practical

    def blocks(self, workload: str) -> int:
        """Return how many blocks of a workload a round holds in each cell."""
        return self.workloads[workload].blocks or self.stop.blocks

    def clients(self, workload: str, levels: Mapping[str, str]) -> int:
        """Return a workload's connections where factors have these levels."""
        return self._size(self.workloads[workload].clients, levels)

    @property
    def observes(self) -> bool:
        """Whether the cost of observers is asked for: nothing else may then watch the trials."""
        return any(variant.observe for variant in self.variants.values())

    def batch_rows(self, workload: str, levels: Mapping[str, str]) -> int:
        """Return the rows of a workload's batch where factors have these levels."""
        facts = self.workloads[workload].batch
        assert facts is not None  # noqa: S101 -- asked of workloads with a batch only
        return self._size(facts.rows, levels)

    def _size(self, size: int | str, levels: Mapping[str, str]) -> int:
        if isinstance(size, int):
            return size
        factor = size.removeprefix(":")
        return int(self.levels(factor)[levels[factor]])

    def levels(self, factor: str) -> dict[str, str]:
        """Map a factor's level names to the texts that stand for `:factor` in SQL."""
        levels = self.factors[factor]
        if isinstance(levels, dict):
            return dict(levels)
        return {_level_name(level): _level_name(level) for level in levels}


def parse_spec(
    text: str,
    *,
    file: str,
    read: Callable[[str], str],
    overrides: dict[str, list[str]],
    time_zones: Callable[[str, TimeZones], str] | None = None,
    alone: bool = False,
) -> Spec:
    """Read an experiment file.

    Args:
        text: the file's content.
        file: its name, for messages.
        read: returns the content of an SQL file named in it; raises OSError.
        overrides: factor levels to keep, by factor (the command line's ``--set rows=1000``).
        time_zones: returns the rows of an entry of ``[time_zones]``, given its name; raises KeyError with the
            name of a zone that there is not.
        alone: takes a single variant, or none, for a guard to make two sides of.

    Raises:
        SpecError: with every problem found, one a line, each with file, line and key.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(problems.toml_message(file, text, error)) from error
    if alone:
        data = with_variant(data)
    found = [*inline_files(data, read), *too_few(data, alone=alone)]
    spec: Spec | None = None
    try:
        spec = Spec.model_validate(data)
    except ValidationError as error:
        found += problems.from_validation(error, Spec)
    if spec is not None and not found:
        found += check_spec(spec)
        files, more = service_files(*_named_files(spec), read)
        spec._files.update(files)
        found += more
        spec, more = _keep_levels(spec, overrides)
        found += more
        found += _make_time_zones(spec, time_zones)
    if found or spec is None:
        raise SpecError("\n".join(problem.text(file, text) for problem in problems.in_order(found, text)))
    return spec


def _named_files(spec: Spec) -> tuple[dict[tuple[str, ...], list[str]], list[str]]:
    """Return the files that services name, and the words of all commands."""
    commands = [service.command for service in spec.services.values()]
    commands += [own.command or () for one in spec.variants.values() for own in one.services.values()]
    named: dict[tuple[str, ...], list[str]] = {
        ("services", name, "files"): service.files for name, service in spec.services.items()
    }
    for variant, facts in spec.variants.items():
        for name, own in facts.services.items():
            named["variants", variant, "services", name, "files"] = list(own.files.values())
    return named, [word for command in commands for word in command]


def _level_name(level: Level) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _make_time_zones(spec: Spec, make: Callable[[str, TimeZones], str] | None) -> Iterator[problems.Problem]:
    for name, wanted in spec.time_zones.items():
        try:
            spec._made[name] = "" if make is None else make(name, wanted)
        except KeyError as error:
            yield problems.Problem(
                ("time_zones", name, "zones"), f'the IANA database has no zone "{error.args[0]}"'
            )


def _keep_levels(spec: Spec, overrides: dict[str, list[str]]) -> tuple[Spec, list[problems.Problem]]:
    found = []
    factors: dict[str, Any] = dict(spec.factors)
    for factor, chosen in overrides.items():
        if factor not in spec.factors:
            known = set(spec.factors)
            found.append(
                problems.Problem(
                    ("factors",), f"--set {factor}=...: no such factor{problems.hint(factor, known)}"
                )
            )
            continue
        levels = spec.levels(factor)
        unknown = [level for level in chosen if level not in levels]
        if unknown:
            found.append(
                problems.Problem(
                    ("factors", factor),
                    f'--set {factor}={",".join(chosen)}: no level "{unknown[0]}"; it has {", ".join(levels)}',
                )
            )
            continue
        original = spec.factors[factor]
        if isinstance(original, dict):
            factors[factor] = {name: text for name, text in original.items() if name in chosen}
        else:
            factors[factor] = [level for level in original if _level_name(level) in chosen]
    return spec.model_copy(update={"factors": factors}), found
