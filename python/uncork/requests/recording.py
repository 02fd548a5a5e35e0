"""Turn a recording into a load: a replay of its sessions, or a mix of its transactions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from uncork.errors import UsageError
from uncork.load.recording import mixed, parse_transactions, replayed
from uncork.model.database.recording import TRANSACTIONS
from uncork.model.load import LoadScript, LoadSpec
from uncork.requests.sql_options import SqlOptions

ListFolder = Callable[[str], Sequence[str] | None]


def recording_file(options: SqlOptions, files: ListFolder) -> str | None:
    """Return the file with the transactions of the recording that is to be sent; None if there is none.

    Raises:
        UsageError: if a recording is sent together with something else, or a replay has none.
    """
    given = [] if options.replay is None else [options.replay]
    found = [
        file
        for folder in (*given, *(options.script or ()))
        for file in files(folder) or ()
        if PurePath(file).name == TRANSACTIONS
    ]
    if options.replay is not None and not found:
        raise UsageError(
            f"--replay {options.replay}: no folder with a recording; `uncork capture --sessions` makes one"
        )
    if not found:
        return None
    others = len(options.script or ()) + len(given) > 1
    if others or options.builtin or options.select_only or options.skip_some_updates:
        raise UsageError(f"{PurePath(found[0]).parent} is a recording, which is sent without other scripts")
    return found[0]


def with_recording(
    spec: LoadSpec, scripts: Sequence[LoadScript], file: str, text: str, options: SqlOptions
) -> LoadSpec:
    """Return the load that sends a recording, whose transactions are the `text` of `file`.

    Raises:
        UsageError: if the recording is invalid, or needs another protocol.
    """
    transactions = parse_transactions(text, file)
    # A weight of 0 means that a script is never sent; the recording decides how often.
    scripts = [replace(script, weight=max(1, script.weight)) for script in scripts]
    if options.short_transactions:
        scripts = [replace(script, text=_pausing_before(script.text)) for script in scripts]
    if options.replay is None:
        recorded = mixed(transactions, scripts, spec.protocol, spec.seed)
        return replace(spec, scripts=tuple(scripts), recorded=recorded)
    recorded, arrivals, clients = replayed(transactions, scripts, spec.protocol, options.speed or 1.0)
    return replace(
        spec,
        scripts=tuple(scripts),
        recorded=recorded,
        arrivals=arrivals,
        clients=clients,
        max_clients=None,
        threads=min(options.jobs or 1, clients),
        operations_each=None,
    )


def _pausing_before(script: str) -> str:
    """Return a script of a recording with all pauses before its first statement."""
    lines = script.splitlines(keepends=True)
    comments = [line for line in lines if line.startswith("--")]
    pauses = [line for line in lines if line.startswith("\\sleep ")]
    return "".join([*comments, *pauses, *(line for line in lines if line not in (*comments, *pauses))])


def recording_contradictions(options: SqlOptions, spec: LoadSpec) -> Iterator[tuple[bool, str]]:
    """Yield what recordings and replays cannot be combined with."""
    yield options.speed is not None and options.replay is None, "--speed requires --replay"
    yield (
        options.short_transactions and spec.recorded is None,
        "--short-transactions requires a recording (--replay, or -f with its folder)",
    )
    if spec.recorded is None:
        return
    yield options.nodes is not None, "a recording cannot be sent from --nodes: send it from one machine"
    if options.replay is None:
        return
    for given, option, why in (
        (options.rate is not None, "-R/--rate", "it has the recorded pace: use --speed"),
        (options.arrivals is not None, "--arrivals", "it has the recorded times: use --speed"),
        (options.clients is not None, "-c/--client", "it has a client for each session"),
        (options.max_clients is not None, "--max-clients", "it has a client for each session"),
        (options.transactions is not None, "-t/--transactions", "use -T to end it early"),
        (options.connect_each, "-C/--connect", "it keeps a connection for each session"),
        (options.warm_up is not None, "--warmup", "each transaction is sent once"),
        (options.pipeline is not None, "--pipeline", "sessions wait for each answer"),
        (options.sweep is not None, "--sweep", "use -f to send the mix of the recording at any rate"),
        (options.shard is not None, "--shard", "sessions are not divided"),
        (options.advise, "--advise", "it cannot be sent for 5 s more; watch with `uncork advise` meanwhile"),
    ):
        yield given, f"--replay cannot be combined with {option}: {why}"
