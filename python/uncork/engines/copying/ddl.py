"""Write the statements that create a database's objects again. Every identifier is quoted.

The order is: what rows need (`before_rows`), what is faster or only possible with the rows there
(`after_rows`). Within these, objects come in the order in which the source created them, kind by kind. A
function may use a view, and a view a primary key, so the executor repeats what failed (`applying`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from uncork.engines.copying import objects
from uncork.engines.copying.objects import Column, Constraint, Schema, Table
from uncork.model.database.names import literal

_SAFE_EXTENSIONS: Final = frozenset(
    [
        *("amcheck", "bloom", "btree_gin", "btree_gist", "citext", "cube", "dict_int", "dict_xsyn"),
        *("earthdistance", "fuzzystrmatch", "hstore", "intarray", "isn", "lo", "ltree", "pageinspect"),
        *(
            "pg_buffercache",
            "pg_freespacemap",
            "pg_prewarm",
            "pg_stat_statements",
            "pg_trgm",
            "pg_visibility",
        ),
        *("pgcrypto", "pgrowlocks", "pgstattuple", "seg", "sslinfo", "tablefunc", "tcn", "tsm_system_rows"),
        *("tsm_system_time", "unaccent", "uuid-ossp", "xml2", "insert_username", "moddatetime", "autoinc"),
        *(
            "refint",
            "intagg",
            "pg_walinspect",
            "plpgsql",
            "pltcl",
            "plperl",
            "vector",
            "hll",
            "ip4r",
            "prefix",
        ),
        *("hypopg", "pg_hint_plan", "pg_partman", "pg_ivm", "pg_uuidv7", "pgtap", "pgrouting", "postgis"),
        *("postgis_raster", "postgis_sfcgal", "postgis_topology", "address_standardizer", "rum", "semver"),
        *("h3", "h3_postgis", "orafce", "pg_bigm", "pg_similarity", "pgroonga", "periods", "temporal_tables"),
        *("roaringbitmap", "tdigest", "topn", "unit", "numeral", "pg_jsonschema", "pg_hashids", "pgjwt"),
    ]
)
"""Extensions that open no connections, start no jobs, and reach nothing outside the database."""

_PROVIDERS: Final = {"c": "libc", "i": "icu", "b": "builtin"}
_STORAGE: Final = {"p": "PLAIN", "e": "EXTERNAL", "m": "MAIN", "x": "EXTENDED"}
_ENABLED: Final = {"D": "DISABLE", "R": "ENABLE REPLICA", "A": "ENABLE ALWAYS"}
_COLUMN_OPTIONS: Final = ("n_distinct", "n_distinct_inherited")
"""Some builds of PostgreSQL keep entries of their own among a column's options, such as pg_attver."""
_INDEXED: Final = ("p", "u", "x")


@dataclass(frozen=True, slots=True)
class Step:
    """A statement for the copy: the kind and the name of what it creates.

    `refused` says why the copy must not have it; the statement is then empty.
    """

    kind: str
    name: str
    text: str
    refused: str = ""

    @property
    def what(self) -> str:
        """What a message calls the object."""
        return f"{self.kind} {self.name}"


def identifier(*parts: str) -> str:
    """Return a name in quotes, qualified by those before it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def before_rows(schema: Schema, target: int) -> Iterator[Step]:
    """Yield what creates everything that rows need, and views. `target` is the copy's major version."""
    for name in schema.schemas:
        yield Step("schema", name, f"CREATE SCHEMA IF NOT EXISTS {identifier(name)}")
    yield from map(_extension, schema.extensions)
    yield from map(_collation, schema.collations)
    yield from map(_type, schema.types)
    yield from map(_range, schema.ranges)
    yield from map(_routine, schema.routines)
    yield from (_domain_check(check) for check in schema.checks if check.valid)
    for aggregate in schema.aggregates:
        options = ", ".join(f"{key} = {value}" for key, value in aggregate.options)
        name = identifier(aggregate.schema, aggregate.name)
        yield Step(
            "aggregate",
            f"{aggregate.schema}.{aggregate.name}",
            f"CREATE AGGREGATE {name}({aggregate.arguments or '*'}) ({options})",
        )
    yield from (_sequence(sequence) for sequence in schema.sequences if not sequence.identity)
    yield from _tables(schema, target)
    yield from map(_view, schema.views)
    names = {table.oid: (table.schema, table.name) for table in schema.tables}
    views = {view.oid: (view.schema, view.name) for view in schema.views}
    for column in schema.columns:
        if column.table in names:
            yield from _column_settings(column, names[column.table])
        elif column.table in views:
            yield from _column_settings(column, views[column.table])


def after_rows(schema: Schema) -> Iterator[Step]:
    """Yield what creates constraints, indexes and statistics, and sets sequences; foreign keys come last."""
    tables = {table.oid: table for table in schema.tables}
    yield from (_domain_check(check) for check in schema.checks if not check.valid)
    own = [constraint for constraint in schema.constraints if not constraint.derived]
    yield from (_constraint(constraint, tables) for constraint in own if constraint.kind in _INDEXED)
    yield from (
        _constraint(constraint, tables)
        for constraint in own
        if constraint.kind == "c" and not constraint.inherited
    )
    yield from (
        _constraint(constraint, tables)
        for constraint in own
        if constraint.kind == "n" and not constraint.valid and not constraint.inherited
    )
    yield from _part_constraints(schema, tables)
    yield from _indexes(schema, tables)
    yield from _values(schema)
    for statistics in schema.statistics:
        name = f"{statistics.schema}.{statistics.name}"
        yield Step("statistics", name, statistics.definition)
        if statistics.target is not None:
            quoted = identifier(statistics.schema, statistics.name)
            yield Step("statistics", name, f"ALTER STATISTICS {quoted} SET STATISTICS {statistics.target}")
    yield from (_constraint(constraint, tables) for constraint in own if constraint.kind == "f")


def materialise(schema: Schema) -> Iterator[Step]:
    """Yield what fills materialised views, creates their indexes, and then rules and triggers."""
    views = {view.oid: view for view in schema.views if view.kind == "m"}
    for view in views.values():
        if view.filled:
            text = f"REFRESH MATERIALIZED VIEW {identifier(view.schema, view.name)}"
            yield Step("rows of materialised view", f"{view.schema}.{view.name}", text)
    for index in schema.indexes:
        if index.table in views and index.definition is not None and index.valid:
            yield Step("index", f"{index.schema}.{index.name}", index.definition)
            yield from _index_targets(index)
    for rule in schema.rules:
        yield from _switched("rule", rule)
    for trigger in schema.triggers:
        yield from _switched("trigger", trigger)


def reloptions(options: Iterable[str]) -> str:
    """Return storage parameters, from the catalogue's ``name=value``, in parentheses; or an empty text."""
    pairs = (option.partition("=") for option in options)
    text = ", ".join(f"{_parameter(name)} = {literal(value)}" for name, _, value in pairs)
    return f"({text})" if text else ""


def _parameter(name: str) -> str:
    return ".".join(identifier(part) for part in name.split(".", 1))


# ---- schemas, types, functions ----


def _extension(extension: objects.Extension) -> Step:
    if extension.name not in _SAFE_EXTENSIONS:
        why = "it is not on uncork's list of extensions that open no connections and start no jobs"
        return Step("extension", extension.name, "", refused=why)
    place = "" if extension.schema == "pg_catalog" else f" WITH SCHEMA {identifier(extension.schema)}"
    return Step(
        "extension", extension.name, f"CREATE EXTENSION IF NOT EXISTS {identifier(extension.name)}{place}"
    )


def _collation(collation: objects.Collation) -> Step:
    options = [f"provider = {_PROVIDERS.get(collation.provider, collation.provider)}"]
    if collation.provider == "c":
        options += [
            f"lc_collate = {literal(collation.collate or 'C')}",
            f"lc_ctype = {literal(collation.ctype or 'C')}",
        ]
    else:
        options.append(f"locale = {literal(collation.locale or collation.collate or 'und')}")
    if not collation.deterministic:
        options.append("deterministic = false")
    if collation.rules:
        options.append(f"rules = {literal(collation.rules)}")
    text = f"CREATE COLLATION {identifier(collation.schema, collation.name)} ({', '.join(options)})"
    return Step("collation", f"{collation.schema}.{collation.name}", text)


def _type(user_type: objects.UserType) -> Step:
    name = identifier(user_type.schema, user_type.name)
    if user_type.kind == "e":
        text = f"CREATE TYPE {name} AS ENUM ({', '.join(map(literal, user_type.labels))})"
    elif user_type.kind == "c":
        attributes = (
            f"{identifier(attribute)} {type_}{f' COLLATE {collation}' if collation else ''}"
            for attribute, type_, collation in user_type.attributes
        )
        text = f"CREATE TYPE {name} AS ({', '.join(attributes)})"
    else:
        text = f"CREATE DOMAIN {name} AS {user_type.base}"
        text += f" COLLATE {user_type.collation}" if user_type.collation else ""
        text += f" DEFAULT {user_type.default}" if user_type.default is not None else ""
        text += " NOT NULL" if user_type.not_null else ""
    return Step("domain" if user_type.kind == "d" else "type", f"{user_type.schema}.{user_type.name}", text)


def _domain_check(check: objects.DomainCheck) -> Step:
    name = identifier(check.schema, check.domain)
    text = f"ALTER DOMAIN {name} ADD CONSTRAINT {identifier(check.name)} {check.definition}"
    return Step("constraint", f"{check.name} of {check.schema}.{check.domain}", text)


def _range(one: objects.Range) -> Step:
    named = f"{one.schema}.{one.name}"
    if one.canonical:
        return Step(
            "type", named, "", refused="it is a range with a canonical function, which uncork cannot create"
        )
    options = [f"subtype = {one.subtype}", f"subtype_opclass = {one.operator_class}"]
    options += [f"collation = {one.collation}"] if one.collation else []
    options += [f"subtype_diff = {one.difference}"] if one.difference else []
    options += [f"multirange_type_name = {one.multirange}"] if one.multirange else []
    return Step(
        "type", named, f"CREATE TYPE {identifier(one.schema, one.name)} AS RANGE ({', '.join(options)})"
    )


def _routine(routine: objects.Routine) -> Step:
    if routine.language in ("c", "internal"):
        return Step(
            "function",
            routine.name,
            "",
            refused=f"it is written in {routine.language}, and needs the source's files",
        )
    return Step("function", routine.name, routine.definition)


def _sequence_options(sequence: objects.SequenceFacts) -> str:
    return (
        f"START WITH {sequence.start} INCREMENT BY {sequence.increment} MINVALUE {sequence.minimum} "
        f"MAXVALUE {sequence.maximum} "
        f"CACHE {sequence.cache}{' CYCLE' if sequence.cycles else ''}"
    )


def _sequence(sequence: objects.SequenceFacts) -> Step:
    name = identifier(sequence.schema, sequence.name)
    text = f"CREATE SEQUENCE {name} AS {sequence.type} {_sequence_options(sequence)}"
    return Step("sequence", f"{sequence.schema}.{sequence.name}", text)


def _values(schema: Schema) -> Iterator[Step]:
    for sequence in schema.sequences:
        if sequence.last is not None:
            name = literal(identifier(sequence.schema, sequence.name))
            text = f"SELECT pg_catalog.setval({name}, {sequence.last}, true)"
            yield Step("value of sequence", f"{sequence.schema}.{sequence.name}", text)


# ---- tables and views ----


def _tables(schema: Schema, target: int) -> Iterator[Step]:
    columns: dict[int, list[Column]] = {}
    for column in schema.columns:
        columns.setdefault(column.table, []).append(column)
    identities = {
        (sequence.table, sequence.column): sequence for sequence in schema.sequences if sequence.identity
    }
    named_not_null = schema.version >= 18 and target >= 18
    tables = {table.oid: table for table in schema.tables}
    for table in schema.tables:
        lines = [
            _column(column, table, identities, named=named_not_null) for column in columns.get(table.oid, ())
        ]
        text = f"CREATE {'UNLOGGED ' if table.unlogged else ''}TABLE {_name(table)} ({', '.join(lines)})"
        text += f" PARTITION BY {table.partition_key}" if table.partition_key else ""
        text += f" WITH {reloptions(table.options)}" if table.options else ""
        yield Step("table", _shown(table), text)
    for table in schema.tables:
        yield from _parents(table, tables)
    for sequence in schema.sequences:
        if sequence.table in tables and not sequence.identity:
            owner = f"{_name(tables[sequence.table])}.{identifier(sequence.column or '')}"
            text = f"ALTER SEQUENCE {identifier(sequence.schema, sequence.name)} OWNED BY {owner}"
            yield Step("owner of sequence", f"{sequence.schema}.{sequence.name}", text)


def _name(table: Table) -> str:
    return identifier(table.schema, table.name)


def _shown(table: Table) -> str:
    return f"{table.schema}.{table.name}"


def _column(
    column: Column,
    table: Table,
    identities: Mapping[tuple[int | None, str | None], objects.SequenceFacts],
    *,
    named: bool,
) -> str:
    text = f"{identifier(column.name)} {column.type}"
    text += f" COLLATE {column.collation}" if column.collation else ""
    if column.generated:
        text += (
            f" GENERATED ALWAYS AS ({column.default}) {'STORED' if column.generated == 's' else 'VIRTUAL'}"
        )
    if column.not_null:
        if named and column.not_null_name:
            text += f" CONSTRAINT {identifier(column.not_null_name)}"
        text += " NOT NULL"
        text += " NO INHERIT" if named and column.no_inherit else ""
    if column.identity and table.bound is None:
        text += f" GENERATED {'ALWAYS' if column.identity == 'a' else 'BY DEFAULT'} AS IDENTITY"
        if sequence := identities.get((table.oid, column.name)):
            name = identifier(sequence.schema, sequence.name)
            text += f" (SEQUENCE NAME {name} {_sequence_options(sequence)})"
    return text


def _parents(table: Table, tables: Mapping[int, Table]) -> Iterator[Step]:
    for parent in table.parents:
        if parent not in tables:
            yield Step("inheritance of table", _shown(table), "", refused="its parent was not copied")
        elif table.bound is not None:
            text = f"ALTER TABLE ONLY {_name(tables[parent])} ATTACH PARTITION {_name(table)} {table.bound}"
            yield Step("partition", _shown(table), text)
        else:
            text = f"ALTER TABLE ONLY {_name(table)} INHERIT {_name(tables[parent])}"
            yield Step("inheritance of table", _shown(table), text)


def _column_settings(column: Column, name: tuple[str, str]) -> Iterator[Step]:
    table = f"ALTER TABLE ONLY {identifier(*name)}"
    alter = f"{table} ALTER COLUMN {identifier(column.name)}"
    shown = f"{name[0]}.{name[1]}.{column.name}"
    if column.default is not None and not column.generated:
        yield Step("default of column", shown, f"{alter} SET DEFAULT {column.default}")
    if column.storage:
        yield Step("storage of column", shown, f"{alter} SET STORAGE {_STORAGE[column.storage]}")
    if column.compression:
        yield Step("compression of column", shown, f"{alter} SET COMPRESSION {column.compression}")
    if column.target is not None:
        yield Step("statistics target of column", shown, f"{alter} SET STATISTICS {column.target}")
    if options := [option for option in column.options or () if option.partition("=")[0] in _COLUMN_OPTIONS]:
        yield Step("options of column", shown, f"{alter} SET {reloptions(options)}")


def _view(view: objects.View) -> Step:
    kind = "MATERIALIZED VIEW" if view.kind == "m" else "VIEW"
    text = f"CREATE {kind} {identifier(view.schema, view.name)}"
    text += f" WITH {reloptions(view.options)}" if view.options else ""
    text += f" AS {view.definition.rstrip().removesuffix(';')}"
    text += " WITH NO DATA" if view.kind == "m" else ""
    return Step("materialised view" if view.kind == "m" else "view", f"{view.schema}.{view.name}", text)


# ---- constraints, indexes, triggers ----


def _constraint(constraint: Constraint, tables: Mapping[int, Table]) -> Step:
    table = tables[constraint.table]
    alone = "ONLY " if constraint.kind in _INDEXED else ""
    added = f"ADD CONSTRAINT {identifier(constraint.name)} {constraint.definition}"
    text = f"ALTER TABLE {alone}{_name(table)} {added}"
    kind = "foreign key" if constraint.kind == "f" else "constraint"
    name = f"{constraint.name} of {_shown(table)}"
    if constraint.kind == "f" and constraint.references not in tables:
        return Step(kind, name, "", refused="the table that it references was not copied")
    return Step(kind, name, text)


def _part_constraints(schema: Schema, tables: Mapping[int, Table]) -> Iterator[Step]:
    """Primary keys, uniques and exclusions of partitions, which are parts of their parent's constraints."""
    for constraint in schema.constraints:
        if constraint.derived and constraint.kind in _INDEXED:
            yield _constraint(constraint, tables)


def _indexes(schema: Schema, tables: Mapping[int, Table]) -> Iterator[Step]:
    settings = {
        (constraint.table, constraint.name): constraint.index_options
        for constraint in schema.constraints
        if constraint.kind in _INDEXED
    }
    for index in schema.indexes:
        if index.table not in tables:
            continue
        name, shown = identifier(index.schema, index.name), f"{index.schema}.{index.name}"
        if not index.valid:
            yield Step("index", shown, "", refused="it is not valid, so that no plan of the source uses it")
            continue
        if index.definition is not None:
            yield Step("index", shown, index.definition)
        elif options := settings.get((index.table, index.name)):
            yield Step("options of index", shown, f"ALTER INDEX {name} SET {reloptions(options)}")
            if tables[index.table].kind == "r":
                yield Step("options of index", shown, f"REINDEX INDEX {name}")
        yield from _index_targets(index)
    for index in schema.indexes:
        if index.parent is not None and index.table in tables and index.valid:
            parent = identifier(index.parent_schema or "", index.parent)
            text = f"ALTER INDEX {parent} ATTACH PARTITION {identifier(index.schema, index.name)}"
            yield Step("part of index", f"{index.schema}.{index.name}", text)


def _index_targets(index: objects.Index) -> Iterator[Step]:
    for number, target in index.targets:
        name = identifier(index.schema, index.name)
        text = f"ALTER INDEX {name} ALTER COLUMN {number} SET STATISTICS {target}"
        yield Step("statistics target of index", f"{index.schema}.{index.name}", text)


def _switched(kind: str, one: objects.Trigger | objects.Rule) -> Iterator[Step]:
    shown = f"{one.name} of {one.schema}.{one.table}"
    yield Step(kind, shown, one.definition)
    if one.enabled in _ENABLED:
        text = f"ALTER TABLE {identifier(one.schema, one.table)} {_ENABLED[one.enabled]} {kind.upper()}"
        yield Step(kind, shown, f"{text} {identifier(one.name)}")
