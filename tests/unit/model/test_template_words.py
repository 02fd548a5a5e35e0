"""Templates on a line."""

from uncork.model.template_words import short_template, short_templates


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


def test_templates_that_differ_late_show_where_they_differ():
    columns = ", ".join(f"t.column_{number}" for number in range(30))
    texts = [
        f"select {columns} from orders as t join customers as c on c.id = t.customer where t.{name} = ?"
        for name in ("number", "state", "customer", "product")
    ]
    shown = short_templates([*texts, texts[0], "select 1"], 80)
    assert len(set(shown)) == 5
    assert shown[0] == shown[4]
    assert shown[5] == "select 1"
    assert all(len(one) <= 80 for one in shown), [len(one) for one in shown]
    for name, place in (("number", 0), ("state", 1), ("product", 3)):
        assert f"t.{name} = ?" in shown[place]


def test_texts_that_differ_only_at_their_very_end_are_told_apart():
    shown = short_templates([f"insert into t values ({'?, ' * 80}{end})" for end in ("?", "default")], 60)
    assert shown[0] != shown[1]
    assert all(len(one) <= 60 for one in shown)
