"""An experiment on several hosts, as one run.

The story: reserve hosts drawn by lot, check them, and let each prepare an ordinary run of its own. Then come
waves: in each, every host measures a round of its own server, and its tables join those of the whole, which
decide what the next wave measures. The hosts measure; this process only conducts.
"""

from __future__ import annotations

import json
import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator
from concurrent.futures import wait
from contextlib import closing
from pathlib import Path
from typing import Final

from uncork.analysis.experiment.stored import stored_ledger
from uncork.cluster import ray_nodes
from uncork.cluster.agent import NodeAgent
from uncork.cluster.conductor import Conductor, Lost
from uncork.cluster.host_job import host_job
from uncork.cluster.kept_parts import KeptPart
from uncork.cluster.limits import unusable
from uncork.cluster.ports import News, NodeFacts, Reserve
from uncork.errors import RunError, UsageError
from uncork.experiment.plan.order import cells
from uncork.experiment.run.events import Event, Finished, Preparing, RoundEnded
from uncork.experiment.run.ledger import Ledger, Pair
from uncork.experiment.spec.schema import Spec
from uncork.model.load import ClusterRequest
from uncork.model.stored_run import HostRounds, RunHost
from uncork.model.units import count_words, format_duration
from uncork.requests.source import Source
from uncork.store.hosts import read_host, write_hosts
from uncork.store.loads import write_environment
from uncork.store.parts import part_folder
from uncork.store.query import RunReader
from uncork.workbench.experiment.joining import Joining, host_numbers, processor_words
from uncork.workbench.experiment.session import source_files
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted

__all__ = ["HostSession", "host_statement", "new_host_session"]

Notify = Callable[[str], None]

_END_S: Final = 10.0
"""How long to wait until hosts have ended their servers; what is left, their reapers end."""


def host_statement(spec: Spec, request: ClusterRequest) -> str:
    """Return in one sentence what will happen on which hosts."""
    hosts = count_words(request.nodes, "host")
    budget = format_duration(spec.stop.budget)
    if request.own:
        return (
            f"this machine plays {hosts} for at most {budget}. Their rounds disturb each other: use that to "
            "try it out"
        )
    place = "this machine's cluster" if request.place == "auto" else request.place
    return f"{hosts} of {place}, drawn by lot, will each start PostgreSQL and measure for at most {budget}"


def new_host_session(
    root: Path,
    source: Source,
    request: ClusterRequest,
    binaries: Path | None,
    notify: Notify,
    reserve: Reserve | None = None,
) -> HostSession:
    """Start the run of an experiment on several hosts. `reserve` provides them; Ray by default.

    Raises:
        UsageError: if Ray is not installed.
        SetupError: if its folder cannot be written.
    """
    if reserve is None:
        ray_nodes.check_installed("--hosts")
    spec = source.spec
    manifest = draft(
        kind="experiment",
        name=spec.experiment.name,
        question=spec.experiment.question,
        server=f"embedded, on {count_words(request.nodes, 'host')}",
        options=source.options.stored(),
        seed=spec.experiment.seed,
        unit="round",
        case=source.case,
    )
    record = start_run(root, manifest, files=source_files(source))
    return HostSession(record, source, request, binaries, notify, reserve or ray_nodes.reserved)


class HostSession:
    """One experiment on several hosts. `events` measures; the run's folder exists from the start."""

    def __init__(
        self,
        record: RunRecord,
        source: Source,
        request: ClusterRequest,
        binaries: Path | None,
        notify: Notify,
        reserve: Reserve,
    ) -> None:
        self.folder = record.folder
        self.source = source
        self.refused = False
        self.then = "show it with: uncork report"
        self._record = record
        self._request = request
        self._job = host_job(source, None if binaries is None else str(binaries))
        self._notify = notify
        self._reserve = reserve
        self._joining = Joining(record.folder)
        self._rounds: dict[int, list[int]] = defaultdict(list)
        self._waves: dict[int, int] = {}
        self._lost: dict[int, str] = {}
        self._told: set[str] = set()
        self._begun_ns = time.monotonic_ns()

    def measured(self) -> bool:
        """Say whether any trial is stored."""
        return self._record.has_results()

    def events(self) -> Generator[Event]:
        """Measure, and yield each step. Always end the hosts' servers, and record how the run ended.

        Rounds of a wave that a host has not completed are not in the result; a host that is lost is named.

        Raises:
            UsageError: if the hosts cannot be used, or one cannot prepare the experiment.
            RunError: if all hosts are lost.
            StoreError: if results cannot be stored.
        """
        with self._record as record, self._reserve(self._request, self._notify) as nodes:
            conductor = Conductor(nodes, self._hear)
            try:
                yield from self._prepare(conductor)
                finished = yield from self._measure(conductor)
                record.status, record.reason = "failed" if finished.is_empty else "complete", finished.reason
                record.keep |= finished.is_empty
                self.refused = finished.is_empty
                yield finished
            finally:
                with uninterrupted():
                    conductor.stop()
                    wait([nodes.ask(number, "end") for number in conductor.numbers], timeout=_END_S)

    # ---- the hosts ----

    def _prepare(self, conductor: Conductor) -> Iterator[Event]:
        facts = {number: NodeFacts(**one) for number, one in conductor.everyone("facts").items()}
        conductor.names = {number: one.host for number, one in facts.items()}
        for problem in unusable(facts, NodeFacts(**NodeAgent().facts())):
            raise UsageError(problem)
        hosts = count_words(conductor.nodes.count, "host")
        yield Preparing(f"preparing {hosts}: servers, data and answers", 0, 1)
        conductor.everyone("begin", pickle.dumps(self._job), "experiment")
        conductor.prepare()
        conductor.collect_new(conductor.sending, self._keep)
        self._join(conductor.sending, 0)
        write_environment(self.folder, RunReader(part_folder(self.folder, 1)).environment())

    def _hear(self, number: int, news: News) -> None:
        """Show a host's messages; the same one from several hosts once."""
        for text in (one["note"] for one in news.said if one.get("note")):
            if text not in self._told:
                self._told.add(text)
                self._notify(text)

    def _keep(self, number: int, files: dict[str, bytes]) -> None:
        KeptPart(self.folder, number).finish(files)

    # ---- waves ----

    def _measure(self, conductor: Conductor) -> Generator[Event, None, Finished]:
        """Measure waves of rounds until enough is known, or no host has budget left."""

        def lose(number: int, why: Lost) -> None:
            self._lost[number] = why.reason
            left = count_words(len(conductor.sending), "host")
            name = conductor.name(number)
            self._notify(f"{name} is lost with the round that it measured ({why.reason}): {left} continue")

        wave, reason = 0, ""
        while conductor.sending:
            ledger = self._ledger()
            nothing = ledger.nothing_left()
            if nothing is not None:
                return self._finished(nothing, is_empty=True)
            open_pairs = ledger.open_pairs()
            if not open_pairs:
                reason = "every comparison is decided, or as precise as asked"
                break
            wave += 1
            self._grant(conductor, open_pairs)
            measured = conductor.watch_round(lose)
            conductor.collect_new(measured, self._keep)
            self._join(measured - conductor.lost.keys(), wave)
            if measured:
                yield self._round_ended()
        if not self._rounds:
            raise RunError(self._nothing(conductor))
        yield from self._end(conductor, lose)
        return self._finished(reason or "the budget of the hosts is spent")

    def _ledger(self) -> Ledger:
        """Return what is known now, from the tables of all hosts."""
        spec = self.source.spec
        with closing(RunReader(self.folder)) as reader:
            ledger = stored_ledger(reader, spec)
            known = {cell.name: cell for cell in cells(spec)}
            for row in reader.refusals():
                ledger.refused[known[row["cell"]], row["workload"], row["variant"]] = row["reason"]
        return ledger

    def _grant(self, conductor: Conductor, open_pairs: Collection[Pair]) -> None:
        """Let each host measure a round of these cells and workloads."""
        names = sorted((cell.name, workload) for cell, workload in open_pairs)
        for number in conductor.sending:
            conductor.nodes.ask(number, "tell", f"round {json.dumps(names)}")

    def _join(self, numbers: Collection[int], wave: int) -> None:
        """Append what hosts have stored to the tables of the whole, and note who measured which round."""
        found = {number: self._joining.read(number, part_folder(self.folder, number)) for number in numbers}
        for number, joined in found.items():
            self._rounds[number] += joined.rounds
            self._waves |= dict.fromkeys(joined.rounds, wave)
        write_hosts(self.folder, tuple(self._hosts()))
        for joined in found.values():
            self._joining.append(joined)
        self._record.rounds = sum(map(len, self._rounds.values()))

    def _hosts(self) -> Iterator[HostRounds]:
        """Yield the hosts with their rounds; nodes of one machine are one host."""
        kept = {number: part_folder(self.folder, number) for number in sorted(self._rounds)}
        facts = {number: read_host(folder) or RunHost(str(number), 0) for number, folder in kept.items()}
        hosts = dict(zip(kept, host_numbers(list(facts.values())), strict=True))
        for host in dict.fromkeys(hosts.values()):
            own = [number for number in kept if hosts[number] == host]
            rounds = tuple(one for number in own for one in self._rounds[number])
            readers = [RunReader(kept[number]) for number in own]
            yield HostRounds(
                number=host,
                name=facts[own[0]].name,
                processor=processor_words(readers[0]),
                rounds=rounds,
                runs=tuple(reader.manifest.id for reader in readers),
                waves=tuple(self._waves[one] for one in rounds),
                lost="; ".join(self._lost[number] for number in own if number in self._lost),
            )

    def _round_ended(self) -> RoundEnded:
        ledger = self._ledger()
        compared, settled = ledger.compared(), ledger.settled()
        widest, name = ledger.widest([one for one in compared if one not in settled])
        return RoundEnded(
            self._record.rounds,
            len(settled),
            len(compared),
            widest,
            name,
            time.monotonic_ns() - self._begun_ns,
        )

    # ---- the end ----

    def _end(self, conductor: Conductor, lose: Callable[[int, Lost], None]) -> Iterator[Event]:
        """Let the hosts collect evidence and end; fetch the rest of their runs."""
        yield Preparing("collecting evidence on the hosts", 0, 1)
        self._grant(conductor, ())
        conductor.watch(None, lose, lambda: None)
        ended = [number for number in conductor.numbers if number not in conductor.lost]
        conductor.collect_new(ended, self._keep)
        self._join([number for number in ended if number not in conductor.lost], 0)

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
        """Return why no host has measured a round."""
        for number, why in conductor.lost.items():
            return f"no host has measured a round: {conductor.name(number)} is lost: {why.reason}"
        return f"no host has measured a round: {conductor.outcome(1)}"
