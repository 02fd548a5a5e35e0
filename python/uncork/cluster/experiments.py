"""An experiment on several hosts, as one run.

The story: reserve hosts drawn by lot, check them, and let each prepare an ordinary run of its own. Then come
waves: in each, every host measures a round of its own server, and its tables join those of the whole, which
decide what the next wave measures. The hosts measure; this process only conducts.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from uncork.analysis.experiment.stored import judged_ledger
from uncork.cluster import ray_nodes
from uncork.cluster.agent import own_facts
from uncork.cluster.conductor import Conductor, Lost
from uncork.cluster.jobs import HostJob, refuse_password
from uncork.cluster.kept_parts import KeptPart
from uncork.cluster.loads import unusable
from uncork.cluster.ports import Reserve
from uncork.errors import RunError, UsageError
from uncork.experiment.ports import Until
from uncork.experiment.run.events import Event, Finished, Preparing, RoundEnded
from uncork.experiment.run.ledger import Ledger, Pair
from uncork.experiment.spec.schema import Spec
from uncork.model.redaction import redact
from uncork.model.stored_run import HostRounds, RunHost
from uncork.model.units import count_words, format_duration
from uncork.requests.hosts import HostRequest
from uncork.requests.server import ServerChoice
from uncork.requests.source import Source
from uncork.store.loads import write_environment
from uncork.store.parts import part_folder
from uncork.store.query import RunReader
from uncork.store.run_documents import read_host, write_hosts
from uncork.workbench.experiment.joining import Joining, host_numbers, processor_words
from uncork.workbench.experiment.session import ExperimentSession, Start, note_finished, start_experiment
from uncork.workbench.run_record import RunRecord
from uncork.workbench.signals import uninterrupted

Notify = Callable[[str], None]

_DECIDED: Final = "every comparison is decided, or as precise as asked"
_END_S: Final = 10.0
"""How long to wait until hosts have ended their servers; what is left, their reapers end."""


def host_statement(spec: Spec, request: HostRequest) -> str:
    """Return in one sentence what will happen on which hosts."""
    cluster = request.cluster
    hosts = count_words(cluster.nodes, "host")
    budget = format_duration(spec.stop.budget)
    if cluster.own:
        return (
            f"this machine plays {hosts} for at most {budget}. That is good for a try only, because their "
            "rounds disturb each other"
        )
    place = "this machine's cluster" if cluster.place == "auto" else cluster.place
    if request.dsns:
        servers = ", ".join(map(redact, request.dsns))
        return f"{hosts} of {place}, drawn by lot, each measure on a server ({servers}) for at most {budget}"
    return f"{hosts} of {place}, drawn by lot, will each start PostgreSQL and measure for at most {budget}"


def new_host_session(
    root: Path,
    source: Source,
    request: HostRequest,
    server: ServerChoice,
    notify: Notify,
    reserve: Reserve | None = None,
    until: Callable[[Path], Until] | None = None,
) -> HostSession:
    """Start the run of an experiment on several hosts. `reserve` provides them; Ray by default.

    `server` has the programs and settings of the servers that hosts start. `until` is as in `new_run`.
    Raises UsageError if a server's password would be sent to the cluster. Raises SetupError if its folder
    cannot be written.
    """
    for dsn in request.dsns:
        refuse_password(dsn, request.cluster)
    on = count_words(request.cluster.nodes, "host")
    if request.dsns:
        described = f"existing, on {on}: {'; '.join(map(redact, request.dsns))}"
        record = start_experiment(root, source, described, "block")
    else:
        record = start_experiment(root, source, f"embedded, on {on}", "round")
    wanted = None if until is None else until(record.folder)
    return HostSession(record, source, request, server, notify, reserve or ray_nodes.reserved, wanted)


def start_on_hosts(
    request: HostRequest, notify: Notify, confirm: Callable[[str], None] = lambda _: None
) -> Start:
    """Return what starts runs on hosts; `confirm` gets a sentence first. Raises UsageError."""
    ray_nodes.check_installed("--hosts")
    asked: list[str] = []

    def start(
        root: Path, source: Source, choice: ServerChoice, until: Callable[[Path], Until] | None = None
    ) -> ExperimentSession:
        if not asked:
            asked.append(host_statement(source.spec, request))
            confirm(asked[0])
        return new_host_session(root, source, request, choice, notify, until=until)

    return start


@dataclass(slots=True)
class _Host:
    """A node: what its run says about it, the numbers of its rounds in the whole, and why it was lost."""

    facts: RunHost
    processor: str
    run: str
    rounds: list[int] = field(default_factory=list)
    lost: str = ""


class HostSession:
    """One experiment on several hosts. `events` measures; the run's folder exists from the start."""

    def __init__(
        self,
        record: RunRecord,
        source: Source,
        request: HostRequest,
        server: ServerChoice,
        notify: Notify,
        reserve: Reserve,
        until: Until | None,
    ) -> None:
        self.folder = record.folder
        self.source = source
        self.refused = False
        self.then = "show it with: uncork report"
        self._record = record
        self._request = request
        self._cluster = replace(request.cluster, lot=source.spec.experiment.seed)
        self._server = server
        self._until = until
        self._notify = notify
        self._reserve = reserve
        self._joining = Joining(record.folder)
        self._hosts: dict[int, _Host] = {}
        self._waves: dict[int, int] = {}
        self._begun_ns = time.monotonic_ns()

    def measured(self) -> bool:
        """Say whether any trial is stored."""
        return self._record.has_results()

    def events(self) -> Generator[Event]:
        """Measure, and yield each step. Always end the hosts' servers, and record how the run ended.

        Rounds of a wave that a host has not completed are not in the result; a host that is lost is named.
        Raises UsageError if the hosts cannot be used, or one cannot prepare the experiment. Raises RunError
        if all hosts are lost. Raises StoreError if results cannot be stored.
        """
        with self._record as record, self._reserve(self._cluster, self._notify) as nodes:
            conductor = Conductor(nodes, self._notify)
            try:
                yield from self._prepare(conductor)
                finished = yield from self._measure(conductor)
                note_finished(record, finished)
                self.refused = finished.is_empty
                yield finished
            finally:
                with uninterrupted():
                    conductor.stop()
                    conductor.end(_END_S)

    def _prepare(self, conductor: Conductor) -> Iterator[Event]:
        for problem in unusable(conductor.meet(), own_facts()):
            raise UsageError(problem)
        jobs: dict[int, HostJob] = {}
        hosts = count_words(conductor.nodes.count, "host")
        yield Preparing(f"preparing {hosts}: servers, data and answers", 0, 1)
        binaries, source = self._server.binaries, self.source
        for number in conductor.numbers:
            dsn = self._request.dsns[number - 1] if self._request.dsns else None
            server = ServerChoice(dsn=dsn, binaries=binaries)
            jobs[number] = HostJob(source.text, dict(source.files), source.options, server)
        conductor.each("begin", lambda number: (pickle.dumps(jobs[number]), "experiment"))
        conductor.prepare()
        prepared = conductor.collect_new(conductor.numbers, self._keep)
        for number in prepared:
            folder = part_folder(self.folder, number)
            reader = RunReader(folder)
            self._hosts[number] = _Host(read_host(folder), processor_words(reader), reader.manifest.id)
        self._note_lost(conductor)
        if not prepared:
            raise RunError(self._nothing(conductor))
        self._join(prepared, 0)
        first = RunReader(part_folder(self.folder, min(prepared)))
        write_environment(self.folder, first.environment())

    def _keep(self, number: int, files: dict[str, bytes]) -> None:
        KeptPart(self.folder, number).finish(files)

    def _measure(self, conductor: Conductor) -> Generator[Event, None, Finished]:
        def lose(_: int, __: Lost) -> None:
            self._note_lost(conductor)

        ledger, wave = self._ledger(), 0
        nothing = ledger.nothing_left()
        if nothing is not None and self._until is None:
            return self._finished(nothing, is_empty=True)
        while conductor.sending and (open_pairs := self._open_pairs(ledger)):
            wave += 1
            self._grant(conductor, open_pairs)
            measured = conductor.collect_new(conductor.watch_round(lose), self._keep)
            self._note_lost(conductor)
            if measured:
                self._join(measured, wave)
                ledger = self._ledger()
                yield self._round_ended(ledger)
        if not self._record.rounds:
            raise RunError(self._nothing(conductor))
        yield Preparing("collecting evidence on the hosts", 0, 1)
        self._grant(conductor, ())
        conductor.watch(None, lose, lambda: None)
        self._join(conductor.collect_new(self._hosts.keys() - conductor.lost.keys(), self._keep), 0)
        decided = _DECIDED if self._until is None else self._until.reason
        return self._finished("the budget of the hosts is spent" if self._open_pairs(ledger) else decided)

    def _note_lost(self, conductor: Conductor) -> None:
        for number, why in conductor.lost.items():
            host = self._hosts.setdefault(number, _Host(RunHost(conductor.names[number], 0), "", ""))
            if not host.lost:
                host.lost = why.reason
                left = len(conductor.sending)
                continues = f"{count_words(left, 'host')} {'continues' if left == 1 else 'continue'}"
                name = conductor.name(number)
                self._notify(f"{name} is lost with the round that it measured ({why.reason}): {continues}")

    def _open_pairs(self, ledger: Ledger) -> set[Pair]:
        return ledger.open_pairs() if self._until is None else self._until.open_pairs()

    def _ledger(self) -> Ledger:
        with closing(RunReader(self.folder)) as reader:
            return judged_ledger(reader, self.source.spec)

    def _grant(self, conductor: Conductor, open_pairs: Collection[Pair]) -> None:
        names = sorted((cell.name, workload) for cell, workload in open_pairs)
        for number in conductor.sending:
            conductor.nodes.ask(number, "tell", f"round {json.dumps(names)}")

    def _join(self, numbers: Iterable[int], wave: int) -> None:
        found = {number: self._joining.read(number, part_folder(self.folder, number)) for number in numbers}
        for number, joined in found.items():
            self._hosts[number].rounds += joined.rounds
            self._waves |= dict.fromkeys(joined.rounds, wave)
        write_hosts(self.folder, tuple(self._host_rounds()))
        for joined in found.values():
            self._joining.append(joined)
        self._record.rounds = len(self._waves)

    def _host_rounds(self) -> Iterator[HostRounds]:
        known = [self._hosts[number] for number in sorted(self._hosts)]
        numbers = host_numbers([host.facts for host in known])
        for number in dict.fromkeys(numbers):
            own = [one for one, host in zip(known, numbers, strict=True) if host == number]
            rounds = tuple(round_ for host in own for round_ in host.rounds)
            yield HostRounds(
                number=number,
                name=own[0].facts.name,
                processor=own[0].processor,
                rounds=rounds,
                runs=tuple(host.run for host in own if host.run),
                waves=tuple(self._waves[number] for number in rounds),
                lost="; ".join(host.lost for host in own if host.lost),
            )

    def _round_ended(self, ledger: Ledger) -> RoundEnded:
        compared, still_open = ledger.compared(), self._open_pairs(ledger)
        settled = ledger.settled() if self._until is None else set()
        still = [pair for pair in compared if pair[:2] in still_open and pair not in settled]
        widest, name = ledger.widest(still)
        rounds, elapsed_ns = self._record.rounds, time.monotonic_ns() - self._begun_ns
        return RoundEnded(rounds, len(compared) - len(still), len(compared), widest, name, elapsed_ns)

    def _finished(self, reason: str, *, is_empty: bool = False) -> Finished:
        with closing(RunReader(self.folder)) as reader:
            totals = reader.totals()
        return Finished(
            self._record.rounds,
            totals["trials"],
            totals["failed"],
            reason,
            time.monotonic_ns() - self._begun_ns,
            is_empty=is_empty,
        )

    def _nothing(self, conductor: Conductor) -> str:
        reasons = (f"{conductor.name(number)}: {why.reason}" for number, why in conductor.lost.items())
        return "no host has measured a round: " + next(reasons, "the budget is too short for one")
