"""A made-up but plausible server that was watched: what a report is made of, without a server."""

from dataclasses import replace

from uncork.analysis.database.evidence import statement_of
from uncork.diagnosis.evidence import Evidence, Piece
from uncork.diagnosis.findings import find_findings
from uncork.model.database.missing import Missing
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database import (
    CounterFacts,
    DatabaseResult,
    DatabaseRunFacts,
    ForeignKeyFacts,
    IndexFacts,
    Island,
    SettingFacts,
    StatementFacts,
    TableFacts,
    TemplateActivity,
    Usage,
    WatchFacts,
)
from uncork.model.results.database_transactions import RowWriter
from uncork.profile.activity import averages, history, history_places, time_tree, usage, wait_class, weights
from uncork.profile.blocking import find_blockers
from uncork.report.database.answer import answer_database

BEGIN_US = 1_767_225_600_000_000
"""The first of January 2026 in UTC."""
_SECONDS = 60
_RATE = 2
TEXTS = {
    0: "update account set balance = balance + ? where id = ?",
    1: "select * from invoice where state = ? order by created limit ?",
    2: "insert into event (kind, body) values (?, ?)",
}


def a_row_writer(text: str, **facts) -> RowWriter:
    """Return a role that does nothing but write one row after another over one session."""
    known = {
        "application": "loader", "user": "app", "template": 0, "text": text, "calls": 30_000,
        "others": 9,
    }  # fmt: skip
    seen = {"processes": 1, "samples": 1_000, "evenness": 1.0, "sessions": 0.95}
    return RowWriter(**{**known, **seen, "idle_share": 0.0, "log_share": 0.8, **facts})


def _sessions(sample: int) -> list[dict]:
    """Return who is busy in one sample: two wait for a batch in two of three, a report reads, one writes."""

    def row(pid, application, template, *, state="active", wait="", blocked_by=None, open_us=None):
        of_class, _, event = wait.partition(":")
        return {
            "sample": sample, "pid": pid, "backend": "client backend", "state": state,
            "wait_class": of_class or None, "wait_event": event or None, "template": template,
            "application": application, "user": "shop", "database": "shop",
            "transaction_us": open_us, "state_us": open_us, "held_age": None,
            "blocked_by": blocked_by,
        }  # fmt: skip

    found = [row(4, "reports", 1, wait="IO:DataFileRead" if sample % 2 else "")]
    if sample % 3:
        idle = row(1, "batch", 0, state="idle in transaction", wait="Client:ClientRead", open_us=2_400_000)
        found += [idle, row(2, "shop", 0, wait="Lock:transactionid", blocked_by="1")]
        found.append(row(3, "shop", 0, wait="Lock:tuple", blocked_by="2"))
    if sample % 10 == 0:
        found.append(row(5, "shop", 2, wait="IO:WalSync"))
    return found


def _statements(calls: int, mean_ns: float, **figures: int) -> StatementFacts:
    blank = dict.fromkeys(StatementFacts.__dataclass_fields__, 0)
    return StatementFacts(
        **{**blank, "calls": calls, "execution_ns": calls * mean_ns, "rows": calls, **figures}
    )


STATEMENTS = {
    0: _statements(1_200, 66e6, wal_bytes=300_000, shared_hit=9_000),
    1: _statements(
        310, 190e6, shared_read=400_000, shared_hit=100_000, temp_written=20_000, temp_read=20_000
    ),
    2: _statements(52_000, 0.2e6, wal_bytes=12_000_000, shared_dirtied=4_000),
}


def _table(oid: int, name: str, size: int, rows: int, island: int | None, **facts) -> TableFacts:
    blank = dict.fromkeys(TableFacts.__dataclass_fields__, 0)
    known = {"oid": oid, "name": name, "kind": "table", "bytes": size, "index_bytes": size // 4, "rows": rows}
    times = {"vacuumed_us": BEGIN_US, "analysed_us": None, "autovacuum": True}
    return TableFacts(**{**blank, **known, **times, "live": rows, "island": island, **facts})


def _index(oid: int, name: str, table: str, size: int, **facts) -> IndexFacts:
    known = {"scans": 5, "scans_ever": 900, "bloat_bytes": 0, "warning": "", "same_as": ""}
    definition = f"CREATE INDEX {name} ON {table} USING btree (id)"
    return IndexFacts(
        oid=oid, name=name, table=table, definition=definition, bytes=size, **{**known, **facts}
    )


def database_result(**changes) -> DatabaseResult:
    """Return what watching told; fields may be given other values, and the sentences follow."""
    samples = [
        {"sample": number, "time_us": BEGIN_US + number * 1_000_000 // _RATE, "blockers": True}
        for number in range(_SECONDS * _RATE)
    ]
    begun, ended = BEGIN_US, BEGIN_US + _SECONDS * 1_000_000
    times = [one["time_us"] for one in samples]
    shares, places = weights(times, begun, ended), history_places(times, begun, ended)
    rows = [
        {**row, "weight": shares[row["sample"]], "place": places[row["sample"]]}
        for sample in samples
        for row in _sessions(sample["sample"])
    ]
    whole = float(ended - begun)
    tree = time_tree(rows, whole)
    worker = {**rows[0], "backend": "checkpointer", "state": None, "weight": whole / 50, "template": None}

    def by(name, of=None):
        mine = rows if of is None else [row for row in rows if row["template"] == of]
        key = wait_class if name == "class" else lambda row: row[name]
        return usage(averages(mine, key, whole), sum(row["weight"] for row in mine) / whole)

    counted = sum(one.execution_ns for one in STATEMENTS.values())
    templates = [
        TemplateActivity(
            number=number,
            text=text,
            identity=None,
            sessions=sum(one.sessions for one in by("class", number)),
            share=sum(one.sessions for one in by("class", number)) / tree.sessions,
            classes=by("class", number),
            applications=by("application", number),
            statements=STATEMENTS[number],
            execution_share=STATEMENTS[number].execution_ns / counted,
        )
        for number, text in TEXTS.items()
    ]
    result = DatabaseResult(
        run=DatabaseRunFacts(
            id="database-shop-20260101-000000", status="complete",
            started_at="2026-01-01T00:00:00+00:00", elapsed_ns=61_000_000_000, server="app@db:5432/shop",
            reproduce="uncork profile db service=shop", uncork_version="0",
        ),
        answer="", reasons=(), warnings=(), server_version="PostgreSQL 17.2", database="shop",
        role="app", standby=False, block_bytes=8192,
        watch=WatchFacts(
            begun_us=begun, ended_us=ended, rate_hz=_RATE, samples=len(samples), missed=2,
            longest_ns=510_000_000, answer_ns=800_000, client_cpu_ns=400_000_000,
            server_ns=90_000_000, blockers_asked=160, hidden=0.0,
        ),
        tree=tree,
        background=time_tree([worker], whole, by_process=True),
        history=history(rows, places, shares, begun, ended),
        own_active=2.4, own_idle=0.66, counted_ns=counted,
        templates=tuple(sorted(templates, key=lambda one: -one.sessions)), templates_more=0,
        applications=by("application"), users=by("user"), databases=by("database"),
        blockers=find_blockers(samples, rows, begun, ended, TEXTS),
        counters=(
            CounterFacts("pg_stat_checkpointer", "", "num_requested", 1.0),
            CounterFacts("pg_stat_database", "shop", "xact_commit", 61_234.0),
            CounterFacts("pg_stat_io", "client backend, relation, normal", "read_bytes", 3.2e9),
        ),
        resets=(),
        tables=(
            _table(1, "invoice", 9_400_000_000, 6_400_000, 1,
                   seq_scans=36, seq_rows=76_800_000, whole_reads=12),
            _table(2, "event", 1_200_000_000, 9_400_000, None, inserted=52_000, bloat_bytes=400_000_000),
            _table(3, "account", 90_000_000, 130_000, 1, updated=1_200, hot_updated=900, dead=60_000),
            _table(4, "remark", 1_000_000, 9_000, 1),
        ),
        tables_more=0,
        indexes=(
            _index(11, "invoice_state", "invoice", 400_000_000,
                   warning="covered", same_as="invoice_state_created"),
            _index(12, "event_kind", "event", 200_000_000, warning="unused", scans=0, scans_ever=0),
            _index(13, "account_pkey", "account", 3_000_000),
        ),
        counted_since_us=BEGIN_US - 86_400_000_000,
        foreign_keys=(
            ForeignKeyFacts("invoice_account_fkey", "invoice", 1, "account", 3, "account", False),
            ForeignKeyFacts("remark_invoice_fkey", "remark", 4, "invoice", 1, "invoice", True),
            ForeignKeyFacts("remark_answer_fkey", "remark", 4, "remark", 4, "answer", True),
        ),
        islands=(Island(1, ("invoice", "account", "remark"), 11_863_750_000),),
        settings=(SettingFacts("work_mem", "4MB", "4096 kB", "configuration file"),),
        missing=(
            Missing("track_io_timing", "how long reading and writing blocks took", "track_io_timing = on"),
        ),
    )  # fmt: skip
    return told(replace(result, **changes))


def told(result: DatabaseResult) -> DatabaseResult:
    """Return the result with the findings and sentences that fit it."""
    return answer_database(replace(result, findings=find_findings(evidence_of(result))))


def evidence_of(result: DatabaseResult, **facts) -> Evidence:
    """Return the evidence of a result, as if its sessions had been in the same places all the time."""
    pieces = [
        Piece(one.number, part.name, "", user.name, "", (part.sessions * user.share,) * 20)
        for one in result.templates
        for part in one.classes
        for user in (one.applications or (Usage("shop", one.sessions, 1.0),))
    ]
    known: dict[str, float] = {}
    for piece in pieces:
        known[piece.wait_class] = known.get(piece.wait_class, 0.0) + piece.sessions
    in_transactions = {
        (one.template, one.application): one.sessions
        - sum(p.sessions for p in pieces if (p.template, p.application) == (one.template, one.application))
        for one in result.transactions
    }
    for (template, application), sessions in in_transactions.items():
        if sessions > 0 and not any(one.number == template for one in result.templates):
            pieces.append(Piece(template, IDLE, "", application, "", (sessions,) * 20))
            known[IDLE] = known.get(IDLE, 0.0) + sessions
    for writer in result.writers:
        who = (writer.application, writer.user)
        pieces.append(Piece(writer.template, "IO", "", *who, (writer.sessions,) * 20))
        known["IO"] = known.get("IO", 0.0) + writer.sessions
    for node in result.tree.children:
        rest = node.sessions - known.get(node.name, 0.0)
        if rest > 1e-9:
            pieces.append(Piece(None, node.name, "", "", "", (rest,) * 20))
    return Evidence(
        **{
            "seconds": (result.watch.ended_us - result.watch.begun_us) / 1e6,
            "pieces": tuple(pieces),
            "statements": {one.number: statement_of(one, result.block_bytes) for one in result.templates},
            "tables": {one.name: one for one in result.tables},
            "foreign_keys": result.foreign_keys,
            "database": result,
            **facts,
        }
    )
