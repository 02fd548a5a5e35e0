"""The jobs that nodes get, without secrets: nodes have their own, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from uncork.engines.conninfo import Address
from uncork.errors import UsageError
from uncork.model.load import ClusterRequest, LoadPart
from uncork.model.redaction import NOT_STORED, redact, without_header_secret
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob, ServerOptions
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source, made_source


@dataclass(frozen=True, slots=True)
class HostJob:
    """An experiment for a host: its text, its files and options, and the server to measure on."""

    text: str
    files: Mapping[str, str]
    options: Options
    server: ServerChoice = field(repr=False)

    @property
    def source(self) -> Source:
        """The experiment. Raises SpecError if the host cannot read it."""
        return made_source(self.text, self.files, self.options, "experiment.toml")


@dataclass(frozen=True, slots=True)
class PartJob:
    """A part of a job: the whole job, without secrets, and which part of how many to send."""

    job: AnyLoad
    number: int
    count: int


def part_of_job(wanted: PartJob, environment: Mapping[str, str]) -> AnyLoad:
    """Return the job of a part, with ``${NAME}`` of this node. Raises UsageError."""
    job = wanted.job
    part = replace(job.spec.part or LoadPart(), number=wanted.number, count=wanted.count, lease="-")
    if isinstance(job, LoadJob):
        # The first part vacuums for all.
        vacuum = job.vacuum if wanted.number == 1 else "none"
        return replace(job, vacuum=vacuum, spec=replace(job.spec, part=part, progress_s=None))
    missing = [name for name, _ in job.spec.environment if name not in environment]
    if missing:
        raise UsageError(
            f"the requests use ${{{missing[0]}}}, but the node has no environment variable {missing[0]}: "
            "set it where Ray is started on each node"
        )
    values = tuple((name, environment[name]) for name, _ in job.spec.environment)
    return replace(job, spec=replace(job.spec, part=part, progress_s=None, environment=values))


def portable_sql(job: LoadJob, address: Address, request: ClusterRequest) -> LoadJob:
    """Return a job that names its server completely, except for the password and certificates.

    Nodes look these up in their own PGPASSWORD, password file and ~/.postgresql. On this machine, the
    password stays. Raises UsageError if the connection string has a password, and the cluster is another.
    """
    refuse_password(job.server.dsn or job.server.database or "", request)
    if job.server.password is not None and not request.own:
        raise UsageError(
            "a password is not sent to the cluster: leave out -W/--password, and set PGPASSWORD where Ray is "
            "started on each node, or write a password file (.pgpass) there"
        )
    usual = str(Path.home() / ".postgresql")

    def named(path: str | None) -> str | None:
        return None if path is None or path.startswith(usual) else path

    portable = replace(
        address,
        password=address.password if request.own else None,
        sslrootcert=named(address.sslrootcert),
        sslcert=named(address.sslcert),
        sslkey=named(address.sslkey),
    )
    return replace(job, server=ServerOptions(dsn=portable.conninfo()))


def refuse_password(dsn: str, request: ClusterRequest) -> None:
    """Raise UsageError if a connection string has a password, and would leave this machine with it."""
    if not request.own and redact(dsn) != dsn:
        raise UsageError(
            "the connection string has a password, which would be sent to the cluster: leave it out, and set "
            "PGPASSWORD where Ray is started on each node, or write a password file (.pgpass) there"
        )


def portable_http(job: HttpJob, request: ClusterRequest) -> HttpJob:
    """Return a job without values of ``${NAME}``. Raises UsageError if headers have secrets."""
    for request_spec in () if request.own else (*job.spec.login, *job.spec.requests):
        for name, value in request_spec.headers:
            if without_header_secret(name, value) == NOT_STORED:
                raise UsageError(
                    f"the header {name} holds a secret, which would be sent to the cluster: write a requests "
                    f'file (-f) with {name} = "${{NAME}}", and set the variable NAME where Ray is started on '
                    "each node"
                )
    names = tuple((name, "") for name, _ in job.spec.environment)
    return replace(job, spec=replace(job.spec, environment=names))
