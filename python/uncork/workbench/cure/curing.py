"""Try the changes of a server's findings on a copy: `uncork cure`.

Evidence of a watch comes in; the findings with the changes that were proven go out, with the files to apply
them. Each finding's changes are executed once on a scratch database, and those that can matter are measured
against the present state with the captured workload. What helps is measured again, all together, on fresh
trials: the best of several looks better than it is. Nothing but reading reaches the source.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import disk_usage
from statistics import fmean
from types import MappingProxyType, TracebackType
from typing import Final, Self

from uncork import __version__
from uncork.analysis.advice.result import advice_of
from uncork.engines.copying.chosen_settings import start_settings
from uncork.engines.copying.database import copy_source
from uncork.engines.copying.scratch import count_statements
from uncork.engines.database_copy import read_source
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import servers_folder
from uncork.engines.planner_statistics import RESTORES
from uncork.errors import BudgetTooShort, RunError, ServerCrash, SetupError, UncorkError, UsageError
from uncork.experiment.cure.arms import arms_of, as_sent
from uncork.experiment.cure.judge import measured_statements, times_longer
from uncork.experiment.cure.setups import NEW_COPY, CopyKeeps
from uncork.model.database.copy import CopyFacts, NotCopied
from uncork.model.database.finding import Bill, Finding
from uncork.model.database.missing import Missing
from uncork.model.database.workload import CapturedWorkload
from uncork.model.records import build_from
from uncork.model.redaction import redact
from uncork.model.results.advice import AdviceResult
from uncork.model.results.cure import CURE_VERSION, Change, ChangeState, CureResult, Tried
from uncork.model.stored_run import RunStatus
from uncork.model.template_words import inline_statement
from uncork.model.units import count_words, format_bytes, format_duration, share_text
from uncork.report.cure.answer import answer_cure
from uncork.requests.jobs import CureJob
from uncork.store.layout import PARTS, read_manifest
from uncork.store.run_documents import read_cure
from uncork.store.snapshots import add_snapshot, delete_snapshots
from uncork.workbench.cure.capture import captured_workload
from uncork.workbench.cure.gate import plans_agree
from uncork.workbench.cure.handing import hand_over, write_cure, write_pull_request
from uncork.workbench.cure.loops import LoopPlan, LoopProver, loop_plan
from uncork.workbench.cure.proving import MOST_ARMS, Plan, Prover
from uncork.workbench.cure.transactions import SeenTransactions, transaction_plan
from uncork.workbench.cure.trials import Allowance, without_violations
from uncork.workbench.cure.variants import VariantProver, pool_plan
from uncork.workbench.run_record import draft, start_run
from uncork.workbench.signals import uninterrupted

_CONFIRMING: Final = 0.5
"""Part of the time that is left which is kept for measuring the changes that help again, all together."""
_LEAST_S: Final = 12.0
_MOST_S: Final = 90.0
"""The shortest and the longest experiment about one finding."""
_ENDING: Final = 0.04
"""Part of the budget for removing the copy and for writing the files to hand over."""
_LEAST_USUAL_S: Final = 30.0
"""Time of the budget that must be left to measure what people often try first."""
_SPENT: Final = "Too little of the budget was left for it."


@dataclass(slots=True)
class _State:
    advice: AdviceResult
    workload: CapturedWorkload
    seen: SeenTransactions
    tried: list[Tried] = field(default_factory=list)
    left_out: tuple[Missing, ...] = ()
    chosen: Change | None = None
    usual: tuple[Change, ...] = ()
    copied: CopiedDatabase | None = None
    status: RunStatus = "running"
    reason: str = ""


def cure(root: Path, job: CureJob, told: Callable[[str], None]) -> tuple[Path, CureResult, str]:
    """Try the changes of a stored watch's findings on a copy; return the run, the result, and the trouble.

    `told` receives messages about the progress. Ctrl-C ends early and keeps what was found. The
    trouble says why it ended early; empty if it did not.

    Raises:
        UsageError: if the watch holds no evidence of a database, there is no finding of that number, or the
            connection string of the copy has a password.
        ConnectError: if the source cannot be reached.
        SetupError: if the run's folder cannot be written.
        StoreError: if the watch is damaged, or the result cannot be written.
    """
    if job.copy is not None and redact(job.copy) != job.copy:
        raise UsageError(
            "--copy: leave the password out, because the connection string is stored with the trials; set "
            "PGPASSWORD, or put it into ~/.pgpass"
        )
    begun = time.monotonic()
    folders = [job.watched] if job.log is None else [job.watched, job.log]
    advice = advice_of(folders, job.command, __version__)
    wanted = _wanted(advice, job)
    workload = captured_workload(job.watched, job.source, job.log, for_copy=True)
    place = read_manifest(job.watched).server
    manifest = draft(
        kind="cure",
        name="cure",
        question=f"cure: {place.removeprefix('existing: ')}",
        server=place,
        options={"command": job.command, "watched": job.watched.name},
    )
    state = _State(advice, workload, SeenTransactions(job.watched, workload.seconds, job.log_files))
    earlier = () if job.earlier is None else read_cure(job.earlier).tried
    with start_run(root, manifest, undone="nothing was stored") as run:
        steps = CureSteps(run.folder, job.budget_s, begun, told)

        def keep() -> None:
            """Store what was found so far, so that a killed cure loses nothing and can be resumed."""
            so_far = replace(state, tried=_with_rest(wanted, state.tried, "uncork was ended"))
            write_cure(run.folder, answer_cure(_result(job, so_far, run.folder, time.monotonic() - begun)))

        keep()
        try:
            _work(run.folder / PARTS, job, wanted, earlier, state, begun, steps, keep)
            state.status = "complete"
        except KeyboardInterrupt:
            state.status, state.reason = "interrupted", "interrupted"
        except (RunError, SetupError) as error:
            state.status, state.reason = "failed", str(error)
        steps.begin("writing the files to hand over")
        state.tried = _with_rest(wanted, state.tried, state.reason or "a dry run tries nothing")
        result = _result(job, state, run.folder, time.monotonic() - begun)
        result = answer_cure(
            replace(result, handed=hand_over(run.folder, result, state.workload, job.source))
        )
        write_pull_request(run.folder, result)
        write_cure(run.folder, result)
        run.end(state.status, state.reason or "complete", int((time.monotonic() - begun) * 1e9))
        delete_snapshots(run.folder)
    return run.folder, result, state.reason


def _wanted(advice: AdviceResult, job: CureJob) -> list[Finding]:
    """Return the findings to try: all, or those that the options choose."""
    found = list(advice.findings)
    if job.finding is not None:
        if job.finding > len(found):
            many = count_words(len(found), "finding")
            raise UsageError(f"--finding {job.finding}: there are {many}; choose one of them")
        return [found[job.finding - 1]]
    if job.only:
        return [finding for finding in found if finding.rule in job.only]
    return found


def _work(
    parts: Path,
    job: CureJob,
    wanted: Sequence[Finding],
    earlier: Sequence[Tried],
    state: _State,
    begun: float,
    steps: CureSteps,
    keep: Callable[[], None],
) -> None:
    """Try the findings that a copy can prove; every step adds to `state`, and its runs to `parts`."""
    keeps = expected_keeps(job.source, job.copy)
    provable = _provable(wanted, keeps, state)
    steps(_announcement(job, state, provable))
    if not provable or job.dry_run:
        return
    with CopiedDatabase(job.source, job.copy, job.binaries, job.settings) as copied:
        disk = job.disk // databases_at_once(MOST_ARMS)
        steps.begin("copying the database")
        copied.make(max_read=job.max_read, disk=disk, told=steps)
        state.copied = copied
        steps("checking which captured values violate a constraint on the copy")
        state.workload, state.left_out = without_violations(copied.conninfo, state.workload)
        if copied.facts is not None and not copied.facts.source_statistics:
            keeps = NEW_COPY
        provable = _provable([plan.finding for plan in provable], keeps, state)
        if not provable:
            return
        differing = _differing(job, copied, provable, steps)
        provers = _Provers(parts, copied, state.workload, steps)
        whole = Allowance(_MOST_S, begun + (1 - _ENDING) * job.budget_s)
        for place, plan in enumerate(provable):
            known = next((tried for tried in earlier if _decided(tried, plan.finding)), None)
            if known is not None:
                provers.trials.remember(plan, known)
                state.tried.append(replace(known, state=_known_state(known), finding=plan.finding))
                continue
            if plan.finding.templates and (reason := differing.get(plan.finding.templates[0])):
                state.tried.append(Tried(plan.finding, "unclear", reason))
                continue
            helped = any(tried.state == "cured" for tried in state.tried)
            given = finding_time(whole.left_s, len(provable) - place, helped=helped)
            allowed = None if given is None else Allowance(given[0], time.monotonic() + given[1])
            name = f"finding {place + 1} of {len(provable)}: {plan.finding.headline}"
            steps.begin(f"measuring {name}", name if allowed is not None else "")
            state.tried.append(provers.tried(plan, allowed))
            steps.note(f"{state.tried[-1].state}: {state.tried[-1].reason}")
            keep()
        steps.begin("confirming the changes that help")
        state.tried, state.chosen = provers.confirmed(state.tried, replace(whole, usual_s=math.inf))
        if state.chosen is not None and state.chosen.state == "cured" and whole.left_s >= _LEAST_USUAL_S:
            keep()
            state.usual = _usual(provers.trials, whole, steps)


def finding_time(left_s: float, findings: int, *, helped: bool) -> tuple[float, float] | None:
    """Return the usual and the longest time for the next of some findings, the costliest first. Pure.

    `left_s` seconds of the budget are left. `helped` says whether a change helps so far: then half of them
    are kept for measuring it again. The result is None if too little is left for a measurement.
    """
    free_s = left_s * (1 - _CONFIRMING)
    if free_s >= _LEAST_S:
        return min(_MOST_S, max(_LEAST_S, free_s / findings)), free_s
    return None if helped or left_s < _LEAST_S else (_LEAST_S, left_s)


class _Provers:
    """Tries findings on copies of a copied database, and knows how long that took."""

    def __init__(
        self, parts: Path, copied: CopiedDatabase, workload: CapturedWorkload, steps: CureSteps
    ) -> None:
        self._copied = copied
        self.trials = Prover(parts, copied.conninfo, workload, steps)
        self._loops = LoopProver(parts, copied.conninfo, workload, steps)
        self._variants = VariantProver(parts, copied.conninfo, steps)
        self._took: list[float] = []

    def tried(self, plan: Plan, allowed: Allowance | None) -> Tried:
        """Try the changes of a finding in the time that is allowed; None if the budget is spent.

        Raises:
            ServerCrash: if the server of the copy is gone.
            SetupError: if its disk is full.
        """
        if allowed is None:
            more_s = fmean(self._took) if self._took else _LEAST_S
            return Tried(plan.finding, "not tried", _SPENT, more_s=more_s)
        begun = time.monotonic()
        try:
            tried = self._measured(plan, allowed)
        except ServerCrash:
            raise
        except BudgetTooShort:
            reason = "The budget was spent before its changes were set up on the copy."
            tried = Tried(plan.finding, "not tried", reason, more_s=3 * allowed.usual_s)
        except UncorkError as error:
            self._copied.check_disk(error)
            tried = Tried(plan.finding, "unclear", f"it could not be measured: {error}")
        self._took.append(time.monotonic() - begun)
        best = next((change for change in tried.changes if change.name == tried.best), None)
        if tried.state == "unclear" and best is not None:
            return replace(tried, more_s=_more_s(best, self._took[-1]))
        return tried

    def _measured(self, plan: Plan, allowed: Allowance) -> Tried:
        if isinstance(plan.client, LoopPlan):
            return self._loops.of_finding(plan.client, allowed)
        if plan.client is not None:
            return self._variants.of_finding(plan.client, allowed)
        return self.trials.of_finding(plan, allowed)

    def confirmed(self, tried: Sequence[Tried], allowed: Allowance) -> tuple[list[Tried], Change | None]:
        """Measure the changes that help again; return the findings with what that leaves of them."""
        begun = time.monotonic()
        try:
            chosen = self.trials.confirm(tried, allowed)
        except BudgetTooShort:
            reason = "Its change helped, but the budget was spent before it was measured again."
            spent = partial(replace, state="unclear", reason=reason, more_s=_LEAST_S)
            return [spent(attempt) if _is_to_confirm(attempt) else attempt for attempt in tried], None
        if chosen is None or chosen.state == "cured":
            return list(tried), chosen
        lost = partial(
            replace,
            state="harmful" if chosen.state == "harmful" else "unclear",
            reason=f"the gain was not confirmed when all changes were measured again: {chosen.reason}",
            more_s=_more_s(chosen, time.monotonic() - begun),
        )
        return [lost(attempt) if _is_to_confirm(attempt) else attempt for attempt in tried], chosen


def _is_to_confirm(tried: Tried) -> bool:
    """Return whether a finding's change is measured again with all others; those of clients were already."""
    client = any(change.kind == "client" and change.name == tried.best for change in tried.changes)
    return tried.state == "cured" and not client


def _more_s(change: Change, took_s: float) -> float | None:
    """Return the seconds that would probably decide a change which was measured for `took_s`."""
    if change.net is None:
        return 2 * took_s
    longer = times_longer(change.net)
    return None if longer is None else longer * took_s


def _usual(trials: Prover, allowed: Allowance, steps: CureSteps) -> tuple[Change, ...]:
    """Return what usual remedies bring; none if that cannot be measured, which the steps then say."""
    steps.begin("measuring what people often try first")
    try:
        return trials.usual(allowed.first())
    except UncorkError as error:
        steps(f"what people often try first could not be measured: {error}")
        return ()


def _provable(wanted: Sequence[Finding], keeps: CopyKeeps, state: _State) -> list[Plan]:
    """Return the plans of the findings that a copy can prove; the others are not tried, with the reason."""
    plans = [_plan(finding, keeps, state) for finding in wanted]
    found = [plan for plan in plans if plan.arms or plan.client is not None]
    state.tried.extend(Tried(plan.finding, "not tried", plan.reason) for plan in plans if plan not in found)
    return found


def _decided(earlier: Tried, finding: Finding) -> bool:
    same = (earlier.finding.rule, earlier.finding.objects) == (finding.rule, finding.objects)
    return same and _known_state(earlier) in ("cured", "not cured", "harmful", "refused")


def _known_state(earlier: Tried) -> ChangeState:
    """Return the state of a finding in an earlier cure, before changes that help were measured again."""
    best = next((change for change in earlier.changes if change.name == earlier.best), None)
    return "cured" if best is not None and best.state == "cured" else earlier.state


def _plan(finding: Finding, keeps: CopyKeeps, state: _State) -> Plan:
    arms, reason = arms_of(finding, state.workload, keeps)
    if not arms:
        loop, why = loop_plan(finding, state.workload)
        if loop is not None:
            return Plan(finding, (), "", loop.statements, loop)
        pool, other = pool_plan(finding, state.workload)
        transaction, unordered = (
            (None, "") if pool is not None else transaction_plan(finding, state.workload, state.seen)
        )
        variants = pool or transaction
        if variants is not None:
            return Plan(finding, (), "", client=variants)
        reason = why or other or unordered or reason
    own = set(finding.templates)
    statements = as_sent(measured_statements(arms, state.workload, own), arms)
    lost = [captured.reason for captured in state.workload.missing if captured.template in own]
    captured = own.intersection(statement.template for statement in state.workload.statements)
    if lost and not captured and (arms or reason.startswith("No captured statement")):
        return Plan(finding, (), f"Its statement cannot be measured on a copy: {lost[0]}.")
    return Plan(finding, arms, reason, statements)


def _announcement(job: CureJob, state: _State, provable: Sequence[Plan]) -> str:
    if not provable:
        return "no finding has a change that a copy can prove"
    covered = sum(statement.share for statement in state.workload.statements)
    many = count_words(len(provable), "finding")
    reading = (
        "the copy is given"
        if job.copy is not None
        else (
            f"reads the database once, {format_bytes(job.max_read)} a second at most; all copies take up to "
            f"{format_bytes(job.disk)}"
        )
    )
    return (
        f"tries the changes of {many} within {format_duration(job.budget_s * 1e9)}; {reading}; the captured "
        f"workload is {share_text(covered)} of the statements' time"
    )


def _differing(
    job: CureJob, copied: CopiedDatabase, plans: Sequence[Plan], steps: CureSteps
) -> dict[int, str]:
    """Return, by template, how its plan on the copy differs from the source's; nothing for a given copy."""
    statements = {statement.template: statement for plan in plans for statement in plan.statements}
    if job.copy is not None or not statements:
        return {}
    message = "comparing the plans on the copy with those on the server"
    steps.begin(message, message)
    found = plans_agree(job.source, copied.conninfo, tuple(statements.values()))
    return {
        agreement.template: f"the copy plans its statement otherwise than the server: {agreement.difference}"
        for agreement in found
        if not agreement.same
    }


def _with_rest(wanted: Sequence[Finding], tried: Sequence[Tried], why: str) -> list[Tried]:
    """Add the findings that were not reached, and return all in the order of `wanted`."""
    reached = {id(attempt.finding) for attempt in tried}
    rest = [
        Tried(finding, "not tried", f"not reached: {why}") for finding in wanted if id(finding) not in reached
    ]
    order = {id(finding): place for place, finding in enumerate(wanted)}
    return sorted([*tried, *rest], key=lambda one: order[id(one.finding)])


def _result(job: CureJob, state: _State, folder: Path, seconds: float) -> CureResult:
    chosen = state.chosen
    before, after = (None, None) if chosen is None else _bills(chosen)
    return build_from(
        CureResult,
        state.advice,
        server=read_manifest(job.watched).server.removeprefix("existing: "),
        watched=job.watched.name,
        answer="",
        reasons=(),
        tried=tuple(state.tried),
        chosen=chosen,
        copy=None if state.copied is None else state.copied.facts,
        covered=sum(statement.share for statement in state.workload.statements),
        bill_before=before,
        bill_after=after,
        handed=(),
        missing=(*state.advice.missing, *_not_captured(state.workload), *state.left_out),
        status=state.status,
        seconds=seconds,
        reproduce=job.command,
        uncork_version=__version__,
        id=folder.name,
        folder=str(folder),
        usual=state.usual,
        version=CURE_VERSION,
        all_s_per_hour=_all_statements(state.workload),
    )


def _all_statements(workload: CapturedWorkload) -> float | None:
    covered = sum(statement.share for statement in workload.statements)
    captured_ns = sum(statement.calls_per_hour * statement.mean_ns for statement in workload.statements)
    return captured_ns / 1e9 / covered if covered else None


def _bills(chosen: Change) -> tuple[Bill | None, Bill | None]:
    net = chosen.net
    if net is None:
        return None, None
    before = net.before
    share = 1.0 if before else 0.0
    after = max(0.0, before - net.saved)
    return (
        Bill(before, before, before, share),
        Bill(
            after,
            max(0.0, before - net.high),
            before - net.low if math.isfinite(net.low) else None,
            after / before if before else 0.0,
        ),
    )


def _not_captured(workload: CapturedWorkload) -> tuple[Missing, ...]:
    return tuple(
        Missing(
            inline_statement(captured.text),
            f"{captured.reason}: {share_text(captured.share)} of the statements' time is not measured",
            "",
        )
        for captured in workload.missing
    )


# ---- store the steps of a cure in its run while it works, so that the dashboard can follow it ----


class CureSteps:
    """Passes messages on to `told`, and stores each as a snapshot of the run, with the step it belongs to.

    `begun` is when the cure began, by the monotonic clock, in seconds.
    """

    def __init__(self, folder: Path, budget_s: float, begun: float, told: Callable[[str], None]) -> None:
        self._folder, self._budget_s, self._begun, self._told = folder, budget_s, begun, told
        self._step = "choosing what to try"

    def begin(self, step: str, message: str = "") -> None:
        """Begin a step; the next messages belong to it. `message` is passed on."""
        self._step = step
        self.note("")
        if message:
            self._told(message)

    def __call__(self, message: str) -> None:
        """Store a message, and pass it on."""
        self.note(message)
        self._told(message)

    def note(self, message: str) -> None:
        """Store a message without passing it on."""
        elapsed_ns = int((time.monotonic() - self._begun) * 1e9)
        snapshot = {"elapsed_ns": elapsed_ns, "budget_ns": int(self._budget_s * 1e9)}
        add_snapshot(self._folder, {**snapshot, "step": self._step, "text": message})


# ---- the server on which changes are tried ----


_FULL: Final = "of the copy's server became full"
_NAME: Final = "uncork_copy"
_LARGEST_BUFFERS: Final = 4 << 30
"""Shared buffers of the copy's server at most, in bytes: its machine does other work too."""
_BUFFER: Final = 8192


def expected_keeps(source: str, given: str | None) -> CopyKeeps:
    """Return what a copy will have as the source has it; statistics are only promised until it is made.

    Raises ConnectError if the source cannot be reached.
    """
    if given is not None:
        return CopyKeeps(statistics=True, pages=True)
    return CopyKeeps(statistics=read_source(source).major >= RESTORES, pages=False)


def databases_at_once(arms: int) -> int:
    """Return how many copies of the data exist while an experiment runs: for `arms` changes and a baseline.

    The copy itself, the template with which all variants begin, a template for each variant, and a
    live database for each variant and for the baseline's second run.
    """
    return 2 + (arms + 1) + (arms + 2)


class CopiedDatabase:
    """A copy of a database, from `make` until the end of its context, which removes it.

    Args:
        source: connection string of the database to copy.
        given: connection string of a database that is a copy already; None to make one. It is not removed.
        binaries: a folder with `initdb` and `postgres` of another version than the embedded one.
        settings: settings of the copy's server besides those of the source.
    """

    def __init__(
        self,
        source: str,
        given: str | None,
        binaries: Path | None,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._source, self._given, self._binaries = source, given, binaries
        self._more = settings
        self._server: EmbeddedServer | None = None
        self.facts: CopyFacts | None = None
        self.major = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        try:
            if isinstance(error, UncorkError):
                self.check_disk(error)
        finally:
            with uninterrupted():
                self._server.stop()

    def check_disk(self, error: UncorkError) -> None:
        """Raise SetupError if an error came because the disk is full, and the error does not say so."""
        if self._server is None or not self._server.disk_is_full or _FULL in str(error):
            return
        folder = servers_folder()
        raise SetupError(
            f"the disk {_FULL}: {format_bytes(disk_usage(folder).free)} are left in {folder}; free some "
            "space, set UNCORK_SERVERS to a folder on a larger disk, or copy a sample of the rows with --disk"
        ) from error

    @property
    def conninfo(self) -> str:
        """The connection string of the copy."""
        if self._given is not None:
            return self._given
        if self._server is None:
            raise SetupError("the copy was not made")
        return self._server.conninfo(_NAME)

    def make(self, *, max_read: int, disk: int, told: Callable[[str], None]) -> CopyFacts:
        """Make the copy, or look at the given one; return what it holds.

        `max_read` is how many bytes a second to read of the source at most, `disk` how many bytes
        the copy's tables may take.

        Raises:
            ConnectError: if a server cannot be reached.
            SetupError: if the copy cannot be made.
        """
        if self._given is not None:
            found = read_source(self._given)
            self.major = found.major
            self.facts = CopyFacts(
                "a given database", (), (), found.bytes, 0.0, sampled=False, source_statistics=True
            )
            return self.facts
        source = read_source(self._source)
        binaries = self._binaries or _binaries_of(source.major)
        self._server = EmbeddedServer(
            {**_settings(start_settings(self._source)), **self._more}, binaries=binaries
        )
        self._server.start()
        self.major = count_statements(self._server.conninfo())
        facts = copy_source(self._source, self.conninfo, max_read=max_read, disk=disk, told=told)
        self.facts = _with_version(facts, source.major, self.major)
        return self.facts


def _settings(wanted: Mapping[str, str]) -> dict[str, object]:
    """Return the settings of the copy's server: those of the source that need a start."""
    found: dict[str, object] = dict(wanted)
    if _bytes(str(found.get("shared_buffers", "0"))) > _LARGEST_BUFFERS:
        found["shared_buffers"] = f"{_LARGEST_BUFFERS >> 20}MB"
    return found


def _bytes(setting: str) -> int:
    """Return the bytes of a size as SHOW prints it: ``128MB``; a bare number counts blocks."""
    units = {"kB": 10, "MB": 20, "GB": 30, "TB": 40}
    for unit, shift in units.items():
        if setting.endswith(unit):
            return int(setting.removesuffix(unit)) << shift
    return int(setting) * _BUFFER if setting.isdigit() else 0


def _binaries_of(major: int) -> Path | None:
    """Return a folder with the server's programs of this version, where packages install them, or None."""
    for parent in ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt"):
        for name in (str(major), f"postgresql@{major}"):
            folder = Path(parent) / name / "bin"
            if (folder / "initdb").is_file() and (folder / "postgres").is_file():
                return folder
    return None


def _with_version(facts: CopyFacts, source: int, copy: int) -> CopyFacts:
    if source == copy:
        return facts
    other = NotCopied(
        f"version {source} of the server",
        f"only PostgreSQL {copy} is here",
        f"statements are planned by PostgreSQL {copy}; those whose plan differs are not judged. Name a "
        f"folder with the programs of PostgreSQL {source} with --pg-bin",
    )
    return replace(facts, missing=(*facts.missing, other))
