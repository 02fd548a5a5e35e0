"""From stored rows of a catalogue to what rules read: columns, keys, triggers, functions, settings, rates."""

from __future__ import annotations

import json

import pytest

from uncork.analysis.database.result import session_rates
from uncork.analysis.database.schema import catalogue_of
from uncork.model.database.catalogue import Catalogue, RoleSetting
from uncork.model.results.database import CounterFacts
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.tables.register import TABLES
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.store.tables import rows_table

FACTS = {"snapshots": {}, "system": {"server_here": True, "memory_bytes": 8 << 30}}
RELATIONS = [
    {"moment": "after", "oid": 1, "schema": "public", "name": "orders"},
    {"moment": "after", "oid": 2, "schema": "Shop", "name": "line", "partition_of": 1},
    {"moment": "before", "oid": 3, "schema": "public", "name": "dropped"},
]


def stored(**rows):
    """Return all tables of a run; those that are not given are empty."""
    given = {"database_relations": RELATIONS, **rows}
    return {
        table.name: rows_table(
            table.name, [{**dict.fromkeys(names(table)), **row} for row in given.get(table.name, ())]
        )
        for table in (*DATABASE_TABLES, *CATALOGUE_TABLES, *SYSTEM_TABLES)
    }


def names(table):
    return [column.name for column in TABLES[table.name].columns]


def test_a_run_without_rows_has_an_empty_catalogue():
    assert catalogue_of(stored(), {"snapshots": {}, "system": {"memory_bytes": None}}) == Catalogue()


def test_columns_are_by_table_in_the_order_of_the_table_with_their_statistics():
    column = {"table_oid": 2, "type": "text", "storage_type": "text", "not_null": True, "default": ""}
    found = catalogue_of(
        stored(
            database_columns=[
                {**column, "number": 2, "name": "b", "null_fraction": 0.5},
                {
                    **column,
                    "number": 1,
                    "name": "a",
                    "common": json.dumps([["x", 0.75], ["é", 0.25]]),
                    "bounds": json.dumps(["p", "q"]),
                },
                {**column, "table_oid": 3, "number": 1, "name": "of a dropped table"},
            ]
        ),
        FACTS,
    )
    assert [one.name for one in found.columns["Shop.line"]] == ["a", "b"] and list(found.columns) == [
        "Shop.line"
    ]
    first = found.column("Shop.line", "a")
    assert (first.common, first.bounds) == ((("x", 0.75), ("é", 0.25)), ("p", "q"))
    assert found.column("Shop.line", "b").null_fraction == 0.5
    assert found.column("Shop.line", "b").common == ()


def test_foreign_keys_and_partitions_name_the_other_table():
    found = catalogue_of(
        stored(
            database_constraints=[
                {
                    "oid": 9,
                    "table_oid": 2,
                    "name": "line_order",
                    "kind": "foreign key",
                    "columns": '["order"]',
                    "definition": "FOREIGN KEY ...",
                    "valid": True,
                    "index": "",
                    "referred_oid": 1,
                    "referred_columns": '["id"]',
                    "on_delete": "cascade",
                    "on_update": "no action",
                },
                {
                    "oid": 10,
                    "table_oid": 2,
                    "name": "line_pkey",
                    "kind": "primary key",
                    "columns": '["id"]',
                    "definition": "PRIMARY KEY (id)",
                    "valid": True,
                    "index": "line_pkey",
                },
            ],
            database_table_options=[
                {
                    "table_oid": 2,
                    "options": '{"fillfactor": "70"}',
                    "persistence": "unlogged",
                    "partition_key": "",
                    "bounds": "DEFAULT",
                    "toast_bytes": 8192,
                }
            ],
        ),
        FACTS,
    )
    key, primary = found.constraints
    assert (key.table, key.columns, key.referred, key.referred_columns, key.on_delete) == (
        *("Shop.line", ("order",), "orders", ("id",)),
        "cascade",
    )
    assert (primary.index, primary.referred) == ("Shop.line_pkey", "")
    options = found.options["Shop.line"]
    assert (options.parent, options.bounds, options.options["fillfactor"]) == ("orders", "DEFAULT", "70")


def test_policies_name_their_table_and_their_roles():
    row = {"oid": 7, "table_oid": 2, "name": "own", "command": "all", "permissive": True, "volatile": False}
    (found,) = catalogue_of(
        stored(database_policies=[{**row, "condition": "(tenant = 1)", "roles": '["app", "web"]'}]), FACTS
    ).policies
    assert (found.table, found.condition, found.roles) == ("Shop.line", "(tenant = 1)", ("app", "web"))


FUNCTION = {"schema": "public", "volatility": "volatile", "cost": 100.0, "source": ""}


@pytest.mark.parametrize(
    ("tracked", "language", "before", "after", "calls"),
    [
        ("pl", "plpgsql", 5, 7, 2),
        ("pl", "plpgsql", 5, 3, 3),  # counters were reset meanwhile
        ("pl", "plpgsql", None, None, 0),  # never called
        ("pl", "sql", None, None, None),  # not counted
        ("all", "sql", None, None, 0),
        ("none", "plpgsql", None, None, None),
    ],
)
def test_calls_of_functions_are_known_only_if_they_are_counted(tracked, language, before, after, calls):
    rows = [{**FUNCTION, "moment": "after", "oid": 5, "name": "f", "language": language, "calls": after}]
    if before is not None:
        rows.append({"moment": "before", "oid": 5, "calls": before})
    setting = {"name": "track_functions", "value": tracked, "source": "configuration file"}
    found = catalogue_of(stored(database_functions=rows, database_server_settings=[setting]), FACTS)
    (function,) = found.functions
    assert (function.name, function.language, function.calls) == ("f", language, calls)
    assert found.setting("track_functions") == tracked and found.setting("work_mem") == ""


def test_a_control_group_limits_memory_and_processors():
    bounds = {"role": "server", "cgroup": 1, "quota_cpus": 1.5, "allowed_cpus": 4, "memory_bytes": 2 << 30}
    bounds |= dict.fromkeys(("burst_ns", "memory_hits", "oom_kills"))
    sampling = {"sampling": 0, "begun_us": 0, "elapsed_ns": 10**9, "missed": 0, "own_ns": 0, "lacks": "[]"}
    found = catalogue_of(
        stored(
            system_samplings=[{**sampling, "bounds": json.dumps([bounds])}],
            system_samples=[{"sampling": 0, "tick": 0, "cpus": 8, "late_ns": 0, "length_ns": 10**8}],
        ),
        FACTS,
    )
    assert (found.memory_bytes, found.processors) == (2 << 30, 2)


def test_a_setting_of_a_role_whose_value_is_not_stored_has_none():
    row = {"role": "web", "database": "", "name": "app.secret", "value": None}
    assert catalogue_of(stored(database_role_settings=[row]), FACTS).role_settings == (
        RoleSetting("web", "", "app.secret", ""),
    )


COUNTERS = {
    "xact_commit": 120,
    "xact_rollback": 10,
    "sessions": 50,
    "active_time": 3000.0,
    "idle_in_transaction_time": 1000.0,
    "temp_bytes": 4096,
}


def counters(**values):
    return [CounterFacts("pg_stat_database", "shop", name, value) for name, value in values.items()]


def test_rates_of_sessions_are_per_second_without_the_commits_of_uncork():
    other = CounterFacts("pg_stat_database", "other", "deadlocks", 7)
    found = session_rates([*counters(**COUNTERS), other], "shop", 10.0, 18, own_commits=20)
    assert (found.commits, found.rollbacks, found.opened, found.deadlocks) == (10.0, 1.0, 5.0, 0.0)
    assert (found.abandoned, found.temp_bytes, found.idle_share) == (0.0, 409.6, 0.25)


def test_an_old_server_does_not_count_sessions():
    found = session_rates(counters(xact_commit=10), "shop", 10.0, 13)
    assert found.commits == 1.0
    assert (found.opened, found.killed, found.idle_share) == (None, None, None)
    assert session_rates([], "shop", 10.0, 18) is None
