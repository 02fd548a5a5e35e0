"""An experiment that is too large is refused before it is expanded."""

from time import process_time

import pytest

from uncork.errors import SpecError
from uncork.experiment.spec.raw_file import MOST_VARIANTS
from uncork.requests.source import Options, made_source

FILE = """\
[experiment]
name = "large"
question = "How large?"

[variants.none]
baseline = true

{variants}
[factors]
{factors}

[setup]
sql = "CREATE TABLE t AS SELECT generate_series(1, 10)"

[workloads.get]
sql = "SELECT * FROM t"
"""


def read(variants="[variants.other]\n", factors="", levels=None):
    text = FILE.format(variants=variants, factors=factors)
    return made_source(text, {}, Options(levels=levels or {}), "large.toml")


def refused(**parts):
    began = process_time()
    with pytest.raises(SpecError) as raised:
        read(**parts)
    assert process_time() - began < 0.8
    return str(raised.value)


def test_thousands_of_variants_are_refused_at_once_with_their_number():
    found = refused(variants="".join(f"[variants.v{number}]\nvalues = {{}}\n" for number in range(20_000)))
    assert found == (
        "large.toml:5: variants: found 20 001 variants; expected at most 200, because every round measures "
        "each of them; remove variants, or divide them among several files"
    )


def test_variants_without_headers_of_their_own_are_counted_too():
    lines = "".join(f"v{number} = {{}}\n" for number in range(MOST_VARIANTS))
    assert "found 201 variants" in refused(variants=f"[variants]\n{lines}")
    assert (
        len(read(variants="".join(f"[variants.v{n}]\n" for n in range(MOST_VARIANTS - 1))).spec.variants)
        == 200
    )


@pytest.mark.parametrize(
    ("factors", "made"),
    [
        (f"rows = {list(range(20_000))}", "20 000 levels of rows"),
        (
            f"a = {list(range(200))}\nb = {list(range(10))}\nc = {list(range(10))}",
            "200 × 10 × 10 levels of a, b, c",
        ),
    ],
)
def test_thousands_of_combinations_are_refused_at_once_unless_few_are_chosen(factors, made):
    found = refused(factors=factors)
    assert found.startswith(
        f"large.toml:10: factors: {made} and 1 comparison in each of their combinations make 20 000"
    )
    assert "expected at most 2 000; remove levels, variants or workloads (--set " in found
    name = factors[0] if factors[1] == " " else "rows"
    few = read(factors=factors, levels={name: ["7"]}).spec
    assert list(few.levels(name)) == ["7"]
