"""Each rule over a watched server: a sick example that it finds, and healthy ones that it does not."""

from dataclasses import replace

import pytest

from fakes.database_results import BEGIN_US, a_row_writer, database_result, evidence_of
from fakes.evidence import a_blocker
from uncork.diagnosis.findings import find_findings
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import (
    CounterFacts,
    PlanFacts,
    SettingFacts,
    StatementFacts,
    TableFacts,
    TemplateActivity,
    TimeNode,
    Usage,
)
from uncork.model.results.database_transactions import InTransaction
from uncork.report.blocks import Step
from uncork.report.database.document import build_database_document
from uncork.report.findings import finding_headline, finding_sentence, finding_step
from uncork.report.headline import fits

SECONDS = 60
BLOCK = 8192
SEARCH = "select * from item where customer = ?"
REPORT = "select day, sum(amount) from item where day between ? and ? group by day"
MINUTE_NS = 60_000_000_000
END_US = BEGIN_US + SECONDS * 1_000_000


def tree(**classes):
    total = sum(classes.values())
    names = {"cpu": CPU, "idle": IDLE, "lock": "Lock", "io": "IO"}
    parts = tuple(
        TimeNode("class", names[name], value, value / total, None, ()) for name, value in classes.items()
    )
    return TimeNode("all", "", total, 1.0, None, parts)


def find_server_findings(result):
    return find_findings(evidence_of(result))


def statement(text=SEARCH, sessions=1.0, *, calls=600, mean_ns=50e6, of_class=CPU, counted=True, **figures):
    blank = dict.fromkeys(StatementFacts.__dataclass_fields__, 0)
    known = {"calls": calls, "execution_ns": calls * mean_ns, "rows": calls, **figures}
    return TemplateActivity(
        number=0,
        text=text,
        identity=None,
        sessions=sessions,
        share=1.0,
        classes=(Usage(of_class, sessions, 1.0),),
        applications=(),
        statements=StatementFacts(**{**blank, **known}) if counted else None,
        execution_share=1.0,
    )


def item(**facts):
    blank = dict.fromkeys(TableFacts.__dataclass_fields__, 0)
    known = {"oid": 1, "name": "item", "kind": "table", "bytes": 1_000 * BLOCK, "rows": 100_000.0}
    used = {"live": 100_000, "seq_scans": 600, "seq_rows": 60_000_000, "whole_reads": 600.0}
    times = {"vacuumed_us": END_US, "analysed_us": END_US, "autovacuum": True, "island": None}
    return TableFacts(**{**blank, **known, **used, **times, **facts})


def blocker(sessions, *, mean_ms=5.0, **facts):
    known = {"application": "batch", "state": CPU, "most": 3, "chain": 2, "processes": 1}
    known |= {"text": "update item set n = ? where id = ?", "transaction_ns": round(2e6 * mean_ms)}
    return a_blocker(mean_ms, sessions=sessions, **{**known, **facts})


def in_transaction(**facts):
    known = {"application": "shop", "user": "app", "template": 0, "text": SEARCH, "sessions": 0.9}
    loop = {"gap_ns": 300_000, "per_transaction": 500.0, "idle_ns": 4_000_000, "open_ns": 200_000_000}
    rest = {"length_ns": 200_000_000, "part": 0.9, "held_age": None, "samples": 100}
    return InTransaction(**{**known, **loop, **rest, **facts})


def server(**facts):
    usual = {"tree": tree(cpu=1.0), "templates": (), "tables": (), "blockers": (), "counters": ()}
    return database_result(**{**usual, "settings": (), "writers": (), "transactions": (), **facts})


def in_turn(executions, *, begins, calls=1_000):
    """Return a server whose clients execute two templates in turn, so often in each transaction."""
    texts = {0: SEARCH, 1: "select price from price where item = ?", 2: "begin"}
    counts = {0: calls, 1: calls, 2: begins}
    return server(
        templates=tuple(
            replace(statement(text, 0.3 if number < 2 else 0.0, calls=counts[number]), number=number)
            for number, text in texts.items()
        ),
        # As many calls while sessions are busy with a template as make so many executions per transaction.
        transactions=tuple(
            in_transaction(
                template=number,
                text=texts[number],
                sessions=0.45,
                per_transaction=executions,
                part=0.5,
                length_ns=round(executions / (calls / (0.3 * SECONDS)) / 0.5 * 1e9),
            )
            for number in (0, 1)
        ),
    )


def test_two_statements_in_turn_for_each_row_are_one_loop():
    (one,) = find_server_findings(in_turn(30, begins=33))
    assert (one.rule, one.templates) == ("one-by-one", (0, 1))
    assert finding_sentence(one).startswith(
        "Application shop sends 2 000 statements one by one within transactions: 60 % of the busy time"
    )
    assert "It sends 2 templates in turn." in one.evidence
    assert "The server counted 30 calls of the first for each BEGIN." in one.evidence


@pytest.mark.parametrize(
    ("executions", "begins"),
    [
        (20, 50),  # 40 in all are fewer than a loop has
        (30, 500),  # samples overestimate: the server counted two calls for each BEGIN
        (30, 0),  # BEGIN is not counted
    ],
)
def test_statements_in_turn_that_are_few_or_uncertain_are_no_loop(executions, begins):
    assert find_server_findings(in_turn(executions, begins=begins)) == ()


def test_a_few_samples_do_not_make_a_loop_of_transactions_that_were_written_by_hand():
    by_hand = in_turn(60, begins=990)
    assert find_server_findings(by_hand) == ()
    # Another application's transactions may be most of the BEGINs.
    other = in_transaction(application="other", template=7, sessions=0.01, per_transaction=1.0)
    (one,) = find_server_findings(replace(by_hand, transactions=(*by_hand.transactions, other)))
    assert one.rule == "one-by-one"


SICK = {
    "forgotten-transaction": server(tree=tree(lock=2.0, idle=1.0),
                                    blockers=(blocker(2.0, state=IDLE, idle_ns=5_000_000_000),)),
    "one-by-one": server(tree=tree(idle=0.8, cpu=0.2), transactions=(in_transaction(),),
                         templates=(statement(mean_ns=20e3, calls=60_000),)),
    "missing-index": server(templates=(statement(shared_hit=600 * 1_000, rows=3_000),),
                            tables=(item(),)),
    "lock-wait": server(tree=tree(lock=3.0, cpu=1.0), blockers=(blocker(3.0, mean_ms=400),)),
    "row-by-row-commit": server(tree=tree(io=1.0),
                                writers=(a_row_writer("insert into item (a) values (?)"),),
                                templates=(statement("insert into item (a) values (?)",
                                                     of_class="IO", mean_ns=5e5, calls=30_000),)),
    "temporary-files": server(templates=(statement(REPORT, temp_written=600 * 1_000),)),
    "jit": server(templates=(statement(REPORT, mean_ns=50e6, jit_ns=20e9, jit_functions=600 * 9),)),
    "bloat": server(tables=(item(bytes=200 << 20, bloat_bytes=150 << 20),)),
    "dead-rows": server(tables=(item(dead=80_000, autovacuum=False),)),
    "checkpoints": server(counters=(CounterFacts("pg_stat_checkpointer", "", "num_requested", 4.0),
                                    CounterFacts("pg_stat_wal", "", "wal_bytes", 2.4e9),
                                    CounterFacts("pg_stat_wal", "", "wal_fpi", 2e9 / BLOCK))),
}  # fmt: skip

HEALTHY = {
    "a pause of half a second while others wait a little": server(
        tree=tree(lock=0.2, cpu=1.0), blockers=(blocker(0.2, state=IDLE, idle_ns=500_000_000),)),
    "an idle transaction that blocks nobody and holds little": server(
        tree=tree(idle=1.0),
        transactions=(in_transaction(per_transaction=1.0, idle_ns=5 * MINUTE_NS, held_age=50),)),
    "an idle transaction that is not old": server(tree=tree(idle=1.0),
                                                  transactions=(in_transaction(
                                                      per_transaction=1.0, idle_ns=MINUTE_NS // 2,
                                                      held_age=10**6),)),
    "a pool whose transactions have three statements": server(
        tree=tree(idle=0.9, cpu=0.1),
        transactions=(in_transaction(per_transaction=3.0, text="rollback"),),
        templates=(statement(mean_ns=20e3, of_class=IDLE),)),
    "a pool whose transactions are sampled late, on a machine without a free processor": server(
        tree=tree(idle=0.8, cpu=0.1),
        transactions=(in_transaction(per_transaction=70.0, gap_ns=50_000, length_ns=5_000_000),),
        templates=(statement(mean_ns=20e3, calls=20_000, of_class=IDLE),)),
    "a template in one statement of slow transactions, and in many without": server(
        tree=tree(idle=1.0, cpu=0.1),
        transactions=(in_transaction(per_transaction=1.0, gap_ns=15_000_000,
                                     length_ns=15_000_000),),
        templates=(statement(mean_ns=20e3, calls=600_000, of_class=IDLE),)),
    "a loop that thinks between its statements": server(tree=tree(idle=1.0),
                                                        transactions=(in_transaction(
                                                            gap_ns=30_000_000),)),
    "a loop that takes little of the time": server(tree=tree(cpu=3.0),
                                                   transactions=(in_transaction(sessions=0.1),)),
    "queues for hot rows that move on at once": server(tree=tree(lock=1.0, cpu=0.5, io=1.5),
                                                       blockers=(blocker(1.0, mean_ms=3),)),
    "commits that wait for the log": server(tree=tree(io=3.5, cpu=0.2),
                                            templates=(statement(of_class="IO"),)),
    "an event log beside the real work": server(tree=tree(io=1.0, cpu=3.0),
                                                writers=(a_row_writer(
                                                    "insert into event (a) values (?)",
                                                    sessions=0.6, processes=8),)),
    "an index used": server(templates=(statement(shared_hit=600 * 5),), tables=(item(),)),
    "a small table read whole": server(templates=(statement(shared_hit=600 * 10),),
                                       tables=(item(rows=900.0, live=900, bytes=10 * BLOCK),)),
    "a query that returns most of a table": server(templates=(statement(shared_hit=600 * 1_000,
                                                                        rows=600 * 60_000),),
                                                   tables=(item(),)),
    "a report now and then": server(templates=(statement(REPORT, calls=4, mean_ns=15e9,
                                                         shared_hit=4_000, temp_written=400_000,
                                                         jit_ns=2e9, rows=40),),
                                    tables=(item(seq_scans=12, whole_reads=4.0),)),
    "a fast statement that takes all of the time": server(templates=(statement("select fast(?)",
                                                                               mean_ns=1e6),)),
    "a table with room for its next versions": server(tables=(item(
        bytes=200 << 20, bloat_bytes=50 << 20, seq_scans=0, whole_reads=0.0),)),
    "an empty half of a small table": server(tables=(item(bytes=8 << 20, bloat_bytes=6 << 20),)),
    "a table of unknown bloat": server(tables=(item(bytes=200 << 20, bloat_bytes=None),)),
    "dead rows that autovacuum comes to next": server(tables=(
        item(dead=80_000, vacuumed_us=END_US - 120_000_000),)),
    "dead rows of a table that is new": server(tables=(item(dead=80_000, vacuumed_us=None),)),
    "checkpoints that somebody asked for": server(counters=(
        CounterFacts("pg_stat_bgwriter", "", "checkpoints_req", 8.0),
        CounterFacts("pg_stat_wal", "", "wal_bytes", 9e7),
        CounterFacts("pg_stat_wal", "", "wal_fpi", 9e3))),
    "a server at rest with a loop now and then": server(tree=tree(idle=0.02),
                                                        transactions=(
                                                            in_transaction(sessions=0.02),)),
}  # fmt: skip


@pytest.mark.parametrize("rule", SICK)
def test_a_sick_server_gets_the_finding_that_fits_first(rule):
    first, *_ = find_server_findings(SICK[rule])
    assert first.rule == rule
    assert first.bill is None or 0 <= first.bill.share <= 1
    assert not finding_sentence(first)[:1].islower()
    assert isinstance(finding_step(first), Step)


@pytest.mark.parametrize("case", HEALTHY)
def test_a_healthy_server_gets_no_finding_and_no_step(case):
    assert find_server_findings(HEALTHY[case]) == ()
    assert build_database_document(HEALTHY[case]).steps == ()
    assert HEALTHY[case].reasons[0] == "No change is needed: no problem costs enough time to be worth fixing."


@pytest.mark.parametrize("rule", SICK)
def test_a_headline_is_short_enough_for_the_first_sentence(rule):
    assert fits(finding_headline(find_server_findings(SICK[rule])[0]))


def test_findings_come_in_the_order_of_the_time_that_they_cost():
    both = server(
        tree=tree(idle=0.3, cpu=0.7),
        transactions=(in_transaction(sessions=0.3, template=1),),
        templates=(statement(sessions=0.7, shared_hit=600 * 1_000, rows=3_000),),
        tables=(item(dead=80_000, autovacuum=False),),
    )
    assert [one.rule for one in find_server_findings(both)] == ["missing-index", "one-by-one", "dead-rows"]


def test_sessions_that_a_loop_blocks_count_for_the_loop_and_not_as_a_finding_of_their_own():
    found = find_server_findings(
        server(
            tree=tree(idle=1.0, lock=3.0),
            transactions=(in_transaction(application="batch"),),
            blockers=(blocker(3.0, state=IDLE, mean_ms=400, idle_ns=2_000_000),),
        )
    )
    assert [one.rule for one in found] == ["one-by-one"]
    assert found[0].bill.seconds_per_hour == pytest.approx((0.9 + 3.0) * 3600)


def test_a_grouping_query_needs_a_comparison_and_many_calls_to_want_an_index():
    def first(text, calls):
        templates = (statement(text, calls=calls, mean_ns=20e6, shared_hit=calls * 1_000),)
        return [one.rule for one in find_server_findings(server(templates=templates, tables=(item(),)))]

    assert first("select count(*) from item where customer = ?", 600) == ["missing-index"]
    assert first("select count(*) from item where customer = ?", 10) == []
    assert first("select count(*) from item where day < ?", 600) == []


def test_without_pg_stat_statements_the_tables_own_counts_tell_of_a_missing_index():
    sick = server(counted_ns=None, templates=(statement(counted=False),), tables=(item(),))
    assert [one.rule for one in find_server_findings(sick)] == ["missing-index"]
    rare = replace(sick, tables=(item(whole_reads=4.0),))
    assert find_server_findings(rare) == ()


def test_bloat_that_scans_read_is_ranked_by_its_time():
    read = statement("select count(*) from item", mean_ns=20e6, shared_hit=600 * 1_000)
    (found,) = find_server_findings(server(templates=(read,), tables=(item(bloat_bytes=600 * BLOCK),)))
    assert (found.rule, found.bill.share) == ("bloat", pytest.approx(0.6))
    assert finding_sentence(found).endswith(
        "and statements read all of it: 60 % of the busy time, in select count(*) from item"
    )


def test_an_old_idle_transaction_that_holds_vacuum_back_is_told_without_a_share_of_time():
    held = in_transaction(per_transaction=1.0, idle_ns=12 * MINUTE_NS, held_age=45_000)
    (found,) = find_server_findings(server(tree=tree(idle=1.0), transactions=(held,)))
    assert (found.rule, found.bill) == ("forgotten-transaction", None)
    assert finding_sentence(found) == (
        "Application shop left a transaction idle for 12 min 00 s, so VACUUM cannot remove the rows that "
        "45 000 later transactions left dead, in select * from item where customer = ?"
    )


@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        ({"vacuumed_us": END_US - 900_000_000}, ()),
        ({}, (SettingFacts("autovacuum", "off", "on", "configuration file"),)),
    ],
)
def test_dead_rows_are_told_when_autovacuum_is_late_or_off(facts, settings):
    (found,) = find_server_findings(server(tables=(item(dead=180_000, **facts),), settings=settings))
    assert found.rule == "dead-rows"


@pytest.mark.parametrize(
    "condition",
    [
        "?::integer = item.customer",
        "? = item.customer",
        '?::character varying = "item"."customer"',
        "item.customer = any(?)",
        "item.name ilike ?",
        "to_tsvector(item.name) @@ plainto_tsquery(?)",
        "item.tags @> ?",
    ],
)
def test_a_condition_that_an_index_serves_is_recognised_however_it_is_written(condition):
    text = f"select item.id from item where {condition}"
    found = find_server_findings(
        server(templates=(statement(text, shared_hit=600 * 1_000),), tables=(item(),))
    )
    assert [one.rule for one in found] == ["missing-index"]


def test_a_query_that_needs_most_of_the_table_wants_no_index():
    def plan(rows):
        scan = f"  ->  Seq Scan on item  (cost=0.0..1.0 rows={rows} width=0)"
        text = f"Aggregate  (cost=1.0..2.0 rows=1 width=8)\n{scan}"
        return (PlanFacts(0, text, "", ()),)

    count = statement("select count(*) from item where live = ?", mean_ns=2e7, shared_hit=600 * 1_000)
    many = server(templates=(count,), tables=(item(),), plans=plan(90_000))
    assert find_server_findings(many) == ()
    few = server(templates=(count,), tables=(item(),), plans=plan(900))
    assert [one.rule for one in find_server_findings(few)] == ["missing-index"]
