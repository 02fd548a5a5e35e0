"""The JSON of reports has the values and the lay-out that json.dumps writes, for any values."""

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from uncork.report.write.json_document import json_bytes, json_text


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    parts: Any
    inner: tuple["Result", ...] = ()


_WORDS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(_WORDS | st.integers(), inner),
)


@given(_WORDS, _VALUES, _VALUES)
def test_it_is_what_json_dumps_writes(name: str, one: Any, other: Any) -> None:
    result = Result(name, one, (Result("inner", other), Result("", [])))
    text, expected = json_text(result), json.dumps(asdict(result), ensure_ascii=False, indent=1) + "\n"
    assert json.dumps(json.loads(text), ensure_ascii=False, indent=1) + "\n" == expected
    assert _layout(text) == _layout(expected), "only floats may be written in another way: 1e-9 for 1e-09"


def _layout(text: str) -> list[str]:
    """Return the lines, each up to its number."""
    return [re.sub(r"-?\d[-+.\de]*(?=,?$)", "0", line) for line in text.split("\n")]


def test_what_json_cannot_represent_is_null() -> None:
    text = json_text(Result("a", [math.inf, -math.inf, math.nan, {"b": math.nan}]))
    assert json.loads(text)["parts"] == [None, None, None, {"b": None}]


def test_a_large_result_is_written_completely() -> None:
    rows = tuple(Result(f"ключ {number}", number) for number in range(20_000))
    assert len(json.loads(json_bytes(Result("rows", None, rows)))["inner"]) == 20_000
