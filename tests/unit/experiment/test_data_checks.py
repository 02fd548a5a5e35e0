"""Questions to the variants' data, and extensions that these need."""

from fakes.goldens import compare_mistakes
from fakes.ports import FakeClock, FakeLoad, FakeServer, MemorySink
from uncork.experiment.plan.order import cells
from uncork.experiment.plan.placement import Placements
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import parse_spec

FILE = """
[experiment]
name = "layouts"
question = "Which layout?"

[variants.plain]
baseline = true
values = { key = "id" }

[variants.parts]
values = { key = "id, at" }
extensions = ["timescaledb"]

[factors]
rows = [10, 20]

[setup]
sql = "CREATE TABLE t (id int, at int, PRIMARY KEY (:key))"

[checks.duplicates]
title = "ids that are there twice"
sql = "SELECT count(*) - count(DISTINCT id) FROM t WHERE id < :rows"

[workloads.read]
sql = "SELECT 1"
operations = 10

[stop]
minimum_rounds = 3
maximum_rounds = 3
"""


def parse(text=FILE):
    return parse_spec(text, file="case.toml", read={}.__getitem__, overrides={})


def test_each_variants_data_is_asked_in_each_cell():
    spec, sink, clock = parse(), MemorySink(), FakeClock()
    query = "SELECT count(*) - count(DISTINCT id) FROM t WHERE id < {}"
    server = FakeServer(clock=clock, columns={query.format(10): ["0"], query.format(20): []})
    runner = Runner(spec, server, FakeLoad(server, clock), sink, clock, Ledger(spec, "round"))
    list(runner.events())
    assert sink.data_checks == [
        (f"rows={rows}", variant, "duplicates", "0" if rows == 10 else None)
        for rows in (10, 20)
        for variant in ("plain", "parts")
    ]


def test_extensions_come_before_the_set_up_and_leave_its_lines_where_they_are():
    spec = parse()
    cell = cells(spec)[0]
    placements = Placements(spec)
    assert placements.script(cell, "plain") == "CREATE TABLE t (id int, at int, PRIMARY KEY (id))"
    assert placements.script(cell, "parts") == (
        'CREATE EXTENSION IF NOT EXISTS "timescaledb"; CREATE TABLE t (id int, at int, PRIMARY KEY (id, at))'
    )


def test_what_makes_no_sense_is_told():
    compare_mistakes("spec/data_checks", FILE, parse)
