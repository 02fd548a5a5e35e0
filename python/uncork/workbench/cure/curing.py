"""Try the changes of a server's findings on a copy: `uncork cure`.

Evidence of a watch comes in; the findings with the changes that were proven go out, with the files to apply
them. Each finding's changes are executed once on a scratch database, and those that can matter are measured
against the present state with the captured workload. What helps is measured again, all together, on fresh
trials: the best of several looks better than it is. Nothing but reading reaches the source.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from uncork import __version__
from uncork.analysis.advice.result import advice_of
from uncork.errors import RunError, ServerCrash, SetupError, UncorkError, UsageError
from uncork.experiment.cure.arms import arms_of, as_sent
from uncork.experiment.cure.measured import measured_statements
from uncork.experiment.cure.setups import NEW_COPY, CopyKeeps
from uncork.model.database.finding import Bill, Finding
from uncork.model.database.missing import Missing
from uncork.model.database.workload import CapturedWorkload
from uncork.model.redaction import redact
from uncork.model.results.advice import AdviceResult
from uncork.model.results.cure import Change, CureResult, Tried
from uncork.model.stored_run import RunStatus
from uncork.model.template_words import inline_statement
from uncork.model.units import count_words, format_bytes, format_duration, share_text
from uncork.report.cure.answer import answer_cure
from uncork.requests.jobs import CureJob
from uncork.store.cures import read_cure
from uncork.store.layout import PARTS, read_manifest
from uncork.store.snapshots import delete_snapshots
from uncork.workbench.cure.capture import captured_workload
from uncork.workbench.cure.copies import CopiedDatabase, databases_at_once, expected_keeps
from uncork.workbench.cure.gate import plans_agree
from uncork.workbench.cure.handing import hand_over, write_pull_request
from uncork.workbench.cure.loops import LoopPlan, LoopProver, loop_plan
from uncork.workbench.cure.pooling import pool_plan
from uncork.workbench.cure.proving import MOST_ARMS, Plan, Prover
from uncork.workbench.cure.steps import CureSteps
from uncork.workbench.cure.stored import write_cure
from uncork.workbench.cure.transactions import SeenTransactions, transaction_plan
from uncork.workbench.cure.variants import VariantProver
from uncork.workbench.cure.violations import without_violations
from uncork.workbench.run_record import draft, start_run

_CONFIRMING: Final = 0.5
"""Fraction of the budget for measuring the chosen changes again, which compares more of them at once."""
_LEAST_S: Final = 15.0
_MOST_S: Final = 90.0
"""The shortest and the longest experiment about one finding."""
_LONGEST_S: Final = 420.0
_OVER: Final = 3.0
"""On a busy machine, measurements may be continued up to this time, or this multiple of the budget."""
_LEAST_USUAL_S: Final = 30.0
"""Time of the budget that must be left to measure what people often try first."""
_LEAST_BUILD_S: Final = 60.0
"""How long a change may take to execute on the copy, even if the budget ends earlier."""


@dataclass(slots=True)
class _State:
    """What a cure has found so far; everything that is stored is made from it."""

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

    `told` receives messages about the progress. Ctrl-C ends early and keeps what was found. The trouble says
    why it ended early; empty if it did not.

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
        until_s = begun + max(_LONGEST_S, _OVER * job.budget_s)
        trials = Prover(parts, copied.conninfo, state.workload, steps, until_s)
        loops = LoopProver(parts, copied.conninfo, state.workload, steps)
        variants = VariantProver(parts, copied.conninfo, steps)

        def left_s() -> float:
            """Return the seconds of the budget that are left."""
            return job.budget_s - (time.monotonic() - begun)

        share = max(0.0, left_s()) * (1 - _CONFIRMING) / len(provable)
        for place, plan in enumerate(provable):
            name = f"finding {place + 1} of {len(provable)}: {plan.finding.headline}"
            steps.begin(f"measuring {name}", name)
            known = next((each for each in earlier if _decided(each, plan.finding)), None)
            if known is not None:
                trials.remember(plan, known)
                state.tried.append(replace(known, finding=plan.finding))
                continue
            if plan.finding.templates and (reason := differing.get(plan.finding.templates[0])):
                state.tried.append(Tried(plan.finding, "unclear", reason))
                continue
            state.tried.append(_tried(plan, trials, loops, variants, copied, share, left_s()))
            steps.note(f"{state.tried[-1].state}: {state.tried[-1].reason}")
            keep()
        steps.begin("confirming the changes that help")
        state.chosen = trials.confirm(state.tried, max(2 * _LEAST_S, left_s()))
        state.tried = [_confirmed(tried, state.chosen) for tried in state.tried]
        if state.chosen is not None and state.chosen.state == "cured" and left_s() >= _LEAST_USUAL_S:
            keep()
            state.usual = _usual(trials, min(_MOST_S, left_s() / 2), steps)


def _tried(
    one: Plan,
    trials: Prover,
    loops: LoopProver,
    variants: VariantProver,
    copied: CopiedDatabase,
    share_s: float,
    left_s: float,
) -> Tried:
    """Try the changes of a finding; `share_s` is its part of the budget, of which `left_s` are left.

    Raises:
        ServerCrash: if the server of the copy is gone.
        SetupError: if its disk is full.
    """
    given_s = min(_MOST_S, max(_LEAST_S, share_s))
    try:
        if isinstance(one.client, LoopPlan):
            return loops.of_finding(one.client, given_s)
        if one.client is not None:
            return variants.of_finding(one.client, given_s)
        return trials.of_finding(one, given_s, max(_LEAST_BUILD_S, left_s))
    except ServerCrash:
        raise
    except UncorkError as error:
        copied.check_disk(error)
        return Tried(one.finding, "unclear", f"it could not be measured: {error}")


def _usual(trials: Prover, budget_s: float, steps: CureSteps) -> tuple[Change, ...]:
    """Return what usual remedies bring; none if that cannot be measured, which the steps then say."""
    steps.begin("measuring what people often try first")
    try:
        return trials.usual(budget_s)
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
    """Return whether an earlier cure, of the same watch, decided about a finding."""
    same = (earlier.finding.rule, earlier.finding.objects) == (finding.rule, finding.objects)
    return same and earlier.state in ("cured", "not cured", "harmful", "refused")


def _confirmed(tried: Tried, chosen: Change | None) -> Tried:
    """Return a finding with the state that the second measurement leaves it."""
    if tried.state != "cured" or chosen is None or chosen.state == "cured":
        return tried
    if any(change.kind == "client" and change.name == tried.best for change in tried.changes):
        return tried  # it was measured again on its own
    reason = f"the gain was not confirmed when all changes were measured again: {chosen.reason}"
    return replace(tried, state="harmful" if chosen.state == "harmful" else "unclear", reason=reason)


def _plan(finding: Finding, keeps: CopyKeeps, state: _State) -> Plan:
    arms, reason = arms_of(finding, state.workload, keeps)
    if not arms:
        loop, why = loop_plan(finding, state.workload)
        if loop is not None:
            return Plan(finding, (), "", loop.statements, loop)
        pool, other = pool_plan(finding, state.workload)
        if pool is not None:
            return Plan(finding, (), "", client=pool)
        transaction, unordered = transaction_plan(finding, state.workload, state.seen)
        if transaction is not None:
            return Plan(finding, (), "", client=transaction)
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
    reached = {id(one.finding) for one in tried}
    rest = [
        Tried(finding, "not tried", f"not reached: {why}") for finding in wanted if id(finding) not in reached
    ]
    order = {id(finding): place for place, finding in enumerate(wanted)}
    return sorted([*tried, *rest], key=lambda one: order[id(one.finding)])


def _result(job: CureJob, state: _State, folder: Path, seconds: float) -> CureResult:
    chosen = state.chosen
    before, after = (None, None) if chosen is None else _bills(chosen)
    return CureResult(
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
        looked_at=state.advice.looked_at,
        sessions=state.advice.sessions,
        usual=state.usual,
        hidden=state.advice.hidden,
        costliest=state.advice.costliest,
        all_s_per_hour=_all_statements(state.workload),
    )


def _all_statements(workload: CapturedWorkload) -> float | None:
    """Return the time of all statements in seconds an hour, captured or not; None if none was captured."""
    covered = sum(statement.share for statement in workload.statements)
    captured_ns = sum(statement.calls_per_hour * statement.mean_ns for statement in workload.statements)
    return captured_ns / 1e9 / covered if covered else None


def _bills(chosen: Change) -> tuple[Bill | None, Bill | None]:
    """Return what the measured statements cost per hour without and with the chosen changes."""
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
