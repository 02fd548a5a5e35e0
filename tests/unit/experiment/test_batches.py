import pytest

from uncork.experiment.spec.batches import MAXIMUM_PARAMETERS, array_text, carry, chunk_rows, plain_values
from uncork.model.request import Batch, Statement

COLUMNS = {"id": "integer", "name": "text"}
INSERT = "INSERT INTO item SELECT id, name FROM :batch ON CONFLICT DO NOTHING;"


def carried(strategy, rows=6, texts=(INSERT,), chunk=None):
    return carry("load", texts, COLUMNS, strategy=strategy, rows=rows, chunk=chunk)


def test_every_strategy_executes_the_same_sql_on_rows_that_come_on_its_own_way():
    sources = {
        "rows": "(VALUES ($1::integer, $2::text)) AS batch (id, name)",
        "transaction": "(VALUES ($1::integer, $2::text)) AS batch (id, name)",
        "pipeline": "(VALUES ($1::integer, $2::text)) AS batch (id, name)",
        "values": "(VALUES ($1::integer, $2::text), ($3, $4)) AS batch (id, name)",
        "unnest": "unnest($1::integer[], $2::text[]) AS batch (id, name)",
        "copy": "uncork_batch AS batch",
    }
    for strategy, source in sources.items():
        last = carried(strategy, rows=2).statements[-1]
        assert last.sql == f"INSERT INTO item SELECT id, name FROM {source} ON CONFLICT DO NOTHING"


@pytest.mark.parametrize(
    ("strategy", "batch", "transaction", "executions", "round_trips", "commits"),
    [
        ("rows", Batch(1, 6, "scalar"), False, 6, 6, 6),
        ("transaction", Batch(1, 6, "scalar"), True, 6, 8, 1),
        ("pipeline", Batch(1, 6, "scalar", pipelined=True), False, 6, 1, 1),
        ("values", Batch(6, 1, "values"), False, 1, 1, 1),
        ("unnest", Batch(6, 1, "arrays"), False, 1, 1, 1),
    ],
)
def test_one_statement_on_each_way(strategy, batch, transaction, executions, round_trips, commits):
    found = carried(strategy)
    (statement,) = found.statements
    assert statement.batch == batch
    assert statement.batch.rows * statement.batch.times == 6
    assert statement.columns == (0, 1)
    assert (found.transaction, found.executions) == (transaction, executions)
    assert (found.round_trips, found.commits) == (round_trips, commits)


def test_copy_fills_a_temporary_table_and_merges_from_it_in_one_transaction():
    found = carried("copy")
    table, copy, merge = found.statements
    assert table.sql.startswith("CREATE TEMPORARY TABLE IF NOT EXISTS uncork_batch (id integer, name text)")
    assert table.sql.endswith("ON COMMIT DELETE ROWS")
    assert copy.sql == "COPY uncork_batch (id, name) FROM STDIN"
    assert (copy.columns, copy.batch) == ((0, 1), Batch(6, 1, "copy"))
    assert (merge.columns, merge.batch) == ((), None)
    assert (found.transaction, found.executions, found.round_trips, found.commits) == (True, 3, 5, 1)


@pytest.mark.parametrize("strategy", ["values", "unnest"])
def test_chunks_of_a_batch_are_one_transaction(strategy):
    found = carried(strategy, chunk=3)
    (statement,) = found.statements
    assert (statement.batch.rows, statement.batch.times) == (3, 2)
    assert (found.transaction, found.executions, found.round_trips, found.commits) == (True, 2, 4, 1)


def test_several_statements_of_a_pipeline_are_one_transaction_too():
    found = carried("pipeline", texts=[INSERT, "UPDATE item SET seen = true FROM :batch", "SELECT 1"])
    assert [one.name for one in found.statements] == ["load.1", "load.2", "load.3"]
    assert [one.batch and one.batch.times for one in found.statements] == [6, 6, None]
    assert (found.transaction, found.executions, found.round_trips, found.commits) == (True, 13, 5, 1)


def test_a_statement_without_the_rows_is_executed_once_a_batch():
    found = carried("rows", texts=[INSERT, "SELECT 1"])
    assert found.statements[1] == Statement("load.2", "SELECT 1", ())
    assert (found.executions, found.commits) == (7, 7)


@pytest.mark.parametrize(
    ("rows", "columns", "chunk", "each"),
    [
        (100, 2, None, 100),
        (10_000, 23, None, 2500),
        (10_000, 23, 1000, 1000),
        (1000, 2, 300, 250),
        (7, 2, 100, 7),
        (32_768, 2, None, 16_384),
    ],
)
def test_chunks_are_equal_and_within_what_a_statement_can_hold(rows, columns, chunk, each):
    assert chunk_rows("values", rows, columns, chunk) == each
    assert each * columns <= MAXIMUM_PARAMETERS
    assert rows % each == 0


def test_sql_that_names_the_columns_gets_a_value_or_the_array_of_all_values():
    single = ("SELECT name FROM item WHERE id = :id AND name <> :name",)
    for strategy in ("rows", "transaction", "pipeline"):
        (one,) = carried(strategy, texts=single).statements
        assert one.sql == "SELECT name FROM item WHERE id = $1 AND name <> $2"
        assert (one.columns, one.batch.rows, one.batch.times) == ((0, 1), 1, 6)
    many = ("SELECT name FROM item WHERE id = ANY (:id) AND name <> ALL (:name::text[])",)
    (one,) = carried("unnest", texts=many).statements
    assert one.sql == "SELECT name FROM item WHERE id = ANY ($1) AND name <> ALL ($2::text[])"
    assert (one.columns, one.batch) == ((0, 1), Batch(6, 1, "arrays"))


def test_arrays_need_no_chunks():
    assert chunk_rows("unnest", 100_000, 23) == 100_000


def test_rows_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="10007 rows cannot be divided into equal chunks of 251 to 500 rows"):
        chunk_rows("values", 10_007, 2, 500)


def test_arrays_are_written_so_that_postgres_reads_the_same_values():
    assert array_text(["a", None, "", "NULL", 'x"y\\z', "{,}"]) == ('{"a",NULL,"","NULL","x\\"y\\\\z","{,}"}')


def test_the_first_execution_takes_the_first_rows():
    parameters = [["1", "2", "3"], ["a", None, "c"]]

    def values(batch, columns=(0, 1)):
        return plain_values(Statement("s", "", columns, batch), parameters)

    assert values(None, (1,)) == ["a"]
    assert values(Batch(1, 3, "scalar")) == ["1", "a"]
    assert values(Batch(2, 1, "values")) == ["1", "a", "2", None]
    assert values(Batch(3, 1, "arrays")) == ['{"1","2","3"}', '{"a",NULL,"c"}']
    assert values(Batch(3, 1, "copy")) is None
