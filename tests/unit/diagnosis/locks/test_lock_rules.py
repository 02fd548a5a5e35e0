"""Rules about sessions that wait for each other: which of them finds what, and what they leave alone."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result, evidence_of
from fakes.evidence import a_blocker, a_function
from fakes.findings import compare_findings
from uncork.diagnosis.evidence import Piece
from uncork.diagnosis.findings import find_findings
from uncork.model.database.catalogue import Catalogue, TriggerFacts
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import StatementFacts, TemplateActivity, Usage, WaiterFacts
from uncork.profile.shapes.bodies import function_statements

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


def blocker(text=UPDATE, **facts):
    return a_blocker(text=text, **facts)


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


@pytest.mark.parametrize(
    ("waiting", "busy"),
    [
        (1.0, 2.0),  # a third of the time
        (0.04, 0.01),  # a server at rest
    ],
)
def test_a_few_sessions_that_take_turns_are_healthy(waiting, busy):
    assert first(evidence([blocker(waiters=[waiter(sessions=waiting)])], busy=busy)) is None


COUNT = "BEGIN\n  UPDATE total SET n = n + NEW.price WHERE shop = NEW.shop;\n  RETURN NEW;\nEND"

UPSERT = (
    "BEGIN INSERT INTO total (shop, n) VALUES (NEW.shop, NEW.price) "
    "ON CONFLICT (shop) DO UPDATE SET n = total.n + excluded.n; RETURN NEW; END"
)


LOCKS = (
    "lock table only counter in access exclusive mode",
    "lock counter in exclusive mode",
    "create index on counter (n)",
    "create unique index i on public.counter (n)",
    "vacuum (full, verbose) counter",
    "vacuum full counter",
    "cluster counter using i",
    "reindex table counter",
    "refresh materialized view counter",
    "alter table counter add column x int",
    "truncate counter",
    "drop trigger t on counter",
)


def queueing(text, **facts):
    """Return what is found if sessions that execute this statement wait for each other."""
    return first(evidence([blocker(text, waiters=[waiter(text)])], texts=(text,), **facts))


def within(source):
    """Return what is found if sessions wait for each other in inserts, which execute a trigger's function."""
    trigger = TriggerFacts("counting", "hits", 1, "after", True, ("insert",), "count_hit", "")
    catalogue = Catalogue(triggers=(trigger,), functions=(a_function("count_hit", source),))
    tables = {"total": ("shop", "n"), "other": ("n",)}
    text = "insert into hits (page) values (?)"
    return queueing(text, catalogue=catalogue, take_body=lambda body: function_statements(body, tables))


def locking(text):
    """Return what is found if sessions wait for a command that locks their table."""
    root = blocker(text, template=1, application="job", waiters=[waiter(event="relation")])
    return find_findings(evidence([root], texts=(UPDATE, text)))


def waiting_itself(command, **root):
    """Return what is found if sessions wait for a command that waits for a transaction itself."""
    job = waiter(command, 1, event="relation", sessions=1.0, application="job")
    roots = [blocker(waiters=[waiter(event="relation"), job], **root)]
    return first(evidence(roots, texts=(UPDATE, command, "select ?")))


def waiting_alone():
    """Return what is found if sessions wait for locks that nobody was seen to hold."""
    seen = evidence([])
    waits = Piece(0, "Lock", "transactionid", "shop", "app", (4.0,) * 20)
    return find_findings(replace(seen, pieces=(*seen.pieces, waits)))


def test_what_is_found_word_for_word():
    compare_findings("lock_rules", [
        ("sessions that update one row are a hot row",
         first(evidence([blocker(waiters=[waiter()])]))),
        # Each transaction is a second old because it waited for its turn; it holds the row for 1 ms.
        ("a queue so long that its transactions are old is still a hot row",
         first(evidence([blocker(mean_ms=500, waiters=[waiter()])]))),
        ("sessions that wait for a slow transaction of another application are not a hot row",
         first(evidence([blocker("select pg_sleep(?)", template=1, mean_ms=400, application="batch",
                                 waiters=[waiter()])], texts=(UPDATE, "select pg_sleep(?)")))),
        ("a slow transaction of the same application is no hot row if few statements end",
         first(evidence([blocker(mean_ms=400, waiters=[waiter()])], calls=60))),
        ("a transaction that pauses while others wait is told to work elsewhere",
         first(evidence([blocker(state=IDLE, mean_ms=400, application="batch", idle_ns=600_000_000,
                                 waiters=[waiter()])]))),
        ("a prepared transaction is named and its name is asked for",
         first(evidence([blocker("", template=None, state="prepared transaction",
                                 waiters=[waiter()])]))),
        ("a function that updates several tables does not show which one is contended",
         within(f"{COUNT}; UPDATE other SET n = n + 1;")),
        ("a lock whose transaction goes on is found among the counted statements",
         first(evidence([blocker("commit", template=1, waiters=[waiter(event="relation")])],
                        texts=(UPDATE, "commit", "lock table counter", "lock table other")))),
        ("a table lock without a known command is left to the rule for lock waits",
         first(evidence([blocker("select ?", template=1, mean_ms=3_000,
                                 waiters=[waiter(event="relation")])],
                        texts=(UPDATE, "select ?")))),
        ("deadlocks name the table and the order",
         first(evidence([blocker(state="Lock", waiters=[waiter(sessions=1.5)])], busy=0.5,
                        rates=SessionRates(commits=10.0, rollbacks=0.5, deadlocks=0.5)))),
        ("deadlocks that take no time cost failed transactions",
         first(evidence([], rates=SessionRates(commits=10.0, rollbacks=0.5, deadlocks=0.1)))),
        ("one deadlock is an accident",
         first(evidence([],
                        rates=SessionRates(commits=10.0, rollbacks=0.5, deadlocks=1 / SECONDS)))),
        ("workers that lock the same job are told to skip locked ones",
         queueing("select id from job where state = ? order by id limit ? for update")),
        ("a row that is locked and then updated is updated at once",
         queueing("select last from numbering where kind = ? for update")),
        ("an upsert of one key is a hot row with the keys of its conflict",
         queueing("insert into hits (page, n) values (?, ?) "
                  "on conflict (page) do update set n = hits.n + ?")),
        ("an insert that waits is no hot row", queueing("insert into hits (page) values (?)")),
        ("numbers that an update returns come from a sequence and are not split",
         queueing(f"{UPDATE} returning n")),
        ("a row that a trigger updates is a hot row of its table", within(COUNT), within(UPSERT)),
        ("a change of a table that waits itself is told to give up early",
         waiting_itself("alter table counter add column x int", text="select ?", template=2,
                        application="reports", mean_ms=3_000)),
        ("a lock that waits for short statements is itself what others wait for",
         waiting_itself("lock table counter", application="other")),
        ("without blockers nobody is blamed for locks", waiting_alone()),
        *((f"a command that locks a table is named with a way around it: {text}", locking(text))
          for text in LOCKS),
    ])  # fmt: skip
