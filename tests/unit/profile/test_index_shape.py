"""Definitions of indexes taken apart, and written again."""

import pytest

from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index
from uncork.profile.shapes.index_shape import index_shape


@pytest.mark.parametrize(
    ("definition", "shape"),
    [
        ("CREATE INDEX i ON public.orders USING btree (customer_id, placed DESC)",
         IndexShape("orders", (IndexKey("customer_id"), IndexKey("placed", descending=True)),
                    name="i")),
        ("CREATE UNIQUE INDEX i ON orders USING btree (lower(email) text_pattern_ops) INCLUDE (id)",
         IndexShape("orders", (IndexKey("", "lower(email)", opclass="text_pattern_ops"),),
                    included=("id",), unique=True, name="i")),
        ("CREATE INDEX i ON orders USING gin (body jsonb_path_ops) WHERE (state = 'new'::text)",
         IndexShape("orders", (IndexKey("body", opclass="jsonb_path_ops"),), method="gin",
                    predicate="state = 'new'::text", name="i")),
    ],
)  # fmt: skip
def test_an_index_is_taken_apart(definition, shape):
    assert index_shape(definition, "i", "orders") == shape


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
