"""A guard from Python: is the candidate worse than its baseline?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypedDict, Unpack

from uncork.api.experiments import measure, start_of
from uncork.api.runs import GuardRun, Run
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, calling, runs_folder, teller
from uncork.requests.guard import guard_request
from uncork.requests.guard_options import GuardOptions
from uncork.requests.option import from_values, options_of
from uncork.workbench.experiment.session import ExperimentSession, choose_server
from uncork.workbench.guard.guards import carry_out_guard, guard_target

__all__ = ["GuardKeywords", "guard"]

Words = str | Sequence[str]


class GuardKeywords(TypedDict, total=False):
    """Keywords of `guard`, declared in `GuardOptions`."""

    candidate: Words | None
    baseline: Words | None
    gates: Words | None
    variant: str | None
    sets: Mapping[str, object] | None
    workloads: Sequence[str] | None
    budget: Quantity | None
    precision: str | None
    seed: int | None
    acknowledged: Place | None
    confirm: bool
    evidence: Sequence[str] | None
    same: bool
    dsn: str | None
    pg_bin: Place | None
    port: int | None
    stored: bool
    times: int
    everything: bool
    url: str | None
    header: Mapping[str, str] | None
    hosts: int | None
    cluster: str | None
    host_dsn: Sequence[str] | None


@documented(GuardOptions, GuardKeywords)
def guard(
    target: Place | Run | None = None,
    *,
    resume: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[GuardKeywords],
) -> GuardRun:
    """Check whether a candidate is worse than its baseline: measure both side by side and apply gates.

    Args:
        target: Experiment file, or a stored load, which is measured again.
        options: see below.
        resume: Run of an interrupted guard to continue, instead of a target.
        progress: Function that takes a line at a time, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UncorkError, KeyboardInterrupt: as `uncork.run`. A broken gate raises nothing: see `GuardRun.check`.
    """
    place, going = (
        None if chosen is None else str(chosen.folder if isinstance(chosen, Run) else chosen)
        for chosen in (target, resume)
    )
    with calling():
        read = from_values(GuardOptions, {**options, "resume": going})
        named = guard_target(place, going)
        request = guard_request(
            read,
            named,
            choose_server(read.dsn, read.pg_bin, read.port),
            words=("uncork", "guard", named, *_command_words(options)),
        )
        tell = teller(progress)

        def measured(session: ExperimentSession) -> None:
            measure(session, tell, "see it with uncork.open({id!r})")

        _, folder = carry_out_guard(runs_folder(runs), request, measured, tell, start_of(read, tell))
    return GuardRun(folder)


def _command_words(given: GuardKeywords) -> Iterator[str]:
    """Yield the options of the command line that repeats a guard; headers may be secret and are left out."""
    values: Mapping[str, object] = {**given}
    options = {option.field: option for option in options_of(GuardOptions)}
    for name in GuardKeywords.__annotations__:
        value, option = values.get(name), options[name]
        flag = option.flags[-1]
        if value is None or value == option.default or option.field == "header":
            continue
        if isinstance(value, bool):
            yield flag.split("/")[0 if value else -1]
        elif isinstance(value, Mapping):
            for factor, levels in value.items():
                yield from (flag, f"{factor}={','.join(_many(levels))}")
        elif isinstance(value, timedelta):
            yield from (flag, f"{value.total_seconds():g}s")
        else:
            for word in _many(value) if option.many else [",".join(_many(value))]:
                yield from (flag, word)


def _many(value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [str(value)]
    return [str(item) for item in value]
