"""What a report may claim holds for whatever was observed, and a planted violation of each rule is found."""

import os
from dataclasses import replace
from random import Random

import pytest

from fakes.claims import broken_rules
from fakes.cures import proven_cure
from fakes.database_results import database_result
from fakes.evidence import a_statement, a_table, an_index, evidence, spent
from uncork.diagnosis.findings import costly_parts, find_findings
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.missing import HiddenWork
from uncork.model.results.advice import AdviceResult, AdviceSource, LookedAt
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.results.database_transactions import InTransaction
from uncork.report.advice.document import answer_advice, build_advice_document
from uncork.report.blocks import Step
from uncork.report.cure.document import build_cure_document
from uncork.report.database.answer import answer_database
from uncork.report.database.document import build_database_document

CASES = int(os.environ.get("UNCORK_CASES", "1000"))
"""`make calibrate` takes 10 000."""
TEXTS = (
    "SELECT id FROM item WHERE id = $1",
    "SELECT id FROM item WHERE kind = $1 ORDER BY id LIMIT 10",
    "UPDATE item SET kind = $1 WHERE id = $2",
    "INSERT INTO item (kind) VALUES ($1)",
    "DELETE FROM item WHERE id = $1",
    "SELECT count(*) FROM item",
    "SELECT pg_sleep($1)",
    "COMMIT",
)
WAITS = (
    *("CPU", "CPU", "CPU", "IO:DataFileRead", "IO:WalSync", "Lock:transactionid", "Lock:relation"),
    *("LWLock:WALWrite", "Client:ClientRead", "idle in transaction:ClientRead", "IPC:ExecuteGather"),
)
SHAPES = {
    number: a_statement(text, number, {"item": ["id", "kind"]}).shape for number, text in enumerate(TEXTS)
}
TABLES = (a_table(rows=300_000), a_table(rows=300_000, seq_scans=500, seq_rows=150_000_000))
INDEXES = (
    an_index("CREATE UNIQUE INDEX item_pkey ON item USING btree (id)"),
    an_index("CREATE INDEX item_kind ON item USING btree (kind)", warning="unused"),
)


PAUSED = InTransaction(
    *("shop", "app", 2, "update item set kind = ?", 0.5, 0, 3.0, 10**9, 0.5, 10**9, 10**9, None, 100)
)


def some_evidence(chance):
    """Return what a watch could have seen: any statements, with any counters, in any waits."""
    numbers = chance.sample(range(len(TEXTS)), chance.randint(0, 5))
    statements = [
        replace(
            a_statement(TEXTS[number], number),
            shape_of=lambda number=number: SHAPES[number],
            calls=chance.choice([None, 0, 3, 60, 6_000, 900_000]),
            mean_ns=10 ** chance.uniform(4, 9.5),
            rows=chance.choice([0, 60, 6_000, 900_000]),
            blocks=int(10 ** chance.uniform(0, 8)),
            temp_bytes=chance.choice([0, 0, 10**9]),
        )
        for number in numbers
    ]
    pieces = [
        spent(
            chance.choice(numbers) if numbers and chance.random() < 0.9 else None, size, chance.choice(WAITS)
        )
        for size in [10 ** chance.uniform(-2, 1) for _ in range(chance.randint(0, 8))]
    ]
    pause_ns = round(10 ** chance.uniform(5, 10))
    tables = chance.sample(TABLES, chance.randint(0, 1))
    return evidence(
        pieces,
        statements,
        tables=tables,
        indexes=chance.sample(INDEXES, chance.randint(0, 2)) if tables else (),
        transactions=(replace(PAUSED, gap_ns=pause_ns),) if chance.random() < 0.5 else (),
    )


def advice(seen):
    findings = find_findings(seen)
    return answer_advice(
        AdviceResult(
            sources=(AdviceSource("database-shop", "database", "app@localhost:5432/shop", 60.0),),
            answer="",
            reasons=(),
            sessions=seen.sessions,
            findings=findings,
            looked_at=LookedAt(66, len(seen.statements), 0, len(seen.tables), 1, 0),
            missing=(),
            reproduce="uncork advise postgresql:///shop",
            uncork_version="1",
            costliest=costly_parts(seen, findings),
        )
    )


def test_advice_keeps_the_rules_whatever_was_observed():
    found = set()
    for seed in range(CASES):
        result = advice(some_evidence(Random(seed)))
        broken = broken_rules(build_advice_document(result), result)
        assert broken == [], f"seed {seed}"
        found |= {(part.kind, part.state) for part in result.costliest}
    states = ("found", "fine", "not explained")
    assert found >= {("statement", state) for state in states}  # else this tests too little
    assert found >= {("wait", "fine"), ("wait", "not explained")}


# ---- planted violations ----

UNEXPLAINED = CostlyPart("statement", "select slow()", 0.8, "not explained", None, "nothing counts it")
DROP = Candidate("index", "Drop index item_kind.", "DROP INDEX CONCURRENTLY item_kind;")
UNUSED = Finding("unused-index", "Index item_kind is unused", ("item_kind",), None, candidates=(DROP,))


def database(**changed):
    result = answer_database(replace(database_result(), costliest=(UNEXPLAINED,)))
    return replace(result, **changed)


def planted():
    quiet = database(templates=())
    yield "no status", database(costliest=()), {}
    yield "lists no costliest", quiet, {"reasons": ()}
    yield "beside 80%", quiet, {"answer": "Nothing stands out: no fault costs a tenth of the time."}
    yield "add up to 160%", replace(quiet, costliest=(UNEXPLAINED, replace(UNEXPLAINED, name="b"))), {}
    wrong = Finding("lock-wait", "Sessions wait", ("item",), Bill(1.0, 1.0, 1.0, 1.7))
    yield "has 170% of the time", replace(quiet, findings=(wrong,)), {}
    found = replace(UNEXPLAINED, state="found", finding=3)
    yield "finding 3 is not in the report", replace(quiet, costliest=(found,)), {}
    unused = replace(quiet, findings=(UNUSED,))
    yield "without saying so first", unused, {"steps": (Step("Drop it", DROP.sql),)}
    careful = Step("This drops an object.", DROP.sql, careful=True)
    after = {"steps": (careful, Step("Watch again", "uncork profile db"))}
    yield "stands before", unused, after
    yield "has no finding", unused, {"steps": (Step("Do", "SET x = 1"),)}
    yield "says nothing", quiet, {"answer": "It takes 5 s (95 % interval: 1 to 4 000)."}
    hidden = replace(quiet, watch=replace(quiet.watch, hidden=2.0), tree=replace(quiet.tree, sessions=0.0))
    yield "are hidden from this role", hidden, {"answer": "No session was busy."}
    partial = replace(quiet, costliest=(), hidden=HiddenWork("watcher", 2.0, 0.8, "statements", busy=True))
    yield "hidden from this role", partial, {"answer": "Nothing stands out."}
    yield "own statements", quiet, {"answer": "select /* uncork */ 1 takes 40 %."}


PLANTED = list(planted())


@pytest.mark.parametrize(("rule", "result", "said"), PLANTED, ids=[rule for rule, *_ in PLANTED])
def test_a_planted_violation_is_found(rule, result, said):
    document = replace(build_database_document(result), **said)
    assert any(rule in broken for broken in broken_rules(document, result)), broken_rules(document, result)


def test_a_saving_above_the_cost_and_a_headline_about_the_unmeasured_are_found():
    cure = proven_cure()
    assert broken_rules(build_cure_document(cure), cure) == []
    (first, *rest) = cure.tried
    (change, *others) = first.changes
    more = replace(change, net=replace(change.net, saved=9e9))
    above = replace(cure, tried=(replace(first, changes=(more, *others)), *rest))
    assert any("saves" in broken for broken in broken_rules(build_cure_document(above), above))
    document = replace(build_cure_document(cure), answer="An index: all statements take 62 % less time.")
    assert broken_rules(document, cure) == ["the headline counts statements that were not measured"]
