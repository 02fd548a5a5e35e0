"""Experiment files with batches: what they say, what they refuse, what a run does with them."""

from contextlib import closing

import pytest

from fakes.goldens import compare_mistakes
from fakes.ports import MILLISECOND, FakeClock, FakeLoad, FakeServer, MemorySink
from uncork.errors import SpecError
from uncork.experiment.plan.order import cells
from uncork.experiment.plan.placement import Placements, database_settings, session_settings
from uncork.experiment.plan.server_settings import server_settings
from uncork.experiment.run.events import Skipped
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.request import batch_of, queries_for, trial_operations, undo_for
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import parse_spec
from uncork.model.trial import Arm
from uncork.model.verdict import Verdict

GOOD = """\
[experiment]
name = "batches"
question = "How should rows travel?"

[variants.row]
baseline = true
batching = "rows"

[variants.lazy]
batching = "rows"
settings = { synchronous_commit = false }

[variants.many]
batching = "values"
chunk = 50

[factors]
rows = [10, 100]

[setup]
sql = "CREATE TABLE item (id integer PRIMARY KEY, name text)"
shared = true

[workloads.add]
sql = "INSERT INTO item SELECT id, name FROM :batch"
operations = 1
warmup_operations = 2
undo = ["DELETE FROM item WHERE id > :rows", "VACUUM item"]
check = "SELECT id, name FROM item"

[workloads.add.batch]
rows = ":rows"
columns = { id = "integer", name = "text" }
query = "SELECT * FROM fresh ORDER BY id;"
least_rows = 40

[stop]
blocks = 2
budget = "60s"
"""


def parse(text=GOOD):
    return parse_spec(text, file="case.toml", read=str, overrides={})


def problems(*changes):
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(SpecError) as raised:
        parse(text)
    return str(raised.value)


SPEC = parse()
SMALL, LARGE = cells(SPEC)


# ---- what a file says ----


def test_the_rows_of_a_batch_are_a_factor_or_a_number():
    assert SPEC.batch_rows("add", dict(LARGE.levels)) == 100
    fixed = parse(GOOD.replace('rows = ":rows"', "rows = 20"))
    assert fixed.batch_rows("add", dict(LARGE.levels)) == 20


def test_each_column_comes_from_the_same_rows_of_the_query():
    queries = queries_for(SPEC, SMALL, "add", "row")
    assert queries == {
        name: f"SELECT {name} FROM (\nSELECT * FROM fresh ORDER BY id\n) AS batch" for name in ("id", "name")
    }
    assert {source.pick for source in SPEC.workloads["add"].sources.values()} == {"sequence"}


def test_columns_may_be_generated():
    spec = parse(
        GOOD.replace('query = "SELECT * FROM fresh ORDER BY id;"\n', "").replace(
            "[workloads.add.batch]",
            'parameters.name = { query = "SELECT name FROM fresh" }\n'
            'parameters.id = { generator = { kind = "permutation", max = 1000 } }\n[workloads.add.batch]',
        )
    )
    assert list(spec.workloads["add"].sources) == ["id", "name"], "in the order of the columns"


def test_small_batches_are_repeated_and_warmed_up():
    assert trial_operations(SPEC, SMALL, "add") == 4 + 2
    assert trial_operations(SPEC, LARGE, "add") == 1 + 0


def test_a_variant_may_bring_sql_of_its_own():
    text = GOOD.replace('sql = "INSERT INTO item SELECT id, name FROM :batch"', 'sql = ":add"')
    for name in ("rows", "values"):
        text = text.replace(
            f'batching = "{name}"', f'batching = "{name}"\nvalues = {{ add = "TABLE :batch -- {name}" }}'
        )
    (statement,) = batch_of(parse(text), SMALL, "add", "many").statements
    assert statement.sql.endswith("AS batch (id, name) -- values")


def test_what_cannot_be_is_refused_with_its_place():
    compare_mistakes("spec/batches", GOOD, parse, 1)


def test_a_variant_sends_a_statement_of_its_own_that_names_the_columns():
    text = GOOD.replace("SELECT id, name FROM :batch", "VALUES (:id, :name)")
    text = text.replace('batching = "values"\nchunk = 50', 'batching = "unnest"')
    own = 'workloads.add.sql = "INSERT INTO item SELECT * FROM unnest(:id::integer[], :name::text[])"'
    spec = parse(text.replace('batching = "unnest"', f'batching = "unnest"\n{own}'))
    cell = cells(spec)[0]
    sent = {name: batch_of(spec, cell, "add", name).statements[0].sql for name in ("row", "many")}
    assert sent["row"] == "INSERT INTO item VALUES ($1, $2)"
    assert sent["many"] == "INSERT INTO item SELECT * FROM unnest($1::integer[], $2::text[])"


def test_batching_without_a_batch_is_refused():
    text = GOOD[: GOOD.index("[workloads.add.batch]")] + GOOD[GOOD.index("[stop]") :]
    with pytest.raises(
        SpecError, match=r"variants\.row\.batching: has no effect, because no workload has a batch"
    ):
        parse(text.replace("FROM :batch", "FROM item"))


# ---- where the data lives ----


def test_shared_data_is_made_once():
    placements = Placements(SPEC)
    assert placements.templates() == [(SMALL, "row")]
    assert placements.in_cell(LARGE) == [(SMALL, Arm("row"))]
    assert placements.of(LARGE, Arm("row", again=True)) == placements.of(SMALL, Arm("many"))


def test_set_ups_that_differ_are_made_apart():
    placements = Placements(parse(GOOD.replace("name text)", "name text, filler char(:rows))")))
    assert placements.templates() == [(SMALL, "row"), (LARGE, "row")]


def test_without_sharing_each_arm_is_at_home_with_itself():
    spec = parse(GOOD.replace("shared = true\n", ""))
    placements = Placements(spec)
    assert len(placements.templates()) == 2 * 3
    assert len(placements.in_cell(SMALL)) == 4
    assert database_settings(spec, "lazy") == {"synchronous_commit": False}
    assert session_settings(spec, "lazy") == {}


def test_settings_of_a_variant_go_with_its_connections_where_the_database_is_shared():
    assert database_settings(SPEC, "lazy") == {}
    assert session_settings(SPEC, "lazy") == {"synchronous_commit": "off"}


def test_settings_of_a_workload_go_with_its_connections_unless_a_variant_sets_them():
    name = next(iter(SPEC.workloads))
    own = 'settings = { work_mem = "64kB", synchronous_commit = "on" }'
    for text in (GOOD, GOOD.replace("shared = true\n", "")):
        spec = parse(text.replace(f"[workloads.{name}]\n", f"[workloads.{name}]\n{own}\n"))
        assert session_settings(spec, "row", name) == {"work_mem": "64kB", "synchronous_commit": "on"}
        found = {**database_settings(spec, "lazy"), **session_settings(spec, "lazy", name)}
        assert found["work_mem"] == "64kB" and found["synchronous_commit"] in (False, "off")
        assert session_settings(spec, "row") == {}


def test_settings_of_a_whole_server_are_those_of_neither_and_data_is_not_shared_across_servers():
    own = '[variants.buffers]\nbatching = "rows"\nsettings = { shared_buffers = "1GB", jit = false }\n\n'
    for text in (GOOD, GOOD.replace("shared = true\n", "")):
        spec = parse(text.replace("[variants.lazy]", own + "[variants.lazy]"))
        assert server_settings(spec, "buffers") == {"shared_buffers": "1GB"}
        assert server_settings(spec, "lazy") == {}
        settings = {**database_settings(spec, "buffers"), **session_settings(spec, "buffers")}
        assert settings.keys() == {"jit"}
        placements = Placements(spec)
        assert placements.of(SMALL, Arm("buffers")) != placements.of(SMALL, Arm("row"))
        assert (SMALL, "buffers") in placements.templates()


# ---- a run ----


class Attempt:
    def __init__(self, spec, latencies_ns=None, *, checks=None):
        rows = [str(number) for number in range(1000)]
        self.clock = FakeClock(10**12)
        queries = {query: rows for query in queries_for(spec, SMALL, "add", "row").values()}
        self.server = FakeServer(self.clock, columns=queries, checks=checks)
        self.load = BatchLoad(self.server, self.clock, latencies_ns)
        self.sink, self.ledger, self.events = MemorySink(), Ledger(spec, "round"), []
        runner = Runner(spec, self.server, self.load, self.sink, self.clock, self.ledger)
        with closing(runner.events()) as events:
            self.events += events


class BatchLoad(FakeLoad):
    """Tells variants apart by what they send, for they share a database; notes every request."""

    def __init__(self, server, clock, latencies_ns):
        super().__init__(server, clock, latencies_ns)
        self.all = []

    def run(self, request):
        self.all.append(request)
        name = "lazy" if request.settings else "row" if request.statements[0].batch.times > 1 else "many"
        latency = self._latencies_ns.get(name, MILLISECOND)
        return self.measured(latency, request)

    def measured(self, latency, request):
        from fakes.ports import measured

        self._clock.advance(latency * request.operations)
        return measured(latency, request.operations)


@pytest.fixture(scope="module")
def attempt():
    chunked = parse(GOOD.replace("chunk = 50", ""))
    return Attempt(chunked, {"many": 0.2 * MILLISECOND, "lazy": 0.5 * MILLISECOND})


def test_every_trial_is_undone_and_nothing_restored_after_the_first_time(attempt):
    assert len(attempt.server.called("build")) == 1
    assert len(attempt.server.called("restore")) == 1
    assert len(attempt.server.undone) == len(attempt.load.all)
    assert set(attempt.server.undone) == {
        ("DELETE FROM item WHERE id > 10", "VACUUM item"),
        ("DELETE FROM item WHERE id > 100", "VACUUM item"),
    }


def test_each_round_begins_in_a_cell_with_a_trial_that_is_not_kept(attempt):
    rounds = max(trial.round for trial, _ in attempt.sink.kept)
    checks = 3 * 2
    assert len(attempt.load.all) == checks + len(attempt.sink.kept) + 2 * rounds


def test_every_arm_of_a_block_sends_the_same_rows(attempt):
    sent = {}
    for request in attempt.load.all:
        sent.setdefault(len(request.parameters[0]), set()).add(tuple(map(tuple, request.parameters)))
    assert {size: len(tables) for size, tables in sent.items()} == {40: 1, 60: 1, 100: 1}


def test_a_batch_is_judged_as_a_whole(attempt):
    verdicts = {(item.variant, item.judgement.verdict) for item in attempt.ledger.judgements()}
    assert verdicts == {("many", Verdict.FASTER), ("lazy", Verdict.FASTER)}


def test_the_data_left_behind_shows_sameness_not_what_statements_return():
    attempt = Attempt(SPEC)
    assert not attempt.sink.refusals
    assert {request.digest for request in attempt.load.all} == {"none"}


def test_a_variant_too_slow_for_the_budget_is_skipped_with_its_one_time():
    attempt = Attempt(SPEC, {"lazy": 3100 * MILLISECOND, "row": 30 * MILLISECOND})
    skipped = [event for event in attempt.events if isinstance(event, Skipped)]
    assert [(event.cell, event.variant) for event in skipped] == [(SMALL, "lazy"), (LARGE, "lazy")]
    assert skipped[1].reason == (
        "too slow for this budget: one batch took 3.10 s, 103 times as long as with row; the 5 trials that "
        "a verdict needs would take 15.5 s of 60.0 s (a --budget of four times that would be enough)"
    )
    assert all(trial.arm.variant != "lazy" for trial, _ in attempt.sink.kept)


def test_undo_takes_the_texts_of_the_cell():
    assert undo_for(SPEC, LARGE, "add", "many") == ("DELETE FROM item WHERE id > 100", "VACUUM item")
