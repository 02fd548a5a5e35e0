"""Read nodes of libpg_query's tree: names of functions, types and operators, and SQL again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

QUERIES: Final = frozenset({"select_stmt", "insert_stmt", "update_stmt", "delete_stmt", "merge_stmt"})
"""Statements that read rows or change them."""
_MIRRORED: Final = (("<", ">"), ("<=", ">="), ("@>", "<@"), ("<<", ">>"), ("<<=", ">>="))
_SYMMETRIC: Final = ("=", "<>", "&&", "@@", "is distinct from", "is not distinct from")
FLIPPED: Final[Mapping[str, str]] = {
    **{operator: operator for operator in _SYMMETRIC},
    **dict(_MIRRORED),
    **{second: first for first, second in _MIRRORED},
}
"""Operators with their operands exchanged."""
_COMMENTS: Final = frozenset({"SQL_COMMENT", "C_COMMENT"})
_HIDDEN_SCHEMAS: Final = frozenset({"pg_catalog", "public"})
_TYPES: Final = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "decimal": "numeric",
    "varchar": "character varying",
    "bpchar": "character",
    "char": '"char"',
    "varbit": "bit varying",
    "time": "time without time zone",
    "timetz": "time with time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}
"""Names of types as format_type() writes them, by their names in pg_type."""


def parsed(sql: str) -> Any | None:
    """Return the tree of a text; None if the grammar rejects it, or if it is nested more than 100 deep.

    Protobuf does not read deeper trees: more than 46 operators in ``a || b || c``, 46 joins, 93 arms of UNION
    or 15 subqueries within each other.
    """
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB, which most commands do not need
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        return None if "\0" in sql else postgast.parse(sql)
    except (postgast.PgQueryError, ValueError, DecodeError):
        return None


def only_statement(sql: str) -> Any | None:
    """Return the node of a text's statement; None if `parsed` gives none, or several."""
    tree = parsed(sql)
    return tree.stmts[0].stmt if tree is not None and len(tree.stmts) == 1 else None


class Token(NamedTuple):
    """A token: the bytes at which it starts and ends, its kind in the grammar, and its text."""

    start: int
    end: int
    kind: str
    text: str


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of a text except comments; none if a token is truncated."""
    import postgast  # noqa: PLC0415

    try:
        found = postgast.scan(sql).tokens
    except (postgast.PgQueryError, ValueError):
        return []
    whole, names = sql.encode(), postgast.pg_query_pb2.Token.DESCRIPTOR.values_by_number
    every = ((token.start, token.end, names.get(token.token)) for token in found)
    return [
        Token(start, end, "" if kind is None else str(kind.name), whole[start:end].decode())
        for start, end, kind in every
        if kind is None or kind.name not in _COMMENTS
    ]


def rewritten(sql: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other texts in place of some of its bytes: start, end and text, in their order."""
    whole, end, pieces = sql.encode(), 0, []
    for start, stop, text in changes:
        pieces += [whole[end:start].decode(), text]
        end = stop
    return "".join([*pieces, whole[end:].decode()])


def kind_of(node: Any) -> str:
    """Return which node this is (``column_ref``); an empty string for a missing one."""
    return node.WhichOneof("node") or ""


def children(message: Any) -> Iterator[tuple[str, Any]]:
    """Yield the messages directly below a message, with the name of their field."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            if hasattr(value, "ListFields"):
                yield field.name, value
            else:
                yield from ((field.name, inner) for inner in value)


def descendants(message: Any) -> Iterator[Any]:
    """Yield a message and all messages below it, each before those below it."""
    yield message
    for _, child in children(message):
        yield from descendants(child)


def messages(message: Any, name: str) -> Iterator[Any]:
    """Yield the messages of one type (``ColumnRef``) among a message and all below it."""
    return (found for found in descendants(message) if found.DESCRIPTOR.name == name)


def uncast(node: Any) -> Any:
    """Return the node below all casts."""
    while kind_of(node) == "type_cast":
        node = node.type_cast.arg
    return node


def conjuncts(where: Any) -> Iterator[Any]:
    """Yield the conditions that AND joins, at any depth; the condition itself if it joins none."""
    if kind_of(where) == "bool_expr" and enum_of(where.bool_expr, "boolop") == "AND_EXPR":
        for part in where.bool_expr.args:
            yield from conjuncts(part)
    elif kind_of(where):
        yield where


def chained(nodes: Iterable[Any]) -> tuple[str, ...]:
    """Return the strings of a list of nodes, such as the parts of a name."""
    return tuple(node.string.sval for node in nodes if kind_of(node) == "string")


def enum_of(message: Any, field_name: str) -> str:
    """Return the name of an enumeration's value."""
    number = getattr(message, field_name)
    values = message.DESCRIPTOR.fields_by_name[field_name].enum_type.values_by_number
    return str(values[number].name) if number in values else ""


def name_of(parts: tuple[str, ...]) -> str:
    """Return a name with its schema, unless that is `public` or `pg_catalog`."""
    schema = parts[-2] if len(parts) > 1 else ""
    return f"{schema}.{parts[-1]}" if schema and schema not in _HIDDEN_SCHEMAS else parts[-1] if parts else ""


def function_name(call: Any) -> str:
    """Return the name of a FuncCall in lower case."""
    return name_of(chained(call.funcname)).lower()


def type_name(type_: Any) -> str:
    """Return the name of a type as format_type() writes it, without its modifier."""
    parts = chained(type_.names)
    name = name_of(parts)
    return _TYPES.get(name, name) + "[]" * min(1, len(type_.array_bounds))


def column_fields(reference: Any) -> tuple[str, ...]:
    """Return the parts of a ColumnRef's name; ``*`` for a star."""
    return tuple("*" if kind_of(field) == "a_star" else field.string.sval for field in reference.fields)


def constant_text(constant: Any) -> str | None:
    """Return the text of a constant; None for NULL."""
    kind = constant.WhichOneof("val")
    if kind is None:
        return None
    inner = getattr(constant, kind)
    if kind == "boolval":
        return "true" if inner.boolval else "false"
    return str(getattr(inner, kind))


def sql_of(node: Any) -> str:
    """Return the SQL of an expression, with column names that have no table; empty if it has no SQL."""

    def drop_table(reference: Any) -> None:
        del reference.fields[:-1]

    return _deparsed(node, drop_table)


def plain_sql_of(node: Any, renamed: Mapping[str, str] | None = None) -> str:
    """Return the SQL of an expression, with other names for its tables; empty if it has no SQL."""
    names = renamed or {}

    def rename_table(reference: Any) -> None:
        if len(reference.fields) > 1:
            first = reference.fields[0].string
            first.sval = names.get(first.sval, first.sval)

    return _deparsed(node, rename_table)


def _deparsed(node: Any, change: Callable[[Any], None]) -> str:
    """Return the SQL of an expression after a change of each reference to a column."""
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB, which most commands do not need

    tree = postgast.pg_query_pb2.ParseResult(version=180000)
    select = tree.stmts.add().stmt.select_stmt
    value = select.target_list.add().res_target.val
    value.CopyFrom(node)
    select.limit_option = postgast.pg_query_pb2.LIMIT_OPTION_DEFAULT
    select.op = postgast.pg_query_pb2.SETOP_NONE
    for reference in list(messages(value, "ColumnRef")):
        change(reference)
    try:
        return str(postgast.deparse(tree)).removeprefix("SELECT ")
    except (postgast.PgQueryError, ValueError):
        return ""
