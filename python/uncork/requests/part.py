"""Options of a load from several machines: one part (`--shard`), or all parts at once (`--nodes`). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from uncork.errors import UsageError
from uncork.load.recording import parse_trace
from uncork.model.http import HttpSpec
from uncork.model.load import ArrivalKind, Arrivals, ClusterRequest, LoadPart, LoadSpec, OnLost
from uncork.requests.option import Kind, Opt, choice, duration, names_given, whole

if TYPE_CHECKING:
    from uncork.requests.http_options import HttpOptions
    from uncork.requests.sql_options import SqlOptions

PART: Final = "Part of a load from several machines"
_MOST: Final = 100_000


def _shard(text: str, option: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if found is None:
        raise UsageError(f'{option} "{text}": write PART/PARTS, such as 2/4 for the second of four parts')
    number, count = int(found[1]), int(found[2])
    if not 1 <= number <= count <= _MOST:
        raise UsageError(f'{option} "{text}": parts are numbered from 1 to {max(1, min(count, _MOST))}')
    return number, count


def _start(text: str, option: str) -> int:
    """Return a time as Unix nanoseconds; without a time zone it is the local time of this machine."""
    if re.fullmatch(r"\d{9,11}(\.\d{1,9})?", text):
        whole, _, fraction = text.partition(".")
        return int(whole) * 10**9 + int(fraction.ljust(9, "0"))
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f'{option} "{text}" is not a time; write it as 2026-05-31T08:30:00Z, or in seconds since 1970'
        ) from error
    return round(found.timestamp() * 1e6) * 1000


def _taken_start(value: Any, option: str) -> int:
    return (
        round(value.timestamp() * 1e6) * 1000 if isinstance(value, datetime) else _start(str(value), option)
    )


def _taken_shard(value: Any, option: str) -> tuple[int, int]:
    return _shard("/".join(map(str, value)) if isinstance(value, tuple | list) else str(value), option)


Shard = Annotated[
    tuple[int, int] | None,
    Opt(
        "--shard PART/PARTS",
        "Send only this part of the load, such as 2/4. All parts have the same other options: -c, -R and "
        "counts of the whole load, and one --random-seed. `uncork merge` joins their runs.",
        Kind(_shard, _taken_shard),
        PART,
        python='Send only this part of the load, such as ``"2/4"``; `merge` joins the runs of all parts.',
    ),
]
StartAt = Annotated[
    int | None,
    Opt(
        "--start-at TIME",
        "Start at this time of the wall clock, at least 1 s ahead: 2026-05-31T08:30:00Z, or seconds "
        "since 1970.",
        Kind(_start, _taken_start),
        PART,
        python="When to start: a datetime, or text such as ``2026-05-31T08:30:00Z``.",
    ),
]
EndAfter = Annotated[
    int | None,
    Opt(
        "--end-after TIME",
        "Hard end: stop this long after the start, even if operations are left or in flight.",
        duration(),
        PART,
    ),
]
LeaseFrom = Annotated[
    str | None,
    Opt(
        "--lease FILE",
        "Stop 5 s after the last change of FILE (touch it every second to go on); - is any input from "
        "standard input.",
        None,
        PART,
        python="Stop 5 s after the last change of this file.",
    ),
]


def part_given(options: SqlOptions | HttpOptions) -> Iterator[str]:
    """Yield the given options of a part."""
    return names_given(options, (PART,))


def read_part(
    options: SqlOptions | HttpOptions,
    *,
    clients: int,
    arrivals: Arrivals | None,
    operations: int | None,
    read_files: Iterable[str | None],
) -> LoadPart | None:
    """Return the part of the load that the options ask for; None for a load that is whole.

    `operations` is how many operations of all clients together end the load, None if something else
    does. `read_files` are the files that other options read. Raises UsageError if the load cannot
    be cut like that.
    """
    if not any(part_given(options)):
        return None
    number, count = options.shard or (1, 1)
    if options.shard is not None and not isinstance(options.random_seed, int):
        raise UsageError(
            "--shard requires --random-seed NUM, the same for all parts: they draw from one sequence"
        )
    if options.lease == "-" and "-" in read_files:
        raise UsageError("--lease - needs standard input, which another option reads: renew through a file")
    if clients < count:
        raise UsageError(
            f"--shard {number}/{count}: -c {clients} is too few, each part needs a client of its own"
        )
    if operations is not None and arrivals is None and options.sweep is None and operations < count:
        raise UsageError(
            f"--shard {number}/{count}: {operations} operations are too few, each part needs one"
        )
    return LoadPart(number, count, options.start_at, options.end_after, options.lease)


CLUSTER: Final = "Load from the nodes of a Ray cluster"
_PLACES: Final = ("local", "auto")

NodeCount = Annotated[
    int | None,
    Opt(
        "--nodes NUM",
        "Send the load from NUM nodes at once, each on a machine of its own: -c, -R and counts are of the "
        "whole load, threads of each node. The result is one run.",
        whole(1, 10_000),
        CLUSTER,
        python="Send the load from this many nodes at once, each on a machine of its own.",
    ),
]
ClusterAt = Annotated[
    str | None,
    Opt(
        "--cluster local|auto|ADDRESS",
        "The Ray cluster: local starts one on this machine, auto is the one to which this machine belongs, "
        "else HOST:PORT or ray://HOST:PORT. Default: local.",
        None,
        CLUSTER,
        python="The Ray cluster: ``local``, ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``. Default: local.",
    ),
]
LostNode = Annotated[
    OnLost | None,
    Opt(
        "--on-lost stop|continue",
        "What to do when a node is lost: stop the load, or continue without the node. Default: stop.",
        choice("stop", "continue"),
        CLUSTER,
    ),
]
Uncapped = Annotated[
    bool,
    Opt(
        "--uncapped",
        "Allow a cluster more than 100000 operations a second, 20000 connections or 100 nodes.",
        None,
        CLUSTER,
    ),
]
Yes = Annotated[bool, Opt("--yes", "Start the load on a cluster without asking first.", None, CLUSTER)]


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """The options of a load from several machines."""

    shard: Shard = None
    start_at: StartAt = None
    end_after: EndAfter = None
    lease: LeaseFrom = None
    nodes: NodeCount = None
    cluster: ClusterAt = None
    on_lost: LostNode = None
    uncapped: Uncapped = False
    yes: Yes = False


def read_cluster(
    options: SqlOptions | HttpOptions,
    *,
    clients: int,
    arrivals: Arrivals | None,
    operations: int | None,
    excluded: Iterator[str],
) -> ClusterRequest | None:
    """Return the nodes that the options ask for; None for a load from this machine.

    `operations` is how many operations of all clients together end the load, None if something else
    does. `excluded` are given options that a load from nodes cannot have. Raises UsageError if the
    load cannot be sent like that.
    """
    if options.nodes is None:
        for name in names_given(options, (CLUSTER,)):
            raise UsageError(f"{name} requires --nodes NUM, the number of nodes that send the load")
        return None
    for name in excluded:
        raise UsageError(f"--nodes cannot be combined with {name}")
    for name, value in (
        ("--shard", options.shard),
        ("--start-at", options.start_at),
        ("--lease", options.lease),
    ):
        if value is not None:
            raise UsageError(f"--nodes sends all parts, and starts them together: leave out {name}")
    if clients < options.nodes:
        raise UsageError(
            f"--nodes {options.nodes}: -c {clients} is too few, each node needs a client of its own"
        )
    if operations is not None and arrivals is None and operations < options.nodes:
        raise UsageError(f"--nodes {options.nodes}: {operations} operations are too few, each node needs one")
    return ClusterRequest(
        nodes=options.nodes,
        place=cluster_place(options.cluster or "local"),
        on_lost=options.on_lost or "stop",
        uncapped=options.uncapped,
    )


def cluster_place(text: str) -> str:
    """Return a cluster as an option names it. Raises UsageError if it is none."""
    if text in _PLACES:
        return text
    host, colon, port = text.removeprefix("ray://").rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise UsageError(f'--cluster "{text}": write local, auto, HOST:PORT or ray://HOST:PORT')
    return text


# ---- how operations arrive, and contradictions ----


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
