"""Statements as people and object mappers write them, taken apart with the grammar."""

from dataclasses import fields

from fakes.goldens import compare_answers
from uncork.profile.grammar import template_text
from uncork.profile.statement_shape import statement_shape

TABLES = {
    "orders": ("id", "customer_id", "status", "total", "created_at", "paid", "note"),
    "customers": ("id", "email", "name", "active", "tags", "payload", "manager_id"),
    "lines": ("id", "order_id", "product_id", "quantity"),
    "shop.items": ("id", "sku", "starts_on", "ends_on"),
    "order": ("id", "user"),
}


def shape(sql, **options):
    found = statement_shape(sql, TABLES, **options)
    assert found is not None
    return found


def text(predicate):
    """Write a predicate as one line."""
    side = predicate.column or f"[{predicate.expression}]"
    words = [f"{predicate.table}.{side}" + (f"::{predicate.cast}" if predicate.cast else "")]
    words += ["not"] * predicate.negated + [predicate.operator, predicate.value]
    words += [] if predicate.literal is None else [repr(predicate.literal)]
    words += [f"::{predicate.value_cast}"] if predicate.value_cast else []
    words += [f"{predicate.other.table}.{predicate.other.column}"] if predicate.other else []
    words += [f"({predicate.clause})"] if predicate.clause != "where" else []
    words += [f"or{predicate.group}"] if predicate.alternative else []
    words += [f"@{predicate.level}"] if predicate.level else []
    return " ".join(words)


def predicates(sql, **options):
    return "\n".join(map(text, shape(sql, **options).predicates))


def test_conditions_become_predicates():
    compare_answers("profile/predicates", lambda where: predicates(f"SELECT 1 FROM orders o WHERE {where}"))


def described(sql):
    """Write what is known of a statement: a line for each field that is not as it is by default."""
    found = shape(sql)
    lines = []
    for field in fields(found):
        value = getattr(found, field.name)
        if field.name == "predicates":
            lines += [f"predicate: {text(one)}" for one in value]
        elif isinstance(value, tuple):
            lines += [f"{field.name}: {one}" for one in value]
        elif value not in ("", None, False, 0):
            lines.append(f"{field.name}: {value}")
    return "\n".join(lines)


def test_statements_are_taken_apart():
    """Those of Django, Rails, Hibernate, SQLAlchemy and jOOQ come first."""
    compare_answers("profile/shapes", described)


def test_templates_have_a_question_mark_for_each_value():
    compare_answers("profile/template_predicates", lambda sql: predicates(sql, template=True))


def test_a_long_list_and_two_templates_of_one_statement():
    values = ", ".join(map(str, range(5000)))
    (one,) = shape(f"SELECT 1 FROM orders WHERE id IN ({values})").predicates
    assert (one.operator, one.value, one.literal) == ("in", "constant", None)
    sql = "SELECT o.id FROM orders o WHERE status = 'x' AND id = ANY ($1) ORDER BY total"
    with_literal, template = shape(sql), shape(template_text(sql), template=True)
    assert template.tables == with_literal.tables
    assert template.order == with_literal.order
