"""Find the transaction that a finding is about, and plan to prove on a copy what another one brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from uncork.errors import SetupError, UsageError
from uncork.experiment.cure.text import usable_sets
from uncork.experiment.cure.transactions import (
    TransactionArm,
    doubt_of_queue,
    held_times,
    net_of_transactions,
    transaction_arms,
    transaction_habits,
    transactions_experiment,
    whole_transaction,
    with_one_row,
)
from uncork.model.database.finding import Finding
from uncork.model.database.transaction import CapturedTransaction, StatementOrder
from uncork.model.database.workload import CapturedWorkload
from uncork.model.records import build_from
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.template_words import short_template
from uncork.profile.deltas import statement_deltas
from uncork.profile.grammar import identify, template_text
from uncork.profile.recording.transactions import LoggedSessions
from uncork.profile.workload.transactions import NoOrder, logged_order, sampled_order
from uncork.store.layout import watch_of
from uncork.store.tables import read_evidence
from uncork.workbench.cure.variants import Variant, VariantPlan
from uncork.workbench.profile.log_files import log_request
from uncork.workbench.profile.recordings import logged_sessions

_MOST_CLIENTS: Final = 32
"""Sessions of an experiment at most."""
_HOUR_S: Final = 3600.0


class SeenTransactions:
    """The transactions that a stored watch of a server saw, or its logs; both are read when first needed."""

    def __init__(self, watched: Path, seconds: float, logs: Sequence[str] = ()) -> None:
        self._watched, self._seconds, self._logs = watched, seconds, logs
        self._known: dict[str, int | None] = {}

    def order(self, finding: Finding) -> StatementOrder:
        """Return the statements of the transactions that a finding is about, in their order.

        Raises:
            NoOrder: with the reason, as a sentence, if the watch does not show it, or the log does not.
            StoreError: if the watch is damaged.
        """
        rows, anchor = self._activity, next(iter(finding.templates), None)
        if anchor is None:
            raise NoOrder("The finding names no statement of the transaction.")
        if self._logs:
            return logged_order(self._logged, self._template_of, anchor)
        who = Counter(_who(row) for row in rows if row["template"] == anchor)
        users = {user for _, user in who}
        named = {name for name in who if name in {(text, user) for text in finding.objects for user in users}}
        chosen = max(named or who, key=lambda name: who[name], default=None)
        return sampled_order(
            [row for row in rows if _who(row) == chosen],
            self._samples,
            self._seconds,
            anchor,
            self._calls,
            self._texts,
        )

    @cached_property
    def _logged(self) -> LoggedSessions:
        try:
            request = log_request(self._logs, None, (None, None), 0)
            return logged_sessions(request, self._tables[0]["server"]["database"])
        except (UsageError, SetupError) as error:
            raise NoOrder(f"The log does not show its transactions: {error}.") from error

    def _template_of(self, text: str) -> int | None:
        if text not in self._known:
            short = template_text(text)
            identity = identify(short.encode(), text.encode())
            self._known[text] = self._by_identity.get(identity or short, self._by_identity.get(short))
        return self._known[text]

    @cached_property
    def _by_identity(self) -> Mapping[str, int]:
        rows = self._tables[1]["database_templates"].to_pylist()
        found = {row["text"]: row["template"] for row in rows}
        return found | {row["identity"]: row["template"] for row in rows if row["identity"] is not None}

    @cached_property
    def _tables(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return read_evidence(watch_of(self._watched) or self._watched, DATABASE_TABLES)

    @cached_property
    def _activity(self) -> Sequence[Mapping[str, Any]]:
        database = self._tables[0]["server"]["database"]
        rows = self._tables[1]["database_activity"].to_pylist()
        return [row for row in rows if row["database"] == database and row["leader_pid"] is None]

    @cached_property
    def _samples(self) -> int:
        return int(self._tables[1]["database_samples"].num_rows)

    @cached_property
    def _texts(self) -> Mapping[int, str]:
        rows = self._tables[1]["database_templates"].to_pylist()
        return {row["template"]: row["text"] for row in rows}

    @cached_property
    def _calls(self) -> Mapping[int, int]:
        facts, tables = self._tables
        rows = tables["database_statements"].to_pylist()
        moments = ([row for row in rows if row["moment"] == moment] for moment in ("before", "after"))
        found: Counter[int] = Counter()
        for row in statement_deltas(*moments):
            here = row["database"] == facts["server"]["database"]
            if here and row["template"] is not None and row["toplevel"] is not False:
                found[row["template"]] += row["calls"]
        return found


def _who(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["application"] or "", row["user"] or ""


def plan_variants(
    finding: Finding, transaction: CapturedTransaction, arms: Sequence[TransactionArm]
) -> VariantPlan:
    """Return the plan to compare a transaction with other ways to send it, which hold its locks shorter."""
    by_name = {arm.arm.name: arm for arm in arms}
    return VariantPlan(
        finding,
        "the captured transaction, and how it could hold its locks for less time",
        whole_transaction(transaction),
        transaction.clients,
        tuple(Variant(arm.arm, arm.habit, arm.assumed) for arm in arms),
        experiment=lambda copy, names, budget_s: transactions_experiment(
            finding.headline, copy, transaction, [by_name[name] for name in names], budget_s=budget_s
        ),
        effect=lambda name, rate: held_times(rate, by_name[name].outside_ns),
        net=lambda effect: net_of_transactions(effect, transaction),
        doubt=lambda effect: doubt_of_queue(effect, transaction),
    )


def transaction_plan(
    finding: Finding, workload: CapturedWorkload, seen: SeenTransactions
) -> tuple[VariantPlan | None, str]:
    """Return the plan to prove a finding by variants of its transaction, or the reason why not.

    Both are empty if the finding proposes no change of a transaction. Raises StoreError if the
    watch is damaged.
    """
    if not transaction_habits(finding):
        return None, ""
    try:
        transaction = with_one_row(finding, _captured(seen.order(finding), workload))
    except NoOrder as unknown:
        return None, str(unknown)
    arms, reason = transaction_arms(finding, transaction)
    return (plan_variants(finding, transaction, arms), "") if arms else (None, reason)


def _captured(order: StatementOrder, workload: CapturedWorkload) -> CapturedTransaction:
    """Return an ordered transaction with its captured statements.

    Raises NoOrder if a statement was not captured.
    """
    known = {statement.template: statement for statement in workload.statements}
    missing = {captured.template: captured for captured in workload.missing}
    statements = []
    for ordered_statement in order.statements:
        one = known.get(ordered_statement.template)
        if one is None or not usable_sets(one):
            lost = missing.get(ordered_statement.template)
            what = "A statement" if lost is None else f'Statement "{short_template(lost.text)}"'
            why = "" if lost is None else f": {lost.reason}"
            raise NoOrder(f"{what} of its transaction cannot be sent again{why}.")
        statements.append(one)
    pauses = [order.first_ns, *(statement.pause_ns for statement in order.statements)]
    return build_from(
        CapturedTransaction,
        order,
        statements=tuple(statements),
        pauses_ns=tuple(pauses),
        per_hour=order.count / order.seconds * _HOUR_S,
        source_ns=order.sessions * order.seconds * 1e9 / order.count,
        clients=min(max(round(order.sessions), 1), _MOST_CLIENTS),
    )
