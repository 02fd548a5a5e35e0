"""Read how operations arrive, and refuse contradictions: shared by SQL and HTTP. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uncork.errors import UsageError
from uncork.load.trace import parse_trace
from uncork.model.http import HttpSpec
from uncork.model.load import ArrivalKind, Arrivals, LoadSpec
from uncork.requests.option import whole
from uncork.requests.part import part_given

if TYPE_CHECKING:
    from uncork.requests.http_options import HttpOptions
    from uncork.requests.sql_options import SqlOptions

_BURST: Final = whole(1, 1_000_000)


def advise_contradictions(options: SqlOptions | HttpOptions, spec: LoadSpec | HttpSpec) -> Iterator[str]:
    """Yield what `--advise` cannot be combined with."""
    if not options.advise:
        return
    part = next(iter(part_given(options)), None if options.nodes is None else "--nodes")
    if part is not None:
        yield f"--advise cannot be combined with {part}: watch with `uncork advise` meanwhile"
    if options.sweep is not None:
        yield "--advise cannot be combined with --sweep, which watches the database anyway"
    if spec.arrivals is not None and spec.arrivals.kind == "trace":
        yield "--advise cannot be combined with --arrivals trace: a trace cannot be sent for 5 s more"


def source_contradictions(options: SqlOptions) -> Iterator[str]:
    """Yield what contradicts the sources of a watched load by SQL: the server, its pooler and its logs."""
    given = {"--postgres": options.postgres, "--pooler": options.pooler, "--logs": options.logs}
    for name in (name for name, value in given.items() if value):
        if not options.advise:
            yield (
                f"{name} is a source of --advise, which watches the database while the load is sent again: "
                "add --advise"
            )
        if options.embedded:
            yield f"--embedded starts a temporary server: leave out {name}"
    if options.pooler is not None and options.postgres is None:
        yield (
            "--pooler requires --postgres, the server behind PgBouncer: a watch through the pool would wait "
            "for its connections"
        )


def local_logs(logs: Sequence[str], what: str) -> tuple[Path, ...]:
    """Return the paths of logs that the database writes during `what`.

    Raises UsageError if one is the address of an object.
    """
    for log in logs:
        if "://" in log:
            raise UsageError(
                f"--logs reads the files that the database writes during the {what}; read objects with "
                "`uncork profile logs` once they hold that time"
            )
    return tuple(map(Path, logs))


def warm_up_contradictions(spec: LoadSpec | HttpSpec) -> Iterator[str]:
    """Yield what a warm-up cannot be combined with."""
    if spec.warmup_ns and spec.arrivals is not None and spec.arrivals.kind == "trace":
        yield (
            "--warmup cannot be combined with --arrivals trace, which has its own times: put the warm-up "
            "into a load before"
        )


def read_arrivals(
    text: str | None,
    rate: float | None,
    read: Callable[[str], str],
    *,
    kinds: tuple[ArrivalKind, ArrivalKind],
    rates: str,
    needed: str,
) -> Arrivals | None:
    """Return how operations arrive at `rate` a second; None for a closed loop.

    `text` is the value of --arrivals, and `read` reads a trace file. `kinds` are the kinds without
    a parameter; the first is the default. Messages use `rates`, which names the options that set a
    rate, and `needed`, which says how to add one. Raises UsageError if `text` is invalid, or
    contradicts `rate`.
    """
    if text is None and rate is None:
        return None
    kind, _, rest = (kinds[0] if text is None else text).partition(":")
    if kind == "trace" and rest:
        if rate is not None:
            raise UsageError(f"--arrivals trace:FILE has its own times: leave out {rates}")
        return Arrivals("trace", offsets_ns=parse_trace(read(rest), rest))
    plain = next((kind_ for kind_ in kinds if kind_ == kind and not rest), None)
    if plain is None and not (kind == "bursts" and rest):
        raise UsageError(
            f'invalid arrivals: "{text}"; expecting {kinds[0]}, {kinds[1]}, bursts:SIZE or trace:FILE'
        )
    if rate is None:
        raise UsageError(f"--arrivals {text} needs a rate: add {needed}")
    if plain is None:
        return Arrivals("bursts", rate, _BURST.read(rest, "--arrivals bursts"))
    return Arrivals(plain, rate)


def refuse(contradictions: Iterable[str]) -> None:
    """Raise UsageError with the first contradiction, if there is any."""
    for problem in contradictions:
        raise UsageError(problem)
