"""Findings of a report on a log: each has a share of time, and every line is accounted for."""

from dataclasses import replace

import pytest

from fakes.log_results import MS, contributions, log_result, template
from uncork.advise.findings import find_findings
from uncork.analysis.log.evidence import evidence_of_log
from uncork.model.results.log import (
    Blocking,
    FileFacts,
    LogTimes,
    RejectedLine,
    Repetition,
    Tally,
    TransactionFacts,
)
from uncork.report.log.answer import answer_log
from uncork.report.log.document import build_log_document
from uncork.report.log.tables import lines_words

TOTAL = 1_000 * MS


def quiet(**changes):
    """A log of one template of a second, with nothing else that stands out."""
    one = replace(template(0), sum_ns=TOTAL, share=1.0, lists=None, repetition=None)
    result = log_result(templates=1)
    server = replace(result.server, lock_waits=(), temporary_files=())
    plain = replace(
        result,
        templates=(one,),
        executions=LogTimes(100, TOTAL, TOTAL),
        transactions=(),
        errors=(),
        server=server,
    )
    return replace(plain, **changes)


def transaction(**changes):
    """Ten transactions that were open for a second in all, a tenth of it in statements."""
    one = TransactionFacts("shop", "u", "d", 10, 1_000 * MS, 100 * MS, 50, 5, 9)
    return replace(one, **changes)


def repeated(result, waiting_ns):
    repetition = Repetition(2, 100, 60, 10 * MS, waiting_ns)
    return replace(result, templates=(replace(result.templates[0], repetition=repetition),))


def steps(result):
    return " ".join(step.text for step in build_log_document(result, parts=0).steps)


def test_a_quiet_log_has_no_findings():
    assert answer_log(quiet()).reasons == ()


@pytest.mark.parametrize(("waiting", "found"), [(30 * MS, False), (60 * MS, True)])
def test_executions_one_by_one_are_a_finding_if_they_take_time(waiting, found):
    result = repeated(quiet(), waiting)
    reasons = answer_log(result).reasons
    assert bool(reasons) == found
    if found:
        assert "With the waits in between they take 6.6 % of the time" in reasons[0]


def test_a_finding_is_the_first_step_instead_of_explain():
    calm = repeated(quiet(first_us=0, last_us=2_000_000), 30 * MS)
    assert find_findings(evidence_of_log(calm)) == ()
    assert "EXPLAIN" in steps(calm)
    sick = repeated(quiet(first_us=0, last_us=2_000_000), 600 * MS)
    found = replace(sick, findings=find_findings(evidence_of_log(sick)))
    assert [one.rule for one in found.findings] == ["one-by-one"]
    assert "with one statement" in steps(found)
    assert "EXPLAIN" not in steps(found)


def test_waits_for_locks_and_temporary_files_are_findings_if_they_take_time():
    calm, result = quiet(), quiet()
    for micro, found in ((10 * MS, False), (100 * MS, True)):
        locks = replace(calm.server, lock_waits=(Tally("ShareLock", 1, micro, micro),))
        reasons = answer_log(replace(calm, server=locks)).reasons
        assert bool(reasons) == found
    assert "100 ms in total (10 % of statement time)" in reasons[0]
    dead = replace(calm.server, lock_waits=(Tally("ShareLock", 1, 1, 1),), deadlocks=1)
    assert "1 deadlock" in answer_log(replace(calm, server=dead)).reasons[0]
    files = replace(result.server, temporary_files=(Tally(result.templates[0].text, 1, 9, 9),))
    assert "took 100 % of the time" in answer_log(replace(result, server=files)).reasons[0]
    files = replace(result.server, temporary_files=(Tally("select ? from other", 1, 9, 9),))
    assert answer_log(replace(result, server=files)).reasons == ()


def test_the_first_step_on_a_statement_that_waits_is_not_explain():
    result = quiet()
    assert "EXPLAIN (ANALYZE, BUFFERS)" in steps(result)
    top = replace(
        result.templates[0],
        text="update a set b = ?",
        kind="UPDATE",
        waits=True,
        p50_ns=2 * MS,
        p95_ns=3 * MS,
    )
    top = replace(top, p99_ns=480 * MS)
    result = replace(result, templates=(top,), databases=contributions("shop"))
    words = steps(result)
    assert "Run EXPLAIN" not in words
    assert "its p99 is 480 ms although its median is 2.00 ms" in words
    assert "set log_lock_waits = on" in words and "checkpoints" in words and "WALSync" in words
    commands = [step.command for step in build_log_document(result, parts=0).steps]
    assert commands[0] == "uncork profile db dbname=shop --for 60s"
    wait = Blocking(0, "", "", None, "", "", 12, 3_400 * MS, MS)
    assert "the log has 12 lock waits of it, 3.40 s in total" in steps(replace(result, blocking=(wait,)))
    commit = replace(top, kind="COMMIT", text="commit")
    assert "It has no plan" in steps(replace(result, templates=(commit,)))


def test_a_forgotten_transaction_is_told_from_one_of_many_statements():
    forgotten = transaction(pauses=2, pause_ns=800 * MS, pause_max_ns=500 * MS)
    (reason,) = answer_log(quiet(transactions=(forgotten,))).reasons
    assert "90 % of it waiting for the client (47 % of the time)" in reason
    assert "800 ms in 2 pauses of over a second" in reason and "Idle in transaction" in reason
    busy = transaction(statements=5_000, statements_max=900)
    (reason,) = answer_log(quiet(transactions=(busy,))).reasons
    assert "before each statement on average, and up to 900 statements per transaction" in reason
    assert "Idle in transaction" not in reason


def test_waiting_within_rows_is_told_once_and_not_as_idle_in_transaction():
    lookups = transaction(statements=5_000, repeated_wait_ns=890 * MS)
    (reason,) = answer_log(repeated(quiet(transactions=(lookups,)), 890 * MS)).reasons
    assert reason.startswith("One by one")
    assert "47 % of the time" in reason


def test_transactions_of_little_time_are_no_finding():
    short = transaction(elapsed_ns=50 * MS, working_ns=5 * MS)
    assert answer_log(quiet(transactions=(short,))).reasons == ()


def test_lines_that_belong_to_no_entry_are_told_with_the_first_one_and_the_remedy():
    file = FileFacts("a.log", 5_000, "stderr", "%m [%p] ", 97, 1, None, 100, 97, 2, 0)
    rejected = (RejectedLine("a.log", 7, "2026-01-01 00:00:00 UTC 7 LOG:  x"),)
    result = quiet(files=(file,), rejected=1, rejected_lines=rejected)
    (warning,) = answer_log(result).warnings
    assert warning == (
        "1 of 100 lines (1.0 %) belongs to no entry and is not counted; the first is a.log:7: "
        "2026-01-01 00:00:00 UTC 7 LOG:  x (the file was read with -p '%m [%p] '). --rejected lists them. "
        "If they are log entries, give their log_line_prefix with -p."
    )
    assert lines_words(result) == (
        "100: 97 start an entry or add to one, 2 continue one or are empty, 1 belong to no entry"
    )
    assert answer_log(quiet()).warnings == ()
    assert lines_words(quiet()) == ""


def test_entries_without_a_time_are_in_no_range_and_counted():
    (warning,) = answer_log(quiet(untimed=1)).warnings
    assert warning == (
        "1 entry has no time and cannot be within the time range, so it is not counted; log_line_prefix "
        "needs %m."
    )
    (warning,) = answer_log(quiet(untimed=1_200)).warnings
    assert warning.startswith("1 200 entries have no time and cannot be within the time range, so they are ")


def test_what_uncork_itself_left_in_the_log_is_counted():
    (warning,) = answer_log(quiet(own=1_200)).warnings
    assert warning == "1 200 entries of sessions with which uncork watched the server are not counted."
