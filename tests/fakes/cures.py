"""Results of cures made by hand: a proven index, nothing proven, a healthy server, an interruption."""

from dataclasses import replace

from uncork.model.database.copy import CopiedTable, CopyFacts, NotCopied
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.missing import Missing
from uncork.model.results.advice import LookedAt
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.results.cure import Change, CureResult, Handed, Net, StatementEffect, Tried
from uncork.report.cure.answer import answer_cure

_SELECT = "select id, total, status from orders where customer_id = $1 order by created_at desc limit 20"
_INSERT = "insert into orders (customer_id, total, status) values ($1, $2, $3) returning id"
_REPORT = "select date_trunc($1, created_at), sum(total) from orders group by 1"
_SQL = "CREATE INDEX CONCURRENTLY orders_customer_id_idx ON orders (customer_id);"
_UNDO = "DROP INDEX CONCURRENTLY orders_customer_id_idx;"
_MS = 1e6
_LOCK = "CREATE INDEX CONCURRENTLY takes a SHARE UPDATE EXCLUSIVE lock: reads and writes continue meanwhile."
_WRITES = "Writes must maintain it: orders has 9 000 changed rows per hour."


def missing_index() -> Finding:
    return Finding(
        rule="missing-index",
        headline="orders is scanned for customer_id",
        objects=("orders",),
        bill=Bill(2520.0, 2310.0, 2740.0, 0.7),
        templates=(1,),
        statement=_SELECT,
        evidence=("A call reads 24 691 blocks of orders and returns 20 rows.", "36 000 calls an hour."),
        candidates=(Candidate("index", "Create an index on customer_id of orders.", _SQL, _UNDO),),
        proof="Compare the statement with and without the index.",
    )


def grouped_report() -> Finding:
    return Finding(
        rule="hash-spills",
        headline="a report sorts on disk",
        objects=("orders",),
        bill=Bill(420.0, 210.0, 690.0, 0.117),
        templates=(3,),
        statement=_REPORT,
        evidence=("A call writes 48 MB of temporary files.",),
        candidates=(
            Candidate(
                "setting",
                "Raise work_mem for role reports.",
                "ALTER ROLE reports SET work_mem = '64MB';",
                "ALTER ROLE reports RESET work_mem;",
            ),
        ),
    )


def row_at_a_time() -> Finding:
    return Finding(
        rule="row-at-a-time", headline="shop-api inserts orders one row at a time",
        objects=("shop-api", "orders"), bill=Bill(380.0, 240.0, 560.0, 0.106), templates=(2,),
        statement=_INSERT,
        evidence=("9 000 executions an hour, 25 in a row within one transaction.",),
        candidates=(Candidate("client", "Send the rows of a transaction in one INSERT."),),
    )  # fmt: skip


def _effects(ratio: tuple[float, float, float] = (0.0041, 0.0037, 0.0046)) -> tuple[StatementEffect, ...]:
    middle, low, high = ratio
    return (
        StatementEffect(
            *(1, _SELECT, False, 36_000.0, "executed", 68.2 * _MS, 68.2 * _MS * middle, middle, low, high),
            wal_ratio=None,
            clients=4,
        ),
        StatementEffect(
            *(2, _INSERT, True, 9_000.0, "executed", 0.412 * _MS, 0.431 * _MS, 1.046, 1.021, 1.071),
            wal_ratio=1.31,
        ),
        StatementEffect(*(3, _REPORT, False, 12.0, "drawn", 6900 * _MS, 6910 * _MS, 1.001, 0.987, 1.016)),
    )


def index_change() -> Change:
    return Change(
        name="orders_customer_id", kind="index", text="Create an index on customer_id of orders.",
        sql=_SQL, undo=_UNDO, state="cured",
        reason="The workload takes less time, and no statement becomes slower by more than a tenth.",
        net=Net(1590.0, 1487.0, 1692.0, 2564.0), effects=_effects(), worst=2,
        build_ns=3_210_000_000, undo_ns=14_800_000, size=21_400_000, against=(_WRITES, _LOCK),
        runs=("cure-shop-20260531-101500",),
    )  # fmt: skip


def _brin() -> Change:
    return Change(
        name="orders_customer_id_brin", kind="index",
        text="Create a BRIN index on customer_id of orders.",
        sql="CREATE INDEX CONCURRENTLY orders_customer_id_brin ON orders USING brin (customer_id);",
        undo="DROP INDEX CONCURRENTLY orders_customer_id_brin;", state="not cured",
        reason="The gain is below what matters in practice.", net=Net(14.0, -22.0, 51.0, 2564.0),
        effects=_effects((0.994, 0.979, 1.009))[:2], worst=2, build_ns=410_000_000,
        undo_ns=9_000_000, size=49_152, runs=("cure-shop-20260531-101500",),
    )  # fmt: skip


def _control() -> Change:
    return Change(
        name="control", kind="control",
        text="An index on status of orders, which no captured statement uses.",
        sql="CREATE INDEX CONCURRENTLY orders_status_idx ON orders (status);",
        undo="DROP INDEX CONCURRENTLY orders_status_idx;", state="not cured",
        reason="It changes nothing, as expected: the measurement is sound.",
        net=Net(-3.0, -31.0, 26.0, 2564.0), runs=("cure-shop-20260531-101500",),
    )  # fmt: skip


def _usual() -> tuple[Change, ...]:
    memory = replace(
        _control(), name="more-memory", kind="usual",
        text="More memory for each sort and hash (work_mem = 256MB).",
        sql="SET work_mem = '256MB';", undo="RESET work_mem;",
        reason="It saves less than 3% of the time.",
    )  # fmt: skip
    indexes = replace(
        index_change(), name="index-on-each-column", kind="usual",
        text="An index on each of the 5 columns of orders.",
        sql="CREATE INDEX ON orders (id);\nCREATE INDEX ON orders (customer_id);", undo="",
        net=Net(1490.0, 1390.0, 1590.0, 2564.0), size=107_000_000,
    )  # fmt: skip
    return memory, indexes


def proven_cure() -> CureResult:
    """Return one finding that an index cures, and one that only the client can cure."""
    change = index_change()
    chosen = replace(
        change, net=Net(1581.0, 1478.0, 1684.0, 2564.0), runs=("cure-shop-confirm-20260531-102900",)
    )
    tried = (
        Tried(missing_index(), "cured", change.reason, (change, _brin(), _control()), change.name),
        Tried(
            row_at_a_time(),
            "not tried",
            "Only the application can make this change. Compare both forms with uncork run.",
        ),
    )
    trigger = NotCopied(
        "trigger orders_audit",
        "its function is written in plpython3u",
        "inserts into orders take longer on the source, with and without the change",
    )
    tables = (
        CopiedTable("orders", 500_000, 2_000_000.0, 61_000_000),
        CopiedTable("customers", 40_000, 40_000.0, 3_100_000),
    )
    result = CureResult(
        server="ada@db.example:5432/shop", watched="database-shop-20260531-101000", answer="",
        reasons=(), tried=tried, chosen=chosen, usual=_usual(),
        copy=CopyFacts(
            how="by COPY from one snapshot", tables=tables, missing=(trigger,), bytes=96_000_000,
            seconds=21.4, sampled=True,
        ),
        covered=0.93, all_s_per_hour=2757.0,
        costliest=(
            CostlyPart("statement", _SELECT, 0.7, "found", 1),
            CostlyPart("statement", _INSERT, 0.18, "fine", None, "12 blocks and 1.1 ms for each row"),
        ),
        bill_before=Bill(2564.0, 2390.0, 2741.0, 0.93), bill_after=Bill(983.0, 842.0, 1124.0, 0.36),
        handed=(
            Handed("up.sql", "Makes the change; checks that the index is valid."),
            Handed("down.sql", "Reverts it, in 15 ms on the copy."),
            Handed("experiment.toml", "The experiment that proved it; run it again with uncork run."),
        ),
        missing=(Missing("track_io_timing", "the time of reading blocks",
                         "ALTER SYSTEM SET track_io_timing = on"),),
        status="complete", seconds=534.0,
        reproduce="uncork cure 'host=db.example dbname=shop' --for 60s --budget 10min",
        uncork_version="1.0.0", id="cure-shop-20260531-101000",
        folder=".uncork/runs/cure-shop-20260531-101000",
        looked_at=LookedAt(41, 12, 9, 8, 14, 330), sessions=1.06,
    )  # fmt: skip
    return answer_cure(result)


def _of_the_application(tried: Tried) -> CureResult:
    nothing = {"chosen": None, "bill_before": None, "bill_after": None, "handed": ()}
    return answer_cure(replace(proven_cure(), tried=(tried,), **nothing))


def application_cure() -> CureResult:
    """Return a finding that only the application can cure, which a variant of the workload proved."""
    change = Change(
        name="s2-one-statement", kind="client", text="Insert 20 rows into orders with one statement.",
        sql="INSERT INTO orders (total)\nSELECT batch.p1\nFROM unnest($1::numeric[]) AS batch (p1);",
        undo="INSERT INTO orders (total) VALUES ($1);", state="cured",
        reason="It saves 300 s per hour.", net=Net(300.0, 280.0, 320.0, 2564.0),
        effects=(StatementEffect(2, _INSERT, True, 9000.0, "drawn", 2e6, 1e5, 0.05, 0.04, 0.06),),
        against=("All rows of a batch succeed or fail together, and are locked until its end.",),
        runs=("loop-2", "loop-1"),
        assumed=("A batch has 20 rows.", "The rows were the same for 20 sets of values."),
    )  # fmt: skip
    tried = Tried(row_at_a_time(), "cured", change.reason, (change,), change.name)
    return _of_the_application(tried)


def pool_cure() -> CureResult:
    """Return a finding about connections opened for each request, which a variant of the workload proved."""
    effect = StatementEffect(
        *(4, "SELECT 1", False, 360_000.0, "drawn", 4.2 * _MS, 0.21 * _MS, 0.05, 0.04, 0.06),
        clients=3, before_cpu_ns=3.1 * _MS, after_cpu_ns=0.09 * _MS,
    )  # fmt: skip
    change = Change(
        name="pool", kind="client", text="Keep connections open in a pool of the application.",
        sql="-- For each request: take a connection from the pool, and send\nSELECT 1;",
        undo="-- For each request: open a connection, and send\nSELECT 1;\n-- Then close the connection.",
        state="cured", reason="It saves 1 500 s per hour.", net=Net(1500.0, 1450.0, 1550.0, 1600.0),
        effects=(effect,), against=("Requests share sessions.",), runs=("pooling-2", "pooling-1"),
        assumed=("A request sends 1 captured statement.", "Client and server were on one machine."),
        habit="connects",
    )  # fmt: skip
    finding = replace(row_at_a_time(), rule="connection-per-request", headline="shop-api connects often")
    tried = Tried(finding, "cured", change.reason, (change,), change.name)
    return _of_the_application(tried)


def transaction_cure() -> CureResult:
    """Return a finding about pauses inside transactions, which a variant with pauses outside proved."""
    change = replace(
        pool_cure().tried[0].changes[0],
        name="pause-outside",
        text="Move the slow step of application shop before BEGIN or after COMMIT.",
        sql="-- The application does something else for 120 ms.\nBEGIN;\nSELECT 1;\nCOMMIT;",
        undo="BEGIN;\nSELECT 1;\n-- The application does something else for 120 ms.\nCOMMIT;",
        against=("What is read before BEGIN can change.",),
        assumed=("The order was sampled.", "Client and server were on one machine."),
        habit="pauses",
    )
    finding = replace(row_at_a_time(), rule="slow-step-in-transaction", headline="shop pauses for 120 ms")
    tried = Tried(finding, "cured", change.reason, (change,), change.name)
    return _of_the_application(tried)


def nothing_proven() -> CureResult:
    """Return three findings: one without a gain, one whose change does harm, and one that was not tried."""
    harmful = replace(
        index_change(),
        state="harmful",
        reason="insert into orders takes 18 % to 25 % more time, and at most 10 % is accepted.",
        net=Net(41.0, 11.0, 70.0, 2564.0),
        effects=(
            replace(_effects()[0], ratio=0.962, low=0.951, high=0.974, after_ns=65.6 * _MS),
            replace(_effects()[1], ratio=1.214, low=1.181, high=1.248, after_ns=0.5 * _MS),
        ),
    )
    setting = Change(
        name="work_mem", kind="setting", text="Raise work_mem for role reports.",
        sql="ALTER ROLE reports SET work_mem = '64MB';", undo="ALTER ROLE reports RESET work_mem;",
        state="unclear", reason="The interval still includes both a gain and a loss.",
        net=Net(38.0, -41.0, 117.0, 2564.0),
        effects=(replace(_effects()[2], ratio=0.91, low=0.78, high=1.06),),
        runs=("cure-shop-20260531-101500",),
    )  # fmt: skip
    known = proven_cure()
    copy = known.copy
    assert copy is not None
    return answer_cure(
        replace(
            known,
            tried=(
                Tried(missing_index(), "harmful", harmful.reason, (harmful,), harmful.name),
                Tried(grouped_report(), "unclear", setting.reason, (setting,), setting.name),
                known.tried[1],
            ),
            chosen=None,
            copy=replace(copy, tables=copy.tables[1:], missing=(), sampled=False),
            covered=1.0,
            bill_after=None,
            handed=(),
            missing=(),
        )
    )


def healthy_cure() -> CureResult:
    """Return a server on which nothing stands out."""
    return answer_cure(
        replace(
            proven_cure(),
            **{"tried": (), "chosen": None, "copy": None, "bill_before": None, "bill_after": None},
            **{"handed": (), "missing": (), "seconds": 64.0},
        )
    )


def interrupted_cure() -> CureResult:
    """Return a cure that was interrupted after it measured the first of two findings."""
    known = proven_cure()
    waiting = replace(
        index_change(), state="not tried", reason="Interrupted before it was measured.", net=None, effects=()
    )
    waiting = replace(waiting, build_ns=None, undo_ns=None, size=None, worst=None, runs=())
    return answer_cure(
        replace(
            known,
            tried=(
                replace(known.tried[0], changes=known.tried[0].changes[:2]),
                Tried(grouped_report(), "not tried", waiting.reason, (replace(waiting, name="later"),)),
            ),
            chosen=None,
            bill_after=None,
            handed=(),
            status="interrupted",
            seconds=131.0,
        )
    )
