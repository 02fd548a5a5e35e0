"""Rules about writes: a commit for each row, temporary tables, triggers."""

from dataclasses import replace

import pytest

from fakes.database_results import a_row_writer, database_result
from uncork.advise.evidence import Evidence, Piece, Statement, known_shape
from uncork.advise.findings import find_findings
from uncork.advise.rules.writes.written import Written, written
from uncork.model.database.catalogue import Catalogue, FunctionFacts, TableOptions, TriggerBody, TriggerFacts
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import CPU
from uncork.model.results.database_transactions import InTransaction
from uncork.profile.statement_shape import statement_shape
from uncork.report.blocks import Code, Paragraph
from uncork.report.findings import finding_blocks, finding_headline, finding_step
from uncork.report.headline import fits

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
        (
            "UPDATE counter SET n = n + $1 WHERE id = $2",
            Written("update", "counter", ("id",), ("n",), "n"),
        ),
        (
            'UPDATE "Order" AS o SET total = o.total - $1 WHERE o.id = $2 AND o.kind = $3',
            Written("update", "Order", ("id", "kind"), ("total",), "total"),
        ),
        ("DELETE FROM shop.job WHERE id = $1", Written("delete", "shop.job", ("id",))),
        (
            "INSERT INTO hits (page, n) VALUES ($1, $2) "
            "ON CONFLICT (page) DO UPDATE SET n = hits.n + excluded.n",
            Written("insert", "hits", ("page",), ("page", "n"), "n", upsert=True),
        ),
        (
            "SELECT id FROM job WHERE state = $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED",
            Written("lock", "job", ("state",), limited=True, skips=True),
        ),
        ("SELECT id\nFROM job WHERE state = $1\nFOR UPDATE", Written("lock", "job", ("state",))),
        ("SELECT id FROM job WHERE state = $1", None),
        ("UPDATE counter SET n = $1 WHERE id = $2 OR id = $3", Written("update", "counter", (), ("n",))),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("insert into event (kind) values (?)", "inserts 30 000 rows into event"),
        ("update item set n = ? where id = ?", "updates 30 000 rows of item"),
        ("delete from item where id = ?", "deletes 30 000 rows from item"),
    ],
)
@pytest.mark.parametrize("begin", [False, True])
def test_a_commit_for_each_row_costs_also_the_time_of_the_commits(text, words, begin):
    (one,) = find_findings(writing(text, begin=begin))
    assert one.rule == "row-by-row-commit"
    assert one.headline == f"Application batch {words} with a commit for each"
    assert fits(finding_headline(one))
    assert one.bill.share == pytest.approx(0.75)
    assert one.evidence == (
        "Role app executed it 30 000 times during the watch, and all other statements 9 times.",
        "1 session sent it, one row each 2.00 ms per session.",
        "They wait for the write-ahead log in 80 % of their busy time.",
    )


def test_sessions_without_an_application_are_named_by_their_role():
    (found,) = find_findings(writing("delete from item where id = ?", application=""))
    assert found.headline.startswith("Role app deletes 30 000 rows from item")


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


def test_a_temporary_table_for_each_request_is_kept_instead():
    (one,) = find_findings(staging())
    assert (one.rule, one.templates) == ("temporary-tables", (0, 1))
    assert one.headline == "Temporary table wanted is created 600 times"
    assert one.bill.share == pytest.approx(0.6 / 1.6)
    assert one.candidates[1].sql == (
        "create temp table IF NOT EXISTS wanted (id int primary key) ON COMMIT DELETE ROWS;"
    )


def test_a_temporary_table_made_of_a_query_has_no_statement_to_keep_it():
    (one,) = find_findings(staging(text="create temporary table wanted as select id from item (where ?)"))
    assert one.candidates[1].sql == ""


def test_a_prepared_create_that_the_server_counts_once_is_counted_by_what_fills_the_table():
    seen = staging(calls=3)
    assert find_findings(seen) == ()
    fill = Statement(3, "insert into wanted select unnest(?)", calls=600, rows=3_000)
    (one,) = find_findings(replace(seen, statements={**seen.statements, 3: fill}))
    assert one.headline == "Temporary table wanted is created 600 times"


def test_a_temporary_table_of_a_report_or_one_that_costs_little_is_no_finding():
    assert find_findings(staging(calls=4)) == ()
    assert find_findings(staging(busy=0.01)) == ()


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
    function = FunctionFacts(
        "count_event",
        "plpgsql",
        "volatile",
        "unsafe",
        False,
        False,
        100.0,
        SOURCE,
        calls,
        counted_ms,
        counted_ms,
    )
    return evidence(
        Statement(0, LOAD, calls=600, rows=600 * rows, mean_ns=mean_ms * 1e6, plans=plans),
        pieces=(working(0, 1.0),),
        catalogue=Catalogue(triggers=(trigger,), functions=(function,)),
    )


def first(seen):
    found = [one for one in find_findings(seen) if one.rule == "row-trigger"]
    return found[0] if found else None


def test_a_trigger_for_each_row_of_a_load_becomes_one_for_the_statement():
    one = first(loading())
    assert one.headline == "Trigger counting on event runs for each of 1 000 rows a call"
    assert one.bill.share == pytest.approx(0.8)
    (change,) = one.candidates
    assert "FOR EACH STATEMENT" in change.text and not change.sql
    assert "single row becomes slower" in change.against[0]


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


def test_a_body_that_looks_up_rows_by_key_never_scans_the_whole_table():
    seen = turned(loading(definition=PLAIN))
    by_key = replace(seen, turn_body=lambda *_: TriggerBody("BEGIN all; END", ("total",), "SELECT 1", True))
    (change,) = first(by_key).candidates
    assert "LANGUAGE plpgsql\nSET enable_hashjoin = off SET enable_mergejoin = off AS $body$" in change.sql


def test_code_that_was_not_tried_is_described_and_not_shown():
    one = first(turned(loading(definition=PLAIN)))
    blocks = list(finding_blocks(one))
    assert not [each for each in blocks if isinstance(each, Code) and each.title]
    (words,) = (each.text for each in blocks if isinstance(each, Paragraph) and "FOR EACH" in each.text)
    assert "not tried yet: uncork cure" in words and finding_step(one).command == ""


def test_a_body_that_can_be_turned_is_written_out():
    (change,) = first(turned(loading(definition=PLAIN))).candidates
    assert change.sql == (
        "CREATE FUNCTION count_event_all() RETURNS trigger LANGUAGE plpgsql AS $body$\nBEGIN all; END\n"
        "$body$;\n"
        "DROP TRIGGER counting ON event;\nCREATE TRIGGER counting_all AFTER INSERT ON event "
        "REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_event_all();"
    )
    assert change.undo == (f"DROP TRIGGER counting_all ON event;\n{PLAIN};\nDROP FUNCTION count_event_all();")
    assert change.check == "SELECT 1" and "other triggers" in change.against[0]
    assert "logical replication" in change.against[2] and change.tried_first


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


def test_the_servers_count_of_a_function_is_preferred_to_an_estimate():
    assert first(loading(counted_ms=30_000.0)).bill.share == pytest.approx(0.5)
    assert first(loading(counted_ms=600.0)) is None


def test_an_executed_plan_shows_what_its_triggers_took():
    node = PlanNode("ModifyTable", "event", "event", "", 0.0, 1.0, 0.0, 0, milliseconds=40.0)
    plan = StatementPlan(0, "executed", node, "", triggers=(("counting", 60.0),))
    assert first(loading(plans=(plan,))).bill.share == pytest.approx(0.6)


@pytest.mark.parametrize(
    "facts",
    [
        {"per_row": False},
        {"enabled": False},
        {"events": ("delete",)},
        {"table": "other"},
        {"function": "unknown"},
        {"rows": 1, "mean_ms": 0.1},
        {"mean_ms": 20.0},
    ],
)
def test_triggers_that_cost_little_are_no_finding(facts):
    assert first(loading(**facts)) is None


def test_a_trigger_before_a_row_is_replaced_by_what_the_statement_computes():
    one = first(loading(timing="before"))
    assert one.candidates[0].sql == ""
    assert "generated columns" in one.candidates[0].text
