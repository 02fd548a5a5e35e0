"""Find the SQL statements in the body of a function, and turn its variables into parameters. Pure.

PostgreSQL's scanner splits the body into tokens, so that keywords in strings and comments do not count. The
keywords of PL/pgSQL show where statements begin and end. Statements that EXECUTE builds are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from uncork.model.database.statement import StatementShape
from uncork.profile.shapes.nodes import column_fields, descendants, messages, parsed, rewritten, tokens_of
from uncork.profile.shapes.scopes import table_name
from uncork.profile.statement_shape import statement_shape

_SQL: Final = frozenset({"select", "with", "insert", "update", "delete", "merge", "values"})
_TARGETS: Final = frozenset({"insert", "merge"})
"""Words after which INTO names the table."""
_ALONE: Final = frozenset({"begin", "atomic", "declare", "else", "exception", "loop"})
"""Words that a statement may follow at once."""
_CONDITIONS: Final = {"if": "then", "elsif": "then", "elseif": "then", "when": "then", "while": "loop"}
"""Words before a condition, with the word that ends it."""
_OPENING: Final = frozenset({"(", "["})
_CLOSING: Final = frozenset({")", "]"})


def body_statements(source: str) -> tuple[str, ...]:
    """Return the SQL statements of a function's body, in its order, without the INTO of PL/pgSQL.

    PERFORM becomes SELECT. A condition or an expression with a subquery becomes a SELECT of it. There is no
    statement if the scanner rejects the body.
    """
    return tuple(_Body(source).statements())


def returned_after(source: str) -> tuple[str, ...]:
    """Return the statements of a PL/pgSQL body that is nothing but a sequence of them before RETURN.

    Such a body declares no variable and has no other block; whether each text is a statement of SQL remains
    to be seen. For any other body there is none.
    """
    return tuple(_Body(source).sequence())


class _Body:
    """A body as tokens. `words` are they in lower case, `place` is the next one."""

    def __init__(self, source: str) -> None:
        self.tokens = tokens_of(source)
        self.words = [token.text.lower() for token in self.tokens]
        self.place = 0

    def statements(self) -> Iterator[str]:
        while self.place < len(self.words):
            yield from self._next()

    def sequence(self) -> list[str]:
        """Return the statements between BEGIN and ``RETURN new; END``, if these are all that there is."""
        words = self.words[:-1] if self.words[-1:] == [";"] else self.words
        ended = words[-1:] == ["end"] and words[-4:-3] == ["return"] and words[-2:-1] == [";"]
        if words[:1] != ["begin"] or not ended or words[-3] not in ("new", "old", "null"):
            return []
        self.place, last = 1, len(words) - 4
        found = []
        while self.place < last:
            first, end = self._until({";"})
            if end >= last:
                return []
            found.append(self._text(list(range(first, end))))
        return found

    def _next(self) -> Iterator[str]:
        word = self._at(self.place)
        if word == "<<":
            while self._at(self.place) not in (">>", ""):
                self.place += 1
            self.place += 1
        elif word == "#":  # #variable_conflict use_column
            self.place += 3
        elif word in _ALONE or word == ";":
            self.place += 1
        elif word in _CONDITIONS:
            self.place += 1
            yield from self._expression(self._until({_CONDITIONS[word]}))
        elif word == "case":
            self.place += 1
            yield from self._expression(self._until({"when"}, past=False))
        elif word in ("for", "foreach"):
            yield from self._loop()
        elif word in _SQL or word == "(":
            yield from self._query(self._until({";"}))
        elif word == "perform":
            self.place += 1
            span = self._until({";"})
            subquery = self._at(span[0]) in ("with", "(")
            yield from self._query(span) if subquery else self._expression(span, always=True)
        elif word == "return":
            yield from self._returned()
        else:
            yield from self._other()

    def _returned(self) -> Iterator[str]:
        """Yield the query of RETURN QUERY, or of the expression of RETURN."""
        self.place += 1
        query = self._at(self.place) == "query"
        self.place += query or self._at(self.place) == "next"
        span = self._until({";"})
        yield from self._query(span) if query else self._expression(span)

    def _loop(self) -> Iterator[str]:
        """Yield the query of FOR ... IN query LOOP; its body follows as statements of their own."""
        self.place += 1
        self._until({"in", "array", "loop"})
        first, end = self._until({"loop"})
        if self._at(first) in _SQL or self._at(first) == "(":
            yield from self._query((first, end))
        else:
            yield from self._expression((first, end), bounds=True)

    def _other(self) -> Iterator[str]:
        """Yield the queries of a declaration, an assignment, or OPEN; of other statements, none."""
        first, end = self._until({";"})
        words = self.words[first:end]
        if words[0] in ("execute", "end", "raise", "call", "fetch", "get", "create", "copy"):
            return
        declared = words[0] == "open" or "cursor" in words[:4]
        if declared and "for" in words:
            yield from self._query((first + words.index("for") + 1, end))
            return
        for sign in (":=", "=", "default"):
            if sign in words:
                yield from self._expression((first + words.index(sign) + 1, end))
                return

    def _at(self, place: int) -> str:
        return self.words[place] if place < len(self.words) else ""

    def _until(self, ends: Collection[str], *, past: bool = True) -> tuple[int, int]:
        """Return the tokens up to a word outside of parentheses and CASE, and continue after that word."""
        first, depth = self.place, 0
        while self.place < len(self.words):
            word = self.words[self.place]
            if depth == 0 and word in ends:
                break
            if word in _OPENING or (word == "case" and ";" not in ends):
                depth += 1
            elif word in _CLOSING or (word == "end" and ";" not in ends):
                depth = max(0, depth - 1)
            self.place += 1
        span = first, self.place
        self.place += past
        return span

    def _expression(
        self, span: tuple[int, int], *, always: bool = False, bounds: bool = False
    ) -> Iterator[str]:
        """Yield a SELECT of an expression, if it has a subquery; the bounds of a loop are two."""
        first, end = span
        if not always and "select" not in self.words[first:end]:
            return
        places = [place for place in range(first, end) if bounds and self.words[place] == ".."]
        if places:
            yield from self._expression((first, places[0]))
            yield from self._expression((places[0] + 1, end))
        elif first < end:
            yield f"SELECT {self._text(self._kept(first, end))}"

    def _query(self, span: tuple[int, int]) -> Iterator[str]:
        first, end = span
        if self._at(first) in _SQL or self._at(first) == "(":
            yield self._text(self._kept(first, end))

    def _kept(self, first: int, end: int) -> list[int]:
        """Return the tokens of a statement without INTO and the variables that it fills."""
        kept: list[int] = []
        place, depth = first, 0
        while place < end:
            word = self.words[place]
            depth += (word in _OPENING) - (word in _CLOSING)
            if word == "into" and depth == 0 and self._at(place - 1) not in _TARGETS:
                place = self._after_variables(place + 1, end)
            else:
                kept.append(place)
                place += 1
        return kept

    def _after_variables(self, place: int, end: int) -> int:
        """Return the token after the list of variables that INTO fills."""
        place += self._at(place) == "strict"
        while place < end:
            place += 1  # the name
            while self._at(place) in (".", "[") and place < end:
                index = self.words[place] == "["
                place += 2
                while index and place < end and self.words[place - 1] != "]":
                    place += 1
            if self._at(place) != ",":
                break
            place += 1
        return place

    def _text(self, kept: list[int]) -> str:
        """Return tokens as text, with the white space between neighbours but without comments."""
        pieces: list[str] = []
        before: int | None = None
        for place in kept:
            adjoining = before == place - 1 and self.tokens[before].end == self.tokens[place].start
            pieces += ["" if before is None or adjoining else " ", self.tokens[place].text]
            before = place
        return "".join(pieces)


# ---- variables of a function as parameters of its statements ----


Tables = Mapping[str, Collection[str]]
_SYSTEM: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
_NUMBER: Final = re.compile(r"\$(\d+)")


def function_statements(source: str, tables: Tables) -> tuple[tuple[str, StatementShape], ...]:
    """Return the statements of a function's body that the grammar accepts, each with its shape.

    `tables` are the names of columns by table, as for `statement_shape`.
    """
    found = ((sql, with_parameters(sql, tables)) for sql in body_statements(source))
    shapes = ((sql, statement_shape(text, tables)) for sql, text in found if text is not None)
    return tuple((sql, shape) for sql, shape in shapes if shape is not None)


def with_parameters(sql: str, tables: Tables) -> str | None:
    """Return a statement of a function with ``$1`` for each variable; None if the grammar rejects it.

    PostgreSQL rejects a name that may be a column or a variable, so a name that no table of the statement has
    is a variable. So is a field of a record, such as ``NEW.id``, unless the statement names its table.
    """
    tree = parsed(sql)
    if tree is None:
        return None
    names = _Names(list(descendants(tree)), tables)
    tokens = tokens_of(sql)
    places = {token.start: place for place, token in enumerate(tokens)}
    first = 1 + max([0, *(int(number) for number in _NUMBER.findall(sql))])
    numbers: dict[tuple[str, ...], int] = {}
    changes, end = list[tuple[int, int, str]](), 0
    for reference in sorted(messages(tree, "ColumnRef"), key=lambda each: each.location):
        fields = column_fields(reference)
        last = places.get(reference.location, len(tokens)) + 2 * (len(fields) - 1)
        if reference.location < end or last >= len(tokens) or not names.is_variable(fields):
            continue
        number = numbers.setdefault(fields, first + len(numbers))
        end = tokens[last].end
        changes.append((reference.location, end, f"${number}"))
    return rewritten(sql, changes)


class _Names:
    """The names in a statement: `tables` qualify a column (``t.a``), `columns` are unqualified."""

    def __init__(self, found: Collection[Any], catalogue: Tables) -> None:
        self.tables: set[str] = set()
        self.columns = set(_SYSTEM)
        self.known = True
        common = {message.ctename for message in found if message.DESCRIPTOR.name == "CommonTableExpr"}
        for message in found:
            match message.DESCRIPTOR.name:
                case "RangeVar":
                    self.tables.add(message.relname)
                    name = table_name(message.schemaname, message.relname, catalogue)
                    self.columns.update(catalogue.get(name, ()))
                    self.known &= message.relname in common or bool(catalogue.get(name))
                case "Alias":
                    self.tables.add(message.aliasname)
                    self.columns.update(colname.string.sval for colname in message.colnames)
                case "ResTarget":
                    self.columns.add(message.name)
                case "CommonTableExpr":
                    self.columns.update(aliascolname.string.sval for aliascolname in message.aliascolnames)
        self.tables.add("excluded")

    def is_variable(self, fields: tuple[str, ...]) -> bool:
        """Return whether the parts of a name are a variable's; a name of an unknown table's may be a column.

        A statement that uses a table whose columns are unknown has no plain variables.
        """
        if len(fields) > 1:
            return not self.tables.intersection(fields[:2][: len(fields) - 1])
        return self.known and fields[0] != "*" and fields[0] not in self.columns | self.tables
