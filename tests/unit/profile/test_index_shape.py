"""Definitions of indexes taken apart, and written again."""

from fakes.goldens import compare_answers
from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index
from uncork.profile.statement_shape import index_shape


def test_an_index_is_taken_apart():
    compare_answers(
        "answers/profile/an_index_is_taken_apart", lambda definition: index_shape(definition, "i", "orders")
    )


def test_what_is_no_index_is_none():
    assert index_shape("SELECT 1", "i", "orders") is None
    assert index_shape("CREATE INDEX ON", "i", "orders") is None


def test_a_new_index_is_created_without_blocking_writes():
    index = IndexShape(
        "shop.Order", (IndexKey("customer"), IndexKey("", "lower(name)")), predicate="open", included=("id",)
    )
    assert create_index(index) == (
        'CREATE INDEX CONCURRENTLY "Order_customer_expr_part_idx" ON shop."Order" (customer, (lower(name))) '
        "INCLUDE (id) WHERE open;"
    )
    assert drop_index(index) == 'DROP INDEX CONCURRENTLY shop."Order_customer_expr_part_idx";'
