"""Statements that a request costs, counted by a real PostgreSQL: a service that asks for each row apart."""

from __future__ import annotations

import json

import pytest

from uncork.experiment.guard.gate_evidence import gate_evidence
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome
from uncork.stats.gates.decision import Exact, GateQuestion, decide
from uncork.store.query import RunReader

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]

SERVICE = """
import http.server, json, os, signal, sys
import psycopg

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        names = []
        if self.path != "/health":
            ask = database.execute
            if os.environ["ASK"] == "together":
                names = [name for (name,) in ask("SELECT name FROM line JOIN item USING (id) ORDER BY id")]
            else:
                for (id,) in ask("SELECT id FROM line ORDER BY id").fetchall():
                    names += ask("SELECT name FROM item WHERE id = %s", [id]).fetchone()
        body = json.dumps(names).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
"""
EXPERIMENT = """
[experiment]
name = "lines"
question = "How many statements does a request cost?"

[services.orders]
command = ["{python}", "orders.py"]
environment = { ASK = "together" }
ready = "/health"

[variants.together]
baseline = true

[variants.each]
services.orders.environment = { ASK = "each" }

[setup]
sql = '''
CREATE TABLE item (id integer PRIMARY KEY, name text);
CREATE TABLE line (id integer PRIMARY KEY);
INSERT INTO item SELECT n, 'item ' || n FROM generate_series(1, 10) AS n;
INSERT INTO line SELECT id FROM item;
'''

[workloads.order]
operations = 20
warmup_operations = 5
http = { requests = ["/orders/1"], timeout = "5s" }

[server.settings]
shared_buffers = "32MB"

[stop]
budget = "200s"
blocks = 2
minimum_rounds = 3
maximum_rounds = 3
"""


def test_a_query_for_each_row_is_counted_and_breaks_its_gate_exactly(uncork):
    (uncork.folder / "orders.py").write_text(SERVICE)
    ran = uncork("run", uncork.write(EXPERIMENT))
    assert ran.returncode == 0, ran.stderr
    (folder,) = (uncork.folder / "runs").glob("lines-*")

    costs = json.loads(uncork("report", folder, "--json").stdout)["costs"]
    assert {cost["variant"]: cost["queries"] for cost in costs} == {"together": 1.0, "each": 11.0}
    _, found = RunReader(folder).ask("SELECT DISTINCT variant, queries, counted_operations FROM trials")
    assert sorted(found) == [("each", 275, 25), ("together", 25, 25)]

    reader = RunReader(folder)
    columns, rows = reader.ask("SELECT * EXCLUDE (histogram) FROM trials")
    trials = [dict(zip(columns, row, strict=True)) for row in rows]
    gate = parse_gate("queries a request <= baseline")
    evidence = gate_evidence(gate, trials, baseline="together", candidate="each", confidence=0.95)
    assert evidence.evidence == Exact(1.0, 11.0, 3)
    (decision,) = decide([GateQuestion(gate, evidence.evidence)], confidence=0.95)
    assert (decision.outcome, decision.reason) == (GateOutcome.BROKEN, "11 instead of 1")
    reader.close()
