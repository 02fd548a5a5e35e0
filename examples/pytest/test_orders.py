"""Tests with uncork's fixture; run them with `pytest examples/pytest`."""


def test_the_index_carries_the_list(uncork):
    found = uncork.run("orders.toml")
    uncork.expect(found, "index=faster")


def test_loads_do_not_fail(uncork):
    load = uncork.load_sql(embedded=True, builtin="select-only", clients=2, time="2s")
    assert load.ok, load.answer
