"""Rules about sessions that wait for each other: which of them finds what, and what they leave alone."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result, evidence_of
from uncork.advise.evidence import Piece
from uncork.advise.findings import find_findings
from uncork.model.database.catalogue import Catalogue, FunctionFacts, TriggerFacts
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import BlockerFacts, StatementFacts, TemplateActivity, Usage, WaiterFacts
from uncork.profile.shapes.variables import function_statements
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

UPDATE = "update counter set n = n + ? where id = ?"
SECONDS = 60


def statement(number, text, *, calls=60_000):
    blank = dict.fromkeys(StatementFacts.__dataclass_fields__, 0)
    return TemplateActivity(
        number=number,
        text=text,
        identity=None,
        sessions=1.0,
        share=0.5,
        classes=(Usage(CPU, 1.0, 1.0),),
        applications=(),
        statements=StatementFacts(**{**blank, "calls": calls, "rows": calls, "execution_ns": calls * 1e6}),
        execution_share=0.5,
    )


def blocker(
    text=UPDATE, *, template=0, state="IO", mean_ms=20.0, application="shop", waiters=(), idle_ns=None
):
    held = sum(one.sessions for one in waiters)
    return BlockerFacts(
        application=application,
        user="app",
        state=state,
        template=template,
        text=text,
        sessions=held,
        most=7,
        chain=7,
        transaction_ns=round(3 * mean_ms * 1e6),
        transaction_mean_ns=mean_ms * 1e6,
        idle_ns=idle_ns,
        processes=3,
        waiters=tuple(waiters),
    )


def waiter(text=UPDATE, template=0, *, event="transactionid", sessions=4.0, application="shop"):
    return WaiterFacts(application, template, text, event, sessions)


def evidence(blockers, *, texts=(UPDATE,), calls=60_000, busy=1.0, **facts):
    """Return a server on which the waiters wait, beside sessions that work."""
    statements = tuple(statement(number, text, calls=calls) for number, text in enumerate(texts))
    result = database_result(
        templates=statements,
        blockers=tuple(blockers),
        tables=(),
        transactions=(),
        writers=(),
        counters=(),
        settings=(),
    )
    waits = [
        Piece(one.template, "Lock", one.event, one.application, "app", (one.sessions,) * 20)
        for each in blockers
        for one in each.waiters
    ]
    work = Piece(0, "IO", "WalSync", "shop", "app", (busy,) * 20)
    return evidence_of(result, pieces=(*waits, work), **facts)


def first(seen):
    found = find_findings(seen)
    return found[0] if found else None


def test_sessions_that_update_one_row_are_a_hot_row():
    one = first(evidence([blocker(waiters=[waiter()])]))
    assert (one.rule, one.objects) == ("hot-row", ("counter", "n"))
    assert one.headline == "Up to 7 sessions at once queue to update the same rows of counter"
    assert one.bill.share == pytest.approx(0.8)
    assert one.candidates[0].sql.startswith("CREATE TABLE counter_part WITH (fillfactor = 50) AS SELECT id, ")
    assert one.candidates[0].undo == "DROP TABLE counter_part;"


def test_a_queue_so_long_that_its_transactions_are_old_is_still_a_hot_row():
    """Each transaction is a second old because it waited for its turn; it holds the row for 1 ms."""
    assert first(evidence([blocker(mean_ms=500, waiters=[waiter()])])).rule == "hot-row"


def test_sessions_that_wait_for_a_slow_transaction_of_another_application_are_not_a_hot_row():
    slow = blocker("select pg_sleep(?)", template=1, mean_ms=400, application="batch", waiters=[waiter()])
    one = first(evidence([slow], texts=(UPDATE, "select pg_sleep(?)")))
    assert one.rule == "lock-wait"
    assert one.headline == "Up to 7 sessions at once waited for locks that application batch holds for 800 ms"
    assert "move the slow statement out of it" in one.candidates[0].text


def test_a_slow_transaction_of_the_same_application_is_no_hot_row_if_few_statements_end():
    slow = blocker(mean_ms=400, waiters=[waiter()])
    assert first(evidence([slow], calls=60)).rule == "lock-wait"


def test_a_transaction_that_pauses_while_others_wait_is_told_to_work_elsewhere():
    slow = blocker(state=IDLE, mean_ms=400, application="batch", idle_ns=600_000_000, waiters=[waiter()])
    one = first(evidence([slow]))
    assert one.rule == "lock-wait"
    assert "before BEGIN or after COMMIT" in one.candidates[0].text


def test_a_prepared_transaction_is_named_and_its_name_is_asked_for():
    one = first(evidence([blocker("", template=None, state="prepared transaction", waiters=[waiter()])]))
    assert one.headline == "Up to 7 sessions at once waited for locks of a prepared transaction"
    assert "pg_prepared_xacts" in one.candidates[0].sql


@pytest.mark.parametrize(
    ("waiting", "busy"),
    [
        (1.0, 2.0),  # a third of the time
        (0.04, 0.01),  # a server at rest
    ],
)
def test_a_few_sessions_that_take_turns_are_healthy(waiting, busy):
    assert first(evidence([blocker(waiters=[waiter(sessions=waiting)])], busy=busy)) is None


def test_workers_that_lock_the_same_job_are_told_to_skip_locked_ones():
    text = "select id from job where state = ? order by id limit ? for update"
    one = first(evidence([blocker(text, waiters=[waiter(text)])], texts=(text,)))
    assert one.headline == "Up to 7 sessions at once queue to lock the same rows of job"
    (change,) = one.candidates
    assert change.sql.endswith("for update SKIP LOCKED")
    assert not change.same_answers


def test_a_row_that_is_locked_and_then_updated_is_updated_at_once():
    text = "select last from numbering where kind = ? for update"
    one = first(evidence([blocker(text, waiters=[waiter(text)])], texts=(text,)))
    assert one.objects == ("numbering",)
    assert "UPDATE ... RETURNING" in one.candidates[0].text


def test_an_upsert_of_one_key_is_a_hot_row_with_the_keys_of_its_conflict():
    text = "insert into hits (page, n) values (?, ?) on conflict (page) do update set n = hits.n + ?"
    one = first(evidence([blocker(text, waiters=[waiter(text)])], texts=(text,)))
    assert one.rule == "hot-row"
    assert "PRIMARY KEY (page, part)" in one.candidates[0].sql


def test_an_insert_that_waits_is_no_hot_row():
    text = "insert into hits (page) values (?)"
    assert first(evidence([blocker(text, waiters=[waiter(text)])], texts=(text,))).rule == "lock-wait"


COUNT = "BEGIN\n  UPDATE total SET n = n + NEW.price WHERE shop = NEW.shop;\n  RETURN NEW;\nEND"

UPSERT = (
    "BEGIN INSERT INTO total (shop, n) VALUES (NEW.shop, NEW.price) "
    "ON CONFLICT (shop) DO UPDATE SET n = total.n + excluded.n; RETURN NEW; END"
)


def function(name, source):
    return FunctionFacts(name, "plpgsql", "volatile", "unsafe", False, False, 100.0, source)


def counted(source=COUNT):
    """Return a catalogue with a trigger on table hits, and a function."""
    trigger = TriggerFacts("counting", "hits", 1, "after", True, ("insert",), "count_hit", "")
    return Catalogue(triggers=(trigger,), functions=(function("count_hit", source),))


def within(source=COUNT):
    text = "insert into hits (page) values (?)"
    tables = {"total": ("shop", "n"), "other": ("n",)}
    return first(
        evidence(
            [blocker(text, waiters=[waiter(text)])],
            texts=(text,),
            catalogue=counted(source),
            take_body=lambda body: function_statements(body, tables),
        )
    )


@pytest.mark.parametrize("source", [COUNT, UPSERT])
def test_a_row_that_a_trigger_updates_is_a_hot_row_of_its_table(source):
    one = within(source)
    assert (one.rule, one.objects) == ("hot-row", ("total", "n"))
    assert "The statement updates it in function count_hit." in one.evidence
    assert "PRIMARY KEY (shop, part)" in one.candidates[0].sql


def test_a_function_that_updates_several_tables_does_not_show_which_one_is_contended():
    assert within(f"{COUNT}; UPDATE other SET n = n + 1;").rule == "lock-wait"


LOCKS = {
    "lock table only counter in access exclusive mode": ("LOCK TABLE", "IN EXCLUSIVE MODE"),
    "lock counter in exclusive mode": ("LOCK TABLE", "pg_advisory_xact_lock(hashtext('counter'))"),
    "create index on counter (n)": ("CREATE INDEX", "create index CONCURRENTLY on counter (n);"),
    "create unique index i on public.counter (n)": ("CREATE INDEX", "index CONCURRENTLY i on public.counter"),
    "vacuum (full, verbose) counter": ("VACUUM FULL", "VACUUM (ANALYZE) counter;"),
    "vacuum full counter": ("VACUUM FULL", "VACUUM (ANALYZE) counter;"),
    "cluster counter using i": ("CLUSTER", "VACUUM (ANALYZE) counter;"),
    "reindex table counter": ("REINDEX", "reindex table CONCURRENTLY counter;"),
    "refresh materialized view counter": ("REFRESH MATERIALIZED VIEW", "view CONCURRENTLY counter;"),
    "alter table counter add column x int": ("ALTER TABLE", "lock_timeout"),
    "truncate counter": ("TRUNCATE", "DELETE FROM counter;"),
    "drop trigger t on counter": ("DROP", "lock_timeout"),
}


@pytest.mark.parametrize("text", LOCKS)
def test_a_command_that_locks_a_table_is_named_with_a_way_around_it(text):
    command, remedy = LOCKS[text]
    seen = evidence(
        [blocker(text, template=1, application="job", waiters=[waiter(event="relation")])],
        texts=(UPDATE, text),
    )
    (one,) = find_findings(seen)
    assert one.rule == "explicit-table-lock"
    assert one.headline == f"{command} on counter blocks up to 7 sessions"
    assert fits(finding_headline(one))
    assert remedy in "\n".join(f"{each.text} {each.sql}" for each in one.candidates)


def test_a_lock_whose_transaction_goes_on_is_found_among_the_counted_statements():
    texts = (UPDATE, "commit", "lock table counter", "lock table other")
    seen = evidence([blocker("commit", template=1, waiters=[waiter(event="relation")])], texts=texts)
    assert first(seen).headline == "LOCK TABLE on counter blocks up to 7 sessions"


def test_a_change_of_a_table_that_waits_itself_is_told_to_give_up_early():
    ddl = "alter table counter add column x int"
    waiters = [waiter(event="relation"), waiter(ddl, 1, event="relation", sessions=1.0, application="job")]
    root = blocker("select ?", template=2, application="reports", mean_ms=3_000, waiters=waiters)
    one = first(evidence([root], texts=(UPDATE, ddl, "select ?")))
    assert one.headline == "ALTER TABLE on counter waits for a long transaction and blocks up to 7 sessions"
    assert fits(finding_headline(one))
    assert one.candidates[0].sql == "SET lock_timeout = '2s';"


def test_a_lock_that_waits_for_short_statements_is_itself_what_others_wait_for():
    lock = "lock table counter"
    waiters = [waiter(event="relation"), waiter(lock, 1, event="relation", sessions=1.0, application="job")]
    one = first(evidence([blocker(application="other", waiters=waiters)], texts=(UPDATE, lock)))
    assert one.headline == "LOCK TABLE on counter blocks up to 7 sessions"


def test_a_table_lock_without_a_known_command_is_left_to_the_rule_for_lock_waits():
    root = blocker("select ?", template=1, mean_ms=3_000, waiters=[waiter(event="relation")])
    assert first(evidence([root], texts=(UPDATE, "select ?"))).rule == "lock-wait"


def test_deadlocks_name_the_table_and_the_order():
    root = blocker(state="Lock", waiters=[waiter(sessions=1.5)])
    rates = SessionRates(commits=10.0, rollbacks=0.5, deadlocks=0.5)
    one = first(evidence([root], busy=0.5, rates=rates))
    assert one.rule == "deadlock"
    assert one.headline == "30 deadlocks in 60 seconds: transactions lock rows of counter in different orders"
    assert fits(finding_headline(one))
    assert one.candidates[0].sql == "SELECT 1 FROM counter WHERE id = ANY ($1) ORDER BY id FOR UPDATE;"


def test_deadlocks_that_take_no_time_cost_failed_transactions():
    one = first(evidence([], rates=SessionRates(commits=10.0, rollbacks=0.5, deadlocks=0.1)))
    assert (one.rule, one.bill, one.cost) == ("deadlock", None, "6 failed transactions")


def test_one_deadlock_is_an_accident():
    assert first(evidence([], rates=SessionRates(commits=10.0, rollbacks=0.5, deadlocks=1 / SECONDS))) is None


def test_without_blockers_nobody_is_blamed_for_locks():
    seen = evidence([])
    waits = Piece(0, "Lock", "transactionid", "shop", "app", (4.0,) * 20)
    assert find_findings(replace(seen, pieces=(*seen.pieces, waits))) == ()


def test_numbers_that_an_update_returns_come_from_a_sequence_and_are_not_split():
    drawing = f"{UPDATE} returning n"
    one = first(evidence([blocker(waiters=(waiter(drawing),), text=drawing)], texts=(drawing,)))
    assert one.rule == "hot-row"
    assert "CREATE SEQUENCE counter_n_seq;" in one.candidates[0].sql
    assert not any("counter_part" in each.sql for each in one.candidates)
