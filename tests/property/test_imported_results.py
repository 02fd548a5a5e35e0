"""Whatever stands in a file of another tool: it is read as finite numbers, or refused in one line."""

import copy
import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from uncork.errors import UsageError
from uncork.profile.imported.reading import read_results

RESULTS = Path(__file__).parents[1] / "fixtures" / "results"
DOCUMENTS = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
TEXTS = [path.read_text() for path in sorted(RESULTS.glob("*.*")) if path.suffix in (".txt", ".log", ".csv")]

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1e-320, 1e308, 10**400, math.nan, math.inf, -math.inf, 2**63]),
    st.sampled_from(
        ["", "NaN", "1", "soon", "9999-12-31T23:59:59+00:00", "0001-01-01", "\x00", "us", "\ud800"]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.floats(), max_size=2),
    st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=2), max_leaves=4),
)


def places(value, path=()):
    """Yield the paths to all values within a document."""
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from places(child, (*path, key))


@st.composite
def spoiled(draw, documents):
    """Return a document in which a few values are replaced or missing."""
    data = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(data))))
        if not path:
            return draw(ODD)
        place = data
        for key in path[:-1]:
            place = place[key]
        if draw(st.booleans()):
            place[path[-1]] = draw(ODD)
        else:
            del place[path[-1]]
    return data


def check(read):
    try:
        found = read()
    except UsageError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("x ")
        return
    for run in found:
        assert run.figures
        for figure in run.figures:
            assert math.isfinite(figure.value)
            f"{figure.subject} {figure.name} {run.question}".encode()
            assert figure.within is None or math.isfinite(figure.within)
            assert figure.scale != "share" or 0 <= figure.count <= figure.of


@given(spoiled(DOCUMENTS))
def test_spoiled_json(data):
    check(lambda: read_results(json.dumps(data), "x"))


@given(spoiled(DOCUMENTS), st.integers(0, 200))
def test_truncated_json(data, left):
    text = json.dumps(data)
    check(lambda: read_results(text[: len(text) - left], "x"))


@given(st.sampled_from(TEXTS), st.data())
def test_spoiled_text(text, data):
    lines = text.splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    words = lines[place].split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
        st.sampled_from(["", "-1", "nan", "9" * 400, "x"])
    )
    lines[place] = " ".join(words)
    check(lambda: read_results("\n".join(lines), "x"))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["2026-05-01", "1777708800", "", "9999-12-31", "0001-01-01T00:00+14:00"]),
            st.sampled_from(["p99", "", "throughput"]),
            st.sampled_from(["1", "-1", "0", "nan", "1e308", "1e-320", ""]),
            st.sampled_from(["ms", "/s", "%", "TiB", "", "x"]),
        ),
        max_size=6,
    )
)
def test_odd_tables(rows):
    text = "\n".join(["time,metric,value,unit", *map(",".join, rows)])
    check(lambda: read_results(text, "x"))


@given(st.text(max_size=200))
def test_any_text(text):
    check(lambda: read_results(text, "x"))


def test_json_that_is_nested_too_deeply():
    check(lambda: read_results("[" * 100_000, "x"))
