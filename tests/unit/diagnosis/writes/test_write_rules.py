"""Rules about writes: a commit for each row, temporary tables, triggers."""

from dataclasses import replace

import pytest

from fakes.database_results import a_row_writer, database_result
from fakes.evidence import a_function
from fakes.findings import compare_findings
from uncork.diagnosis.evidence import Evidence, Piece, Statement, known_shape
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rules.writes.written import Written, written
from uncork.model.database.catalogue import Catalogue, TableOptions, TriggerBody, TriggerFacts
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import CPU
from uncork.model.results.database_transactions import InTransaction
from uncork.profile.statement_shape import statement_shape
from uncork.report.blocks import Code, Paragraph
from uncork.report.findings import finding_blocks, finding_step

CREATE = "create temp table wanted (id int primary key) on commit drop"
LOAD = "insert into event (kind, body) select n, ? from generate_series(?, ?) as n"
SOURCE = "BEGIN UPDATE total SET n = n + 1 WHERE kind = NEW.kind; RETURN NEW; END"


def evidence(*statements, pieces, **facts):
    return Evidence(60.0, tuple(pieces), {one.number: one for one in statements}, **facts)


def working(number, sessions, *, application="batch", wait_class=CPU, event=""):
    return Piece(number, wait_class, event, application, "app", (sessions,) * 20)


@pytest.mark.parametrize("shaped", [False, True])
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE counter SET n = n + $1 WHERE id = $2",
         Written("update", "counter", ("id",), ("n",), "n")),
        ('UPDATE "Order" AS o SET total = o.total - $1 WHERE o.id = $2 AND o.kind = $3',
         Written("update", "Order", ("id", "kind"), ("total",), "total")),
        ("DELETE FROM shop.job WHERE id = $1", Written("delete", "shop.job", ("id",))),
        ("INSERT INTO hits (page, n) VALUES ($1, $2) "
         "ON CONFLICT (page) DO UPDATE SET n = hits.n + excluded.n",
         Written("insert", "hits", ("page",), ("page", "n"), "n", upsert=True)),
        ("SELECT id FROM job WHERE state = $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED",
         Written("lock", "job", ("state",), limited=True, skips=True)),
        ("SELECT id\nFROM job WHERE state = $1\nFOR UPDATE", Written("lock", "job", ("state",))),
        ("SELECT id FROM job WHERE state = $1", None),
        ("UPDATE counter SET n = $1 WHERE id = $2 OR id = $3",
         Written("update", "counter", (), ("n",))),
    ],
)  # fmt: skip
def test_what_a_statement_writes_is_read_from_its_shape_or_its_text(sql, expected, shaped):
    text = sql if '"' in sql else sql.lower()
    for number in "123":
        text = text.replace(f"${number}", "?")
    text = (
        text.replace("UPDATE", "update")
        .replace(" SET ", " set ")
        .replace(" WHERE ", " where ")
        .replace(" AND ", " and ")
    )
    shape = statement_shape(sql, {}) if shaped else None
    found = written(Statement(0, text, sql, shape_of=known_shape(shape)))
    if found is not None and found.kind == "insert":
        found = replace(found, sets=expected.sets)  # the text alone shows only what an UPDATE sets
    assert found == expected


def writing(text, *, begin=False, rows=1, executing=0.2, commits=30_000, length_ns=2_500_000, **facts):
    idle = {"application": "batch", "user": "app", "template": 0, "text": text, "sessions": 0.3, "part": 0.3}
    ages = {"gap_ns": 200_000, "per_transaction": 1.0, "idle_ns": 400_000, "open_ns": 4_000_000}
    pause = InTransaction(**idle, **ages, length_ns=length_ns, held_age=None, samples=200)
    own = {"application": "batch", "idle_share": 0.4 if begin else 0.0}
    writer = a_row_writer(text, **{**own, **facts})
    waits = (pause,) if begin else ()
    result = database_result(writers=(writer,), blockers=(), transactions=waits, counters=())
    commit = Statement(1, "commit", calls=30_000, rows=0)
    return evidence(
        Statement(0, text, calls=30_000, rows=30_000 * rows, mean_ns=executing * 60e9 / 30_000),
        *((commit,) if begin else ()),
        pieces=(
            working(0, 0.3 if begin else 0.9, wait_class="IO", event="WalSync"),
            *((working(1, 0.6, wait_class="IO", event="WalSync"),) if begin else ()),
            replace(working(7, 0.3, application="shop"), user="shop"),
        ),
        rates=SessionRates(commits / 60, 0.0),
        database=result,
    )


INSERT = "insert into event (kind) values (?)"


@pytest.mark.parametrize(
    "facts",
    [
        {"processes": 4},  # the sessions of a pool
        {"processes": 2, "evenness": 0.1},  # a pool that prefers its first connection
        {"others": 30_000},  # a read in each request
        {"calls": 400},
        {"samples": 12},  # luck
        {"sessions": 0.3, "calls": 1_000},  # it waits for the next request
        {"rows": 100},
        {"executing": 0.8},  # the rows themselves cost the time
        {"begin": True, "length_ns": 900_000_000},  # transactions of hundreds of rows
        {"commits": 300},
    ],
)
@pytest.mark.parametrize("text", [INSERT, "update item set n = ? where id = ?"])
def test_writes_that_need_their_own_commit_are_no_finding(text, facts):
    assert find_findings(writing(text, **facts)) == ()


def staging(*, calls=600, busy=0.5, text=CREATE):
    return evidence(
        Statement(0, text, text, calls=calls, rows=0, mean_ns=1e6),
        Statement(1, "drop table wanted", calls=calls, rows=0),
        Statement(2, "select ?", calls=9_000, rows=9_000),
        pieces=(working(0, busy), working(1, 0.1), working(2, 1.0)),
    )


def loading(*, rows=1_000, mean_ms=100.0, counted_ms=None, plans=(), **facts):
    known = {"timing": "after", "per_row": True, "events": ("insert",), "function": "count_event"}
    trigger = TriggerFacts(
        **{
            "name": "counting",
            "table": "event",
            "table_oid": 1,
            "definition": "CREATE TRIGGER counting",
            **known,
            **facts,
        }
    )
    calls = None if counted_ms is None else 600 * rows
    function = a_function("count_event", SOURCE, calls=calls, total_ms=counted_ms, self_ms=counted_ms)
    return evidence(
        Statement(0, LOAD, calls=600, rows=600 * rows, mean_ns=mean_ms * 1e6, plans=plans),
        pieces=(working(0, 1.0),),
        catalogue=Catalogue(triggers=(trigger,), functions=(function,)),
    )


def first(seen):
    found = [one for one in find_findings(seen) if one.rule == "row-trigger"]
    return found[0] if found else None


@pytest.mark.parametrize(("calls", "remains"), [(600_000, False), (100_000, True)])
def test_a_trigger_stays_where_most_rows_are_written_one_by_one(calls, remains):
    seen = loading()
    single = Statement(7, "insert into event (kind) values (?)", calls=calls, rows=calls, mean_ns=1e5)
    found = first(replace(seen, statements={**seen.statements, 7: single}))
    assert (found is not None) is remains


PLAIN = "CREATE TRIGGER counting AFTER INSERT ON public.event FOR EACH ROW EXECUTE FUNCTION count_event()"


def turned(seen, *, tables=("total",), configured=False, options=None):
    """The evidence of a loader whose trigger's body can be turned into one for all rows."""
    (function,) = seen.catalogue.functions
    catalogue = replace(
        seen.catalogue,
        functions=(replace(function, configured=configured),),
        columns={"total": ()},
        options=options or {},
    )

    def body(source, record, table):
        assert (source, record, table) == (SOURCE, "new", "event")
        return TriggerBody("BEGIN all; END", tables, "SELECT 1")

    return replace(seen, catalogue=catalogue, turn_body=body)


def test_code_that_was_not_tried_is_described_and_not_shown():
    one = first(turned(loading(definition=PLAIN)))
    blocks = list(finding_blocks(one))
    assert not [each for each in blocks if isinstance(each, Code) and each.title]
    (words,) = (each.text for each in blocks if isinstance(each, Paragraph) and "FOR EACH" in each.text)
    assert "not tried yet: uncork cure" in words and finding_step(one).command == ""


@pytest.mark.parametrize(
    "seen",
    [
        turned(loading(definition=PLAIN.replace("EXECUTE", "WHEN (new.kind > 1) EXECUTE"))),
        turned(loading(definition=PLAIN.replace("()", "('x')"))),
        turned(loading(definition=PLAIN.replace("TRIGGER", "CONSTRAINT TRIGGER", 1))),
        turned(loading(definition=PLAIN, events=("insert", "update"))),
        turned(loading(definition=PLAIN, timing="before")),
        turned(loading(definition=PLAIN), configured=True),
        turned(loading(definition=PLAIN), configured=None),
        turned(loading(definition=PLAIN), tables=("unknown",)),
        turned(
            loading(definition=PLAIN), options={"event": TableOptions("event", 1, {}, "p", "LIST (kind)")}
        ),
        turned(loading(definition=PLAIN, table="total")),
    ],
)
def test_a_trigger_that_would_act_otherwise_is_not_turned(seen):
    found = first(seen)
    assert found is None or not any("count_event_all() RETURNS" in one.sql for one in found.candidates)


def prepared_once():
    """Return a temporary table whose CREATE was prepared, so that only what fills it counts its uses."""
    seen = staging(calls=3)
    fill = Statement(3, "insert into wanted select unnest(?)", calls=600, rows=3_000)
    return replace(seen, statements={**seen.statements, 3: fill})


CHANGES = (INSERT, "update item set n = ? where id = ?", "delete from item where id = ?")


def test_what_is_found_word_for_word():
    compare_findings("write_rules", [
        ("sessions without an application are named by their role",
         find_findings(writing("delete from item where id = ?", application=""))),
        ("a temporary table for each request is kept instead", find_findings(staging())),
        ("a temporary table made of a query has no statement to keep it",
         find_findings(staging(
             text="create temporary table wanted as select id from item (where ?)"))),
        ("a temporary table of a report or one that costs little is no finding",
         find_findings(staging(calls=4)), find_findings(staging(busy=0.01))),
        ("a trigger for each row of a load becomes one for the statement", first(loading())),
        ("a body that looks up rows by key never scans the whole table",
         first(replace(turned(loading(definition=PLAIN)),
                       turn_body=lambda *_: TriggerBody("BEGIN all; END", ("total",), "SELECT 1",
                                                        True)))),
        ("a body that can be turned is written out", first(turned(loading(definition=PLAIN)))),
        ("the servers count of a function is preferred to an estimate",
         first(loading(counted_ms=30_000.0)), first(loading(counted_ms=600.0))),
        ("an executed plan shows what its triggers took",
         first(loading(plans=(StatementPlan(0, "executed",
                                            PlanNode("ModifyTable", "event", "event", "", 0.0, 1.0,
                                                     0.0, 0, milliseconds=40.0), "",
                                            triggers=(("counting", 60.0),)),)))),
        ("a trigger before a row is replaced by what the statement computes",
         first(loading(timing="before"))),
        ("a prepared create that the server counts once is counted by what fills the table",
         find_findings(staging(calls=3)), find_findings(prepared_once())),
        *((f"a commit for each row costs also the time of the commits: {text}",
           *(find_findings(writing(text, begin=begin)) for begin in (False, True))) for text in CHANGES),
        ("triggers that cost little are no finding",
         *(first(loading(**facts)) for facts in ({"per_row": False}, {"enabled": False},
                                                 {"events": ("delete",)}, {"table": "other"},
                                                 {"function": "unknown"},
                                                 {"rows": 1, "mean_ms": 0.1}, {"mean_ms": 20.0}))),
    ])  # fmt: skip
