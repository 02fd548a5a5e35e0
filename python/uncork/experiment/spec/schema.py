"""The experiment file: parse TOML text to a `Spec`, or report every problem with its line and key.

The text is an argument and SQL files are read through a function, so this module does not touch the disk.
Validation and the published JSON schema come from the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError, model_validator

from uncork.experiment.spec.batches import BATCH, CHUNKED, Strategy
from uncork.experiment.spec.checks import check_spec
from uncork.experiment.spec.data_checks import DataCheck, OwnMetric
from uncork.experiment.spec.fields import (
    Confidence,
    Name,
    Nanoseconds,
    Section,
    Setting,
    Share,
    SqlSection,
    Word,
    key,
    needs_sql,
    refuse_password,
    several,
)
from uncork.experiment.spec.gates import Guard
from uncork.experiment.spec.http_workloads import HttpFacts
from uncork.experiment.spec.problems import Problem, at, from_validation, hint, refuse, toml_data
from uncork.experiment.spec.raw_file import (
    inline_files,
    places_to_fill,
    service_files,
    too_few,
    too_many_variants,
    with_variant,
)
from uncork.experiment.spec.services import Database, OwnHttp, OwnService, Service
from uncork.experiment.spec.time_zones import TimeZones
from uncork.model.engine import POSTGRESQL
from uncork.model.variant_evidence import EvidenceKind
from uncork.stats.compare import MINIMUM_ROUNDS

# ---- the stopping rule: when an experiment has enough data, and which differences matter ----


class StoppingRule(Section):
    """When to stop measuring, and which differences matter."""

    precision: Share = key(
        "A comparison ends when its interval is this narrow, or its verdict and size are clear.", 0.03
    )
    confidence: Confidence = 0.95
    practical: Share = key("Differences below this do not matter in practice.", 0.03)
    budget: Nanoseconds = key("Maximum duration of the run: set-up, rounds and evidence.", 180 * 10**9)
    blocks: int = key("Blocks per comparison and round; an even number is balanced.", 4, ge=2, le=100)
    minimum_rounds: int = key(
        "A verdict needs this many rounds, and at least 5; on an existing server, blocks.", 5, ge=3, le=100
    )
    maximum_rounds: int = Field(default=40, ge=3, le=1000)
    trial_timeout: Nanoseconds = key("A trial that takes longer has failed.", 60 * 10**9)

    @property
    def verdict_rounds(self) -> int:
        """How many rounds a verdict needs; if the server is not restarted, how many blocks."""
        return max(self.minimum_rounds, MINIMUM_ROUNDS)

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.maximum_rounds < self.minimum_rounds:
            raise ValueError(
                f"maximum_rounds ({self.maximum_rounds}) is below minimum_rounds ({self.minimum_rounds}); "
                "raise it or lower minimum_rounds"
            )
        return self


# ---- set-up, and what a variant overrides ----


class Setup(Section):
    """How a variant's data is made, once for each variant and cell."""

    sql: str | None = key("SQL that creates and fills the tables.")
    file: str | None = key("A file beside this one with the SQL.")
    copy_of: Annotated[str, AfterValidator(refuse_password)] | None = key(
        "Connection string of a database. Each variant's data begins as a copy of it; the SQL, "
        "which may then be left out, runs afterwards. A password comes from PGPASSWORD or ~/.pgpass."
    )
    statistics: Literal["analyze", "keep"] = key(
        "`keep`: the planner's statistics of every variant are those of the copied database, and "
        "what the SQL changes of them; they are not gathered anew for each variant. Needs copy_of.",
        "analyze",
    )
    timeout: Nanoseconds = key("Maximum time for a set-up.", 600 * 10**9)
    shared: bool = key(
        "Variants and cells with the same set-up SQL share one database, made once. Then "
        "the workload's undo must undo what a trial changes.",
        False,
    )
    answers: int = key(
        "Operations of each workload whose answers are compared before the trials.", 20, ge=1, le=1000
    )
    cache: Literal["warm", "cold", "as-is"] = key(
        "What is in memory when a trial begins. warm: the data, as far as it fits shared "
        "buffers. cold: nothing; before each trial the embedded server is restarted, and its files are "
        "dropped from the page cache. as-is: what earlier trials left; nothing is read in advance.",
        "warm",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.copy_of is None:
            needs_sql(self.sql)
            if self.statistics == "keep":
                raise ValueError('statistics = "keep" needs copy_of: only a copy has statistics to keep')
        return self


class OwnSetup(SqlSection):
    """The set-up of one variant, instead of `[setup]`'s SQL."""

    sql: str | None = key("SQL that creates and fills the tables.")
    file: str | None = key("A file beside this one with the SQL.")


class OwnWorkload(SqlSection):
    """The SQL that one variant sends for a workload, instead of the workload's own SQL."""

    sql: str | Annotated[tuple[str, ...], Field(strict=False)] | None = key(
        "As many statements as the workload has."
    )
    file: str | None = key("A file beside this one with one statement.")
    check: str | None = key("Replaces the workload's check.")
    undo: str | Annotated[tuple[str, ...], Field(strict=False)] | None = key("Replaces the workload's undo.")


# ---- sources of parameter values and of the rows of batches ----


class Generator(Section):
    """Numbers for a parameter, generated from the seed."""

    kind: Literal["sequence", "uniform", "zipfian", "permutation"] = Field(
        description="sequence: min, min+1, ... ; uniform: evenly random; zipfian: skewed to low numbers; "
        "permutation: every number once in random order, then again in a new order."
    )
    min: int = 1
    max: int
    exponent: float = key("Skew of zipfian.", 1.1, gt=0, lt=10)

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"max ({self.max}) must not be below min ({self.min})")
        return self


class Parameter(Section):
    """Values for `:name` in a workload: rows of a query's result, or generated numbers."""

    query: str | None = key("SQL that runs on the variant's own data; uses the first column.")
    pick: Literal["sequence", "uniform", "zipfian", "permutation"] = key(
        "How rows of the query's result are chosen.", "uniform"
    )
    exponent: float = key("Skew of pick = zipfian.", 1.1, gt=0, lt=10)
    generator: Generator | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.query is None) == (self.generator is None):
            raise ValueError("give exactly one of query and generator")
        return self


class BatchFacts(Section):
    """Makes one operation one batch of rows. The variants' `batching` decides how the rows are sent.

    The SQL reads the rows from `:batch` as from a table: `INSERT INTO item SELECT id, name FROM :batch`.
    Or it names the columns: `:id` is a value, or with unnest the array of all values.
    """

    rows: int | str = Field(description='Rows per batch, or a factor: ":rows".')
    columns: dict[Word, str] = Field(
        min_length=1, description='Columns of `:batch` with their types: { id = "integer" }.'
    )
    query: str | None = key(
        "SQL on the variant's own data that returns these columns; batches use its rows in turn. "
        "Without it, each column is one of the workload's parameters."
    )
    least_rows: int = key(
        "Small batches are repeated until a trial has at least this many rows. Warm-up uses at "
        "most this many.",
        1,
        ge=1,
    )


class Growth(Section):
    """How an operation's time grows along a factor, and a prediction far beyond its levels."""

    factor: Word = Field(description="A factor whose levels are numbers above zero, such as rows.")
    to: int | float = Field(
        gt=0, description="The size to extrapolate to. Reports mark it as extrapolated, and say how far."
    )


# ---- the experiment file ----


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
    """The question, and settings of the whole experiment."""

    name: Name = Field(description="Short name; part of each run's id.")
    question: str = Field(min_length=1, description="The question, as a person would ask it.")
    source: str | None = key("Where the question or the published figures come from.")
    seed: int = key("Seed of everything random: order of trials, parameters.", 1, ge=0)
    engine: str = key("Default engine of variants.", POSTGRESQL)
    evidence: list[EvidenceKind] = key(
        "What to collect in extra trials after the timed ones: waits, cpu (user and kernel), "
        "stacks, syscalls. Plans are always stored.",
        list,
    )


class Variant(Section):
    """One answer to the question."""

    title: str | None = key("Title in reports. Default: the name.")
    baseline: bool = key("True for the one variant the others are compared with.", False)
    values: dict[Word, str] = key("Texts that replace `:name` in set-up and workload SQL.", dict)
    settings: dict[str, Setting] = key(
        "Server settings of this variant's databases (ALTER DATABASE ... SET). With shared data, and on "
        "engines other than PostgreSQL, they are set on its workloads' connections. A variant with settings "
        "that apply to a whole server (shared_buffers, max_wal_size, ...) has an embedded server of its own.",
        dict,
    )
    observe: Observer | None = key(
        "An observer that runs during this variant's trials: system (machine and processes, ten "
        "times a second), sessions (pg_stat_activity, twenty times), perf (99 stacks a second of each "
        "processor). In such an experiment, nothing is sampled during the other trials."
    )
    batching: Strategy | None = key(
        "How the rows of a workload's batch are sent. rows: one statement and transaction per "
        "row; transaction: the same between BEGIN and COMMIT; pipeline: the same, sent without waiting; "
        "values: many rows per statement; unnest: one array per column; copy: COPY into a temporary table. "
        "All except rows make a batch one transaction."
    )
    connections: Literal["keep", "new"] = key(
        "keep: each client keeps its connection; new: each operation opens a connection of its "
        'own, on PostgreSQL. Its workloads need metric = "throughput", which includes the time of opening, '
        "and are measured in separate trials instead of slices, with a thread for every two clients.",
        "keep",
    )
    engine: str | None = key(
        "Database engine: postgresql, duckdb, clickhouse (chdb, in the client's process), "
        "sqlite, mysql (MySQL or MariaDB, at UNCORK_MYSQL_DSN), or dbapi:MODULE for any driver that follows "
        "PEP 249. Default: the experiment's engine."
    )
    server: Name | None = key(
        "An existing server for this variant, by the name that the command line gives it (as "
        "`uncork guard --candidate dsn=...` does). Default: the run's server."
    )
    extensions: list[Word] = key(
        "PostgreSQL extensions that are created in its databases. If the server does not provide "
        "one, the variant is skipped with that reason.",
        list,
    )
    connect: dict[Word, Setting] = key(
        "Arguments of the driver's connect, for dbapi and mysql. {folder} is the variant's own "
        "folder; a text that begins with $ names an environment variable.",
        dict,
    )
    setup: OwnSetup | None = key("Its own set-up, instead of [setup]'s SQL.")
    workloads: dict[Name, OwnWorkload] = key("Its own SQL for a workload, instead of the workload's.", dict)
    chunk: int | None = key("Maximum rows per statement, for values and unnest. Default: all.", ge=1)
    service: Name | None = key("The service that receives its requests. Default: the file's last one.")
    services: dict[Name, OwnService] = key("Changes to services: command, environment, files.", dict)
    http: OwnHttp | None = key("Its own version, streams and clients.")

    @model_validator(mode="after")
    def _chunked(self) -> Self:
        if self.chunk is not None and self.batching not in CHUNKED:
            raise at(("chunk",), 'works only with batching = "values" or "unnest"')
        return self


class Workload(Section):
    """What clients send: a statement, several as one transaction, or HTTP requests."""

    title: str | None = None
    sql: str | Annotated[tuple[str, ...], Field(strict=False)] | None = key(
        "A statement, or a list as one operation. '\\sleep 5 ms' in it is a pause."
    )
    file: str | None = key("A file beside this one with one statement.")
    transaction: bool = key("Wrap the statements of an operation in BEGIN and COMMIT.", False)
    metric: Literal[
        "latency_mean", "latency_p50", "latency_p90", "latency_p95", "latency_p99", "throughput", "success"
    ] = key(
        "The metric. success: share of requests that succeed in time, in percentage points.", "latency_p50"
    )
    precision: Share | None = key("Replaces stop.precision.")
    practical: Share | None = key("Replaces stop.practical; for success in percentage points.")
    settings: dict[str, Setting] = key("Settings of its connections, unless a variant sets them.", dict)
    clients: int | str = key('Connections in a closed loop: a number, or a factor: ":sessions".', 1)
    threads: int = key("Threads of the load generator.", 1, ge=1, le=64)
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    placement: Literal["auto", "together", "free"] = key(
        "together: generator and backends share one processor, which makes trials comparable; "
        "free: the kernel decides; auto: together for one client, otherwise free.",
        "auto",
    )
    duration: Nanoseconds | None = key(
        "Length of a trial. Without duration and operations, uncork chooses: the variants of a "
        "block take turns in slices of about 20 ms, as many as fit the budget."
    )
    operations: int | None = key("Operations per trial, not a duration.", ge=1)
    blocks: int | None = key(
        "Blocks per round, if trials have a given length. Default: stop.blocks.", ge=2, le=100
    )
    warmup_operations: int = key("Operations before measuring starts, in each trial.", 20, ge=0)
    state: Literal["keep", "reset"] = key(
        "reset: undo what a trial changed before the next; keep: leave it.", "reset"
    )
    undo: str | Annotated[tuple[str, ...], Field(strict=False)] = key(
        "What undoes a trial, instead of restoring the data. Not timed.", ()
    )
    variants: list[Name] = key("Variants to compare. Default: all.", list)
    answer: Literal["same", "same order", "check", "may differ"] = key(
        "Variants that do not return the same rows are refused. For requests, status and body "
        "must match (JSON is compared as JSON). check: only the rows of the check query must match.",
        "same",
    )
    check: str | None = key("A query that runs after the answer check; its rows must match too.")
    parameters: dict[Word, Parameter] = Field(default_factory=dict)
    batch: BatchFacts | None = key("Makes an operation a batch of rows; see below.")
    http: HttpFacts | None = key("Makes an operation a request to the variant's service; see below.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.duration is not None and self.operations is not None:
            raise ValueError(
                "give duration or operations, not both; with neither, uncork chooses what fits the budget"
            )
        if isinstance(self.clients, int) and 1 <= self.clients < self.threads:
            raise ValueError(f"threads ({self.threads}) cannot exceed clients ({self.clients})")
        if self.http is None:
            needs_sql(self.sql)
        if self.undo and self.state == "keep":
            raise ValueError('undo contradicts state = "keep"; remove one of them')
        if self.answer == "check" and (self.check is None or self.http is not None):
            raise ValueError('answer = "check" needs a check query, and a workload that sends SQL')
        return self

    @model_validator(mode="after")
    def _requests(self) -> Self:
        if self.http is None and self.metric == "success":
            raise at(("metric",), "success counts HTTP requests; add http or choose another metric")
        clashing = [name for name in ("file", "sql", "batch", "transaction") if getattr(self, name)]
        if self.http is not None and clashing:
            raise at((clashing[0],), "is only for SQL, but this workload sends HTTP requests")
        return self

    @model_validator(mode="after")
    def _batch(self) -> Self:
        if self.batch is None:
            return self
        if self.transaction:
            raise ValueError("remove transaction; for a batch, each variant's batching decides it")
        if self.operations is None and self.state != "keep":
            raise ValueError(
                'a batch uses up its rows; give operations instead of duration, or set state = "keep" if a '
                "trial may send the same rows again"
            )
        if self.check is None and self.answer != "may differ":
            raise ValueError(
                "a batch needs check, a query that returns the data that every strategy must leave behind; "
                'add it or set answer = "may differ"'
            )
        named, known = set(self.batch.columns), set(self.parameters)
        if self.batch.query is not None and known:
            raise ValueError("give either batch.query or parameters, not both")
        if self.batch.query is None and named != known:
            raise ValueError(
                "batch.columns must have the same names as the parameters, or come from batch.query; "
                f"these differ: {', '.join(sorted(named ^ known))}"
            )
        return self

    @property
    def sources(self) -> dict[str, Parameter]:
        """Return the source of each parameter column; the rows of batch.query stay together."""
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
        """Return whether uncork chooses the length of trials."""
        return self.duration is None and self.operations is None

    @property
    def undoing(self) -> tuple[str, ...]:
        """Return the statements that undo a trial, as written."""
        return several(self.undo)

    def shares_processor(self, clients: int) -> bool:
        """Return whether generator and backends share one processor (on uncork's own server)."""
        return self.placement == "together" or (self.placement == "auto" and clients == 1)

    @property
    def statements(self) -> tuple[str, ...]:
        """Return the statements of one operation, as written."""
        return several(self.sql)


class Server(Section):
    """The server under test."""

    settings: dict[str, Setting] = key("Settings of the embedded server (postgresql.conf).", dict)


Level = str | int | float | bool


class Spec(Section):
    """A whole experiment file."""

    experiment: ExperimentFacts
    variants: dict[Name, Variant] = Field(
        min_length=1,
        description="Two or more; exactly one is the baseline. `uncork guard` also accepts one or none.",
    )
    factors: dict[Word, Annotated[list[Level], Field(min_length=1)] | dict[str, str]] = key(
        "Dimensions varied for every variant: a list of levels, or a table of names and SQL.", dict
    )
    setup: Setup
    time_zones: dict[Word, TimeZones] = key("Offsets of time zones as rows, for set-up SQL.", dict)
    workloads: dict[Name, Workload] = Field(min_length=1)
    services: dict[Name, Service] = key("Programs that run beside the database, in start order.", dict)
    databases: dict[Name, Database] = key("Databases beside the variants' own, for services to read.", dict)
    checks: dict[Name, DataCheck] = key("Queries that run once on each variant's data.", dict)
    metrics: dict[Word, OwnMetric] = key(
        'Queries that run after each trial, whose numbers gates can use: "metric NAME < +5%".', dict
    )
    server: Server = Server()
    stop: StoppingRule = StoppingRule()
    growth: Growth | None = None
    guard: Guard = Guard()
    _made: dict[str, str] = PrivateAttr(default_factory=dict)
    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def made(self) -> Mapping[str, str]:
        """Return the texts generated when the file was read: those of `time_zones`, by name."""
        return self._made

    @property
    def files(self) -> Mapping[str, str]:
        """Return the files beside the experiment that its services need, by name."""
        return self._files

    @model_validator(mode="after")
    def _baseline(self) -> Self:
        count = sum(variant.baseline for variant in self.variants.values())
        if count != 1 and len(self.variants) > 1:
            raise at(
                ("variants",),
                f"exactly one variant must have baseline = true; found {count or 'none'} "
                f"among {', '.join(self.variants)}",
            )
        return self

    @property
    def baseline(self) -> str:
        """Return the name of the variant that the others are compared with."""
        return next(name for name, variant in self.variants.items() if variant.baseline)

    def engine(self, variant: str) -> str:
        """Return the engine of a variant."""
        return self.variants[variant].engine or self.experiment.engine

    @property
    def engines(self) -> tuple[str, ...]:
        """Return every engine that a variant runs on, without duplicates."""
        return tuple(dict.fromkeys(map(self.engine, self.variants)))

    def compared(self, workload: str) -> tuple[str, ...]:
        """Return the variants that a workload compares, in file order; always with the baseline."""
        chosen = {*(self.workloads[workload].variants or self.variants), self.baseline}
        return tuple(name for name in self.variants if name in chosen)

    @property
    def http_workloads(self) -> tuple[str, ...]:
        """Return the workloads that send HTTP requests."""
        return tuple(name for name, facts in self.workloads.items() if facts.http is not None)

    def opens_connections(self, workload: str) -> bool:
        """Return whether a variant that a workload compares opens a connection for each operation."""
        return any(self.variants[name].connections == "new" for name in self.compared(workload))

    def services_of(self, variant: str) -> tuple[str, ...]:
        """Return the services that run for a variant, in order; the last one receives its requests."""
        if not self.services:
            return ()
        needed = {self.variants[variant].service or list(self.services)[-1]}
        for name in reversed(self.services):
            if name in needed:
                needed |= set(self.services[name].after)
        return tuple(name for name in self.services if name in needed)

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
        """Return the target precision of a workload's intervals."""
        return self.workloads[workload].precision or self.stop.precision

    def practical(self, workload: str) -> float:
        """Return the smallest difference that matters on a workload."""
        return self.workloads[workload].practical or self.stop.practical

    def blocks(self, workload: str) -> int:
        """Return the number of blocks of a workload per round and cell."""
        return self.workloads[workload].blocks or self.stop.blocks

    def clients(self, workload: str, levels: Mapping[str, str]) -> int:
        """Return a workload's number of connections for these factor levels."""
        return self._size(self.workloads[workload].clients, levels)

    @property
    def observes(self) -> bool:
        """Return whether the file measures the cost of observers; then nothing else may watch trials."""
        return any(variant.observe for variant in self.variants.values())

    def batch_rows(self, workload: str, levels: Mapping[str, str]) -> int:
        """Return the rows per batch of a workload for these factor levels."""
        facts = self.workloads[workload].batch
        assert facts is not None  # noqa: S101 -- called only for workloads with a batch
        return self._size(facts.rows, levels)

    def _size(self, size: int | str, levels: Mapping[str, str]) -> int:
        if isinstance(size, int):
            return size
        factor = size.removeprefix(":")
        return int(self.levels(factor)[levels[factor]])

    def levels(self, factor: str) -> dict[str, str]:
        """Return the texts that replace `:factor` in SQL, by level name."""
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
    """Parse an experiment file. Raises SpecError with every problem, each with file, line and key.

    `file` is its name, for messages. `read` returns the content of an SQL file named in it, or raises
    OSError. `overrides` are the factor levels to keep, by factor (``--set rows=1000``). `time_zones` returns
    the rows of an entry of ``[time_zones]``, or raises KeyError with the name of an unknown zone. `alone`
    accepts a single variant, or none, for a guard that makes two sides of it.
    """
    refuse([*too_many_variants(text), *places_to_fill(text)], file, text)
    data = toml_data(file, text)
    if alone:
        data = with_variant(data)
    refuse(too_many_variants(data.get("variants", ())), file, text)
    found = [*inline_files(data, read), *too_few(data, alone=alone)]
    spec: Spec | None = None
    try:
        spec = Spec.model_validate(data)
    except ValidationError as error:
        found += from_validation(error, Spec)
    if spec is not None and not found:
        found += check_spec(spec)
        files, more = service_files(*_named_files(spec), read)
        spec._files.update(files)
        found += more
        spec, more = _keep_levels(spec, overrides)
        found += more
        found += _make_time_zones(spec, time_zones)
    refuse(found, file, text)
    assert spec is not None  # noqa: S101 -- validation fails with at least one problem
    return spec


def _named_files(spec: Spec) -> tuple[dict[tuple[str, ...], list[str]], list[str]]:
    commands = [service.command for service in spec.services.values()]
    commands += [metric.command or () for metric in spec.metrics.values()]
    commands += [own.command or () for variant in spec.variants.values() for own in variant.services.values()]
    named: dict[tuple[str, ...], list[str]] = {
        ("services", name, "files"): service.files for name, service in spec.services.items()
    }
    for variant, facts in spec.variants.items():
        for name, own in facts.services.items():
            named["variants", variant, "services", name, "files"] = list(own.files.values())
    return named, [word for command in commands for word in command]


def _level_name(level: Level) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _make_time_zones(spec: Spec, make: Callable[[str, TimeZones], str] | None) -> Iterator[Problem]:
    for name, zones in spec.time_zones.items():
        try:
            spec._made[name] = "" if make is None else make(name, zones)
        except KeyError as error:
            yield Problem(("time_zones", name, "zones"), f'the IANA database has no zone "{error.args[0]}"')


def _keep_levels(spec: Spec, overrides: dict[str, list[str]]) -> tuple[Spec, list[Problem]]:
    found = []
    factors: dict[str, Any] = dict(spec.factors)
    for factor, chosen in overrides.items():
        if factor not in spec.factors:
            found.append(
                Problem(
                    ("factors",), f"--set {factor}=...: there is no such factor{hint(factor, spec.factors)}"
                )
            )
            continue
        levels = spec.levels(factor)
        unknown = [level for level in chosen if level not in levels]
        if unknown:
            found.append(
                Problem(
                    ("factors", factor),
                    f'--set {factor}={",".join(chosen)}: there is no level "{unknown[0]}"; '
                    f"expected one of {', '.join(levels)}",
                )
            )
            continue
        original = spec.factors[factor]
        if isinstance(original, dict):
            factors[factor] = {name: text for name, text in original.items() if name in chosen}
        else:
            factors[factor] = [level for level in original if _level_name(level) in chosen]
    return spec.model_copy(update={"factors": factors}), found
