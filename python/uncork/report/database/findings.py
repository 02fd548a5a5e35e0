"""The sentences of findings on a watched server: a headline with its cost, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from uncork.model.results.database_finding import DatabaseFinding, Rule
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Step
from uncork.report.database.words import sessions_text
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

__all__ = ["SHOW_BLOCKED", "finding_headline", "finding_step"]

SHOW_BLOCKED: Final = (
    'psql -c "SELECT pid, pg_blocking_pids(pid), now() - xact_start AS open, state, query FROM '
    "pg_stat_activity WHERE wait_event_type = 'Lock'\""
)
_SHOW_IDLE: Final = (
    'psql -c "SELECT pid, application_name, now() - state_change AS idle, query FROM pg_stat_activity '
    "WHERE state = 'idle in transaction' ORDER BY state_change\""
)


def finding_headline(one: DatabaseFinding) -> str:
    """Return what was found and what it costs."""
    return _HEADLINES[one.rule](one)


def finding_step(one: DatabaseFinding) -> Step:
    """Return what to do about a finding, with the command that helps."""
    return _STEPS[one.rule](one)


def _cost(one: DatabaseFinding) -> str:
    """Return the share of the busy time that a finding costs, with the sessions behind it."""
    return (
        f"costs {share_text(one.share)} of the busy time ({sessions_text(one.sessions)} sessions on average)"
    )


def _template(one: DatabaseFinding) -> str:
    return f": {short_template(one.text)}" if one.text else ""


def _calls(one: DatabaseFinding) -> str:
    calls = round(one.figures.get("calls", 0))
    return count_words(calls, "call") if calls else "each call"


# ---- headlines ----


def _forgotten(one: DatabaseFinding) -> str:
    idle = format_duration(one.figures["idle_ns"])
    if one.share:
        return (
            f"Application {one.subject} left a transaction idle for {idle} and blocked other sessions, which "
            f"{_cost(one)}."
        )
    held = format_count(round(one.figures["held_age"]))
    return (
        f"Application {one.subject} left a transaction idle for {idle}, so VACUUM cannot remove the rows "
        f"that {held} later transactions left dead."
    )


def _one_by_one(one: DatabaseFinding) -> str:
    calls = round(one.figures["calls"])
    per = format_count(float(f"{one.figures['per_transaction']:.1g}"))
    number = f"{format_count(calls)} statements" if calls else f"{per} statements or more"
    return (
        f"Application {one.subject} sends {number} one by one within {'' if calls else 'each of its '}"
        f"transactions{_in_turn(one)}, which {_cost(one)}{_template(one)}"
    )


def _in_turn(one: DatabaseFinding) -> str:
    """Say how many templates a loop sends in turn, and the ratio of the first one to BEGIN."""
    templates, ratio = round(one.figures.get("templates", 1)), one.figures.get("calls_a_begin", 0.0)
    if templates < 2:
        return ""
    calls = f", {format_count(round(ratio))} calls of the first for each BEGIN" if ratio >= 1.5 else ""
    return f" ({templates} templates in turn{calls})"


def _missing_index(one: DatabaseFinding) -> str:
    rows = format_count(round(one.figures["table_rows"]))
    found = one.figures.get("rows_a_call")
    returned = "" if found is None else f" for {_few(found)}"
    calls = _calls(one)
    return (
        f"{calls[:1].upper()}{calls[1:]} read the whole table {one.subject} ({rows} rows){returned}, which "
        f"{_cost(one)}{_template(one)}"
    )


def _few(rows: float) -> str:
    return "a row each" if rows < 1.5 else f"{format_count(round(rows))} rows each"


def _lock_wait(one: DatabaseFinding) -> str:
    opened = one.figures.get("open_ns")
    during = f" (its transaction was open for up to {format_duration(opened)})" if opened else ""
    who = f"application {one.subject}" if one.subject else "an unknown session"
    most = count_words(round(one.figures["at_most"]), "session")
    return (
        f"Up to {most} at once waited for locks of {who}{during}, which {_cost(one)}; it held them during"
        f"{_template(one)}"
    )


def _row_commits(one: DatabaseFinding) -> str:
    calls = round(one.figures.get("calls", 0))
    rows = f"{format_count(calls)} rows" if calls else "rows"
    return (
        f"Application {one.subject} inserts {rows} with a commit for each, which {_cost(one)}{_template(one)}"
    )


def _slow(one: DatabaseFinding) -> str:
    mean = format_duration(one.figures["mean_ns"])
    return f"One statement takes {mean} per call ({_calls(one)}), which {_cost(one)}{_template(one)}"


def _temporary(one: DatabaseFinding) -> str:
    size = format_bytes(one.figures["bytes_a_call"])
    files = f"{size} of temporary files in each of {_calls(one)}"
    return f"One statement wrote {files}, which {_cost(one)}{_template(one)}"


def _jit(one: DatabaseFinding) -> str:
    return f"Compiling repeated statements (jit) {_cost(one)}; most of it in{_template(one)}"


def _bloat(one: DatabaseFinding) -> str:
    empty, size = one.figures["bloat_bytes"], one.figures["bytes"]
    cost = f"; reading the empty space {_cost(one)}" if one.share else ""
    room = f"{format_bytes(empty)} of {format_bytes(size)}"
    return f"Table {one.subject} is {share_text(empty / size)} empty ({room}){cost}."


def _dead(one: DatabaseFinding) -> str:
    dead, rows = round(one.figures["dead"]), one.figures["rows"]
    since = one.figures.get("since_ns")
    if one.figures["disabled"] or since is None:
        reason = "and autovacuum is off"
    else:
        reason = f"and was last vacuumed {format_duration(since)} ago"
    part = share_text(dead / rows)
    return f"Table {one.subject} has {format_count(dead)} dead rows ({part} of all), {reason}."


def _checkpoints(one: DatabaseFinding) -> str:
    full, whole = one.figures["full_bytes"], one.figures["wal_bytes"]
    return (
        f"The amount of WAL forced {round(one.figures['forced'])} checkpoints, and {format_bytes(full)} of "
        f"the {format_bytes(whole)} of WAL are full-page images, which follow checkpoints."
    )


_HEADLINES: Final[Mapping[Rule, Callable[[DatabaseFinding], str]]] = {
    "forgotten-transaction": _forgotten,
    "one-by-one": _one_by_one,
    "missing-index": _missing_index,
    "lock-wait": _lock_wait,
    "row-by-row-commit": _row_commits,
    "slow-statement": _slow,
    "temporary-files": _temporary,
    "jit": _jit,
    "bloat": _bloat,
    "dead-rows": _dead,
    "checkpoints": _checkpoints,
}

# ---- steps ----


def _end_transaction(one: DatabaseFinding) -> Step:
    blocks = bool(one.share)
    command = SHOW_BLOCKED if blocks else _SHOW_IDLE
    shows = "Show who blocks whom right now" if blocks else "Show idle transactions right now"
    return Step(
        f"Make application {one.subject} commit or roll back before it waits for anything else; set "
        f"idle_in_transaction_session_timeout to end forgotten transactions. {shows}:",
        command,
    )


def _join(one: DatabaseFinding) -> Step:
    if one.text.startswith("insert"):
        return Step(
            "Insert many rows with one statement (several VALUES, COPY), or send the statements in a "
            "pipeline."
        )
    return Step(
        "Fetch all rows with one statement (a join, or WHERE key = ANY of a list), or send the statements in "
        "a pipeline."
    )


def _index(one: DatabaseFinding) -> Step:
    return Step(
        f"Create an index on the columns of {one.subject} that the WHERE clause compares, and check with "
        f"EXPLAIN (ANALYZE, BUFFERS) that it is used{_template(one)}"
    )


def _shorten(one: DatabaseFinding) -> Step:
    if one.figures["long"]:
        words = "Shorten the transaction that holds the locks, or move slow work out of it."
    else:
        words = "Spread the updates over more rows, or update the contended row last in the transaction."
    return Step(f"{words} Show who blocks whom right now:", SHOW_BLOCKED)


def _batch(one: DatabaseFinding) -> Step:
    return Step(
        f"In application {one.subject}, insert many rows with one statement or in one transaction; "
        "synchronous_commit = off also helps, if a crash may lose the last moments."
    )


def _explain(one: DatabaseFinding) -> Step:
    if one.figures.get("waits"):
        return Step(
            "This statement writes and waits for most of its time, which EXPLAIN does not show. Look at its "
            "wait events in the tree: WALSync, WALWrite and SyncRep are the write-ahead log (a faster disk "
            "for pg_wal, fewer commits), DataFileRead and DataFileWrite are blocks. Look at the checkpoints "
            f"among the server's counters{_template(one)}"
        )
    return Step(f"Run EXPLAIN (ANALYZE, BUFFERS) on the statement{_template(one)}")


def _memory(one: DatabaseFinding) -> Step:
    return Step(
        f"Raise work_mem for this statement above {format_bytes(one.figures['bytes_a_call'])}, or create an "
        f"index that returns its rows in order{_template(one)}"
    )


def _no_jit(_one: DatabaseFinding) -> Step:
    return Step("Turn jit off for these statements, or raise jit_above_cost above their cost.")


def _rewrite(one: DatabaseFinding) -> Step:
    return Step(
        "Find out what kept autovacuum from freeing the space for new rows. Then rewrite table "
        f"{one.subject} with pg_repack, or with VACUUM FULL while nobody needs it (it locks the table)."
    )


def _vacuum(one: DatabaseFinding) -> Step:
    if one.figures["disabled"]:
        return Step(f"Turn autovacuum on for table {one.subject}, and run VACUUM (ANALYZE) on it once.")
    return Step(
        f"Run VACUUM (VERBOSE, ANALYZE) on table {one.subject}: its output shows why dead rows cannot be "
        "removed."
    )


def _larger(_one: DatabaseFinding) -> Step:
    return Step("Raise max_wal_size, so that checkpoint_timeout triggers checkpoints, not the amount of WAL.")


_STEPS: Final[Mapping[Rule, Callable[[DatabaseFinding], Step]]] = {
    "forgotten-transaction": _end_transaction,
    "one-by-one": _join,
    "missing-index": _index,
    "lock-wait": _shorten,
    "row-by-row-commit": _batch,
    "slow-statement": _explain,
    "temporary-files": _memory,
    "jit": _no_jit,
    "bloat": _rewrite,
    "dead-rows": _vacuum,
    "checkpoints": _larger,
}
