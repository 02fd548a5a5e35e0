"""Templates on a line."""

from uncork.report.template_words import short_template


def test_a_query_of_many_columns_is_told_by_its_tables():
    columns = ", ".join(f"column_{number}" for number in range(20))
    assert short_template(f"select {columns} from orders where id = ?") == (
        "select column_0, … from orders where id = ?"
    )
    nested = f"select a, (select max(b) from c where {columns}), d from orders"
    assert short_template(nested) == "select a, … from orders"
    assert short_template("select a, b from orders") == "select a, b from orders"
    assert short_template(f"select {columns}") == f"select {columns}"[:89].rstrip() + "…"
    assert short_template(f"insert into t({columns}) select 1 from u").startswith("insert into t(column_0, ")
