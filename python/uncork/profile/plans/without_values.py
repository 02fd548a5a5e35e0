"""Remove the values of the data from plans, statements and messages, for runs that keep none. Pure.

A value becomes `?`, as in templates. Names stay, and so do estimates and counts.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_HIDDEN: Final = "?"
_NAMES: Final = frozenset(
    {
        *("Node Type", "Parent Relationship", "Subplan Name", "Strategy", "Partial Mode", "Join Type"),
        *("Scan Direction", "Operation", "Command", "Custom Plan Provider", "Relation Name", "Schema"),
        *("Alias", "Index Name", "CTE Name", "Tuplestore Name", "Function Name", "Table Function Name"),
        *("Conflict Resolution", "Conflict Arbiter Indexes", "Relations", "Cache Mode", "Storage"),
    }
)
"""What EXPLAIN (FORMAT JSON) prints without values: names, and words from a list. All other texts can contain
values."""
_COUNTS: Final = ("Workers Planned", "Subplans Removed", "Functions", "Options")
"""Details in EXPLAIN's text whose numbers are counts."""
_LITERAL: Final = r"(?:\b[EeBbXxNn]|\b[Uu]&)?'(?:[^']|'')*(?:'|\Z)"
_QUOTED_NAME: Final = r'"(?:[^"]|"")*"'
_NAMED: Final = re.compile(_QUOTED_NAME)
_LITERALS: Final = re.compile(rf"(?P<kept>{_QUOTED_NAME})|{_LITERAL}")
_EXPRESSION: Final = re.compile(
    rf"""(?P<kept>{_QUOTED_NAME}
    | ::\w+(?:[ ]varying)?\(\d+(?:,-?\d+)?\)  # a type with its modifier
    | \b(?:SubPlan|InitPlan|Worker)[ ]\d+
    | \$\d+ | [^\W\d][\w$]*(?!['\w]) )       # a parameter, a word
    | {_LITERAL}
    | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?""",
    re.VERBOSE,
)
_PARAMETER: Final = re.compile(r"\$\d")
_TEXT: Final = re.compile(r"'|\$\$|\$\w+\$")
_COMMENT: Final = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_NODE: Final = re.compile(r"\(cost=[\d.]+\.\.[\d.]+ rows=\d+ width=\d+\)$")
_HEADING: Final = re.compile(r"^ *(?:InitPlan|SubPlan|CTE) [^:]+$")
_DETAIL: Final = re.compile(r"^( *[A-Z][\w -]*: +)(.*)$")
_REPORTED: Final = re.compile(r"\".*\"|'.*'|\b\d[\w.:+-]*", re.DOTALL)


def plan_without_values(plan: str) -> str:
    """Return a plan in EXPLAIN's text or JSON, from PostgreSQL 13 to 18, without the values in it."""
    if plan.lstrip().startswith(("[", "{")):
        return json.dumps(_without(json.loads(plan)), indent=2, ensure_ascii=False)
    # Literals first, because they can contain line breaks.
    return "\n".join(map(_line, _LITERALS.sub(_kept, plan).split("\n")))


def statement_without_values(statement: str) -> str | None:
    """Return a statement as pg_stat_statements has it, without comments; None if it contains literals.

    The server replaces literals by parameters, but a comment can name the request, and an entry that was
    removed while its statement ran keeps its literals.
    """
    bare = _COMMENT.sub("", statement).strip()
    if _TEXT.search(_NAMED.sub("", bare)) is not None:
        return None
    # Beside parameters, a number is a position (ORDER BY 1) or a type's modifier.
    return bare if _PARAMETER.search(bare) or _expression(bare) == bare else None


def message_without_values(message: str) -> str:
    """Return a message of the server without what it quotes, and without numbers."""
    return _REPORTED.sub(_HIDDEN, message)


def _without(value: Any, name: str = "") -> Any:
    """Return a part of a plan in JSON; `name` is its key, also that of a list's elements."""
    if isinstance(value, dict):
        return {key: _without(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, name) for each in value]
    return _expression(value) if isinstance(value, str) and name not in _NAMES else value


def _expression(text: str) -> str:
    return _EXPRESSION.sub(_kept, text)


def _line(line: str) -> str:
    """Return a line of EXPLAIN's text, whose literals are replaced, without numbers that are values."""
    if _NODE.search(line) or _HEADING.match(line):
        return line
    detail = _DETAIL.match(line)
    if detail is None:
        return _expression(line)
    begin, rest = detail.groups()
    return line if begin.strip().startswith(_COUNTS) else begin + _expression(rest)


def _kept(found: re.Match[str]) -> str:
    return found["kept"] or _HIDDEN
