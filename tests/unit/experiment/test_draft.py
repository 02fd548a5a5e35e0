"""What is known about a statement becomes an experiment file; the rest becomes marked places."""

from dataclasses import replace

import pytest

from uncork.errors import SpecError
from uncork.experiment.draft import Draft, DraftParameter, DraftTable, experiment_text, table_sql
from uncork.experiment.spec.raw_file import places_to_fill
from uncork.model.source_table import SourceColumn, SourceTable
from uncork.requests.source import Options, made_source
from uncork.workbench.experiment.checking import sql_problems

ORDERS = SourceTable(
    name="orders",
    rows=1_000_000,
    columns=(
        SourceColumn("id", "bigint", "N", not_null=True, distinct=-1),
        SourceColumn("customer_id", "integer", "N", not_null=True, distinct=5000),
        SourceColumn(
            "status", "text", "S", null_share=0.1, distinct=3, common=(("open", 0.2), ("it's", 0.3))
        ),
        SourceColumn("place", "point", "G"),
    ),
    keys=("PRIMARY KEY (id)",),
    unique=frozenset({"id"}),
    indexes=("CREATE INDEX orders_status ON public.orders USING btree (status)",),
)
KNOWN = Draft(
    name="orders",
    question='What makes "this" faster?',
    seen="select ?",
    statement="SELECT id FROM orders WHERE customer_id = :customer_id AND status > :status AND n ~ '\\d'",
    parameters=(
        DraftParameter("customer_id", ("42", "17", "42"), "customer_id", "orders", equals=True),
        DraftParameter("status", ("o'pen", None), "status", "orders"),
    ),
    tables=(DraftTable("orders", ORDERS),),
    changes={"index": "CREATE INDEX ON orders (customer_id);"},
)


def spec_of(draft):
    text = experiment_text(draft)
    spec = made_source(text, {}, Options(), "made.toml").spec
    assert sql_problems(spec, "made.toml", text) == []
    return spec


def test_a_known_statement_and_its_tables_make_an_experiment_that_can_run():
    spec = spec_of(KNOWN)
    assert list(spec.variants) == ["current", "index"]
    assert spec.statements("statement", "current")[0].strip() == KNOWN.statement
    assert "FROM generate_series(1, 200000) AS n" in spec.setup.sql
    assert "instead of about 1 000 000" in spec.setup.sql
    assert "CREATE INDEX orders_status ON" in spec.setup.sql
    assert "'it''s'::text" in spec.setup.sql and "NULL::point" in spec.setup.sql


def test_values_are_drawn_from_made_up_rows_where_stored_ones_would_find_nothing():
    parameters = spec_of(KNOWN).workloads["statement"].parameters
    assert parameters["customer_id"].query == (
        "SELECT customer_id FROM orders WHERE customer_id IS NOT NULL ORDER BY 1"
    )
    assert parameters["status"].query == "VALUES ('o''pen'), (NULL)"


def test_a_statement_without_tables_needs_none():
    facts = {name: getattr(KNOWN, name) for name in KNOWN.__dataclass_fields__}
    facts |= {"statement": "SELECT 1 + 2", "tables": (), "parameters": ()}
    text = experiment_text(Draft(**facts))
    assert places_to_fill(text) == [] and "names no table" in text
    unread = experiment_text(Draft(**facts | {"statement": None}))
    assert "fill in the tables that the statement uses, with rows" in {
        place.message for place in places_to_fill(unread)
    }


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"changes": {}}, "the change to test, such as CREATE INDEX ON orders (customer_id);"),
        ({"statement": None, "parameters": ()}, "the statement, with :name for each value"),
        ({"tables": (DraftTable("orders"),)}, "CREATE TABLE orders and INSERT with realistic rows"),
        ({"tables": (DraftTable("orders",
                                SourceTable("orders", unknown="this role may not read it")),)},
         "CREATE TABLE orders and INSERT with realistic rows (this role may not read it)"),
        ({"parameters": (*KNOWN.parameters[:1], DraftParameter("status"))},
         "a query that returns the values of :status, such as VALUES (1), (2)"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_a_marked_place_that_plan_and_run_refuse(changed, place):
    facts = {name: getattr(KNOWN, name) for name in KNOWN.__dataclass_fields__} | changed
    text = experiment_text(Draft(**facts))
    assert [one.message for one in places_to_fill(text)] == [f"fill in {place}"]
    with pytest.raises(SpecError) as raised:
        made_source(text, {}, Options(), "made.toml")
    (line,) = str(raised.value).splitlines()
    number = next(at for at, one in enumerate(text.splitlines(), start=1) if "FILL IN: " in one)
    assert line == f"made.toml:{number}: fill in {place}"


def test_generated_numbers_stay_generated():
    drawn = DraftParameter("customer_id", least=1, most=9)
    facts = {name: getattr(KNOWN, name) for name in KNOWN.__dataclass_fields__}
    spec = spec_of(Draft(**facts | {"parameters": (drawn, KNOWN.parameters[1])}))
    assert spec.workloads["statement"].parameters["customer_id"].generator.max == 9


def test_texts_of_columns_with_other_names_match_in_joins():
    made = []
    for name in ("ticket_ref", "code"):
        column = SourceColumn(name, "text", "S", not_null=True, distinct=-1.0, width_bytes=8)
        made.append(table_sql(SourceTable("t", "", 10, (column,)), 10, {name}).replace(name, "x"))
    assert made[0] == made[1] and "'value ' || (n)" in made[0]


VULN = SourceTable(
    name="vuln",
    rows=1_000,
    columns=(
        SourceColumn("id", "bigint", "N", not_null=True, distinct=-1),
        SourceColumn("seen", "date", "D", not_null=True, distinct=10),
        SourceColumn("name", "text", "S", distinct=-1),
        SourceColumn("score", "integer", "N", distinct=10),
    ),
)
PIPELINE = Draft(
    name="vuln",
    question="What makes it faster?",
    seen="insert into vuln (name, score) values (?, ?)",
    statement="INSERT INTO vuln (name, score) VALUES (:name, :score) ON CONFLICT DO NOTHING",
    parameters=(
        DraftParameter("name", ("a", "b"), "name", "vuln"),
        DraftParameter("score", ("1",), "score", "vuln"),
    ),
    tables=(DraftTable("vuln", VULN),),
    changes_rows=True,
    batch=500,
)


def test_a_pipeline_becomes_an_experiment_of_ways_to_send_many_rows():
    spec = spec_of(PIPELINE)
    assert list(spec.variants) == ["pipeline", "values", "unnest", "copy"]
    assert spec.variants["pipeline"].baseline
    assert spec.statements("statement", "pipeline")[0].strip() == (
        "INSERT INTO vuln (name, score) SELECT name, score FROM :batch ON CONFLICT DO NOTHING"
    )
    assert "ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (START WITH 1000000);" in spec.setup.sql
    assert "ALTER COLUMN seen DROP NOT NULL;" in spec.setup.sql
    batch = spec.workloads["statement"].batch
    assert (str(batch.rows), dict(batch.columns)) == ("500", {"name": "text", "score": "integer"})


def test_types_of_an_unknown_table_are_places_to_fill_in():
    draft = replace(PIPELINE, tables=(DraftTable("vuln"),))
    texts = [place.message for place in places_to_fill(experiment_text(draft))]
    assert any("the type of name" in text for text in texts)


@pytest.mark.parametrize(
    "statement", ["INSERT INTO vuln (name) SELECT :name", "INSERT INTO vuln (name) VALUES (upper(:name))"]
)
def test_a_pipeline_of_other_statements_is_an_experiment_about_one_statement(statement):
    text = experiment_text(replace(PIPELINE, statement=statement))
    assert "[variants.current]" in text
