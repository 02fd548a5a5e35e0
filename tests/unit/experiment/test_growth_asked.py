import pytest

from fakes.goldens import compare_answers
from uncork.errors import SpecError
from uncork.experiment.spec.schema import parse_spec

FILE = """\
[experiment]
name = "growing"
question = "How does it grow?"

[variants.one]
baseline = true

[variants.other]

[factors]
rows = [10, 100]
kind = ["wide", "narrow"]
shift = [0, 1]

[setup]
sql = "SELECT :rows"

[workloads.read]
sql = "SELECT 1"
operations = 10

[growth]
"""


def parse(growth):
    return parse_spec(FILE + growth, file="case.toml", read=None, overrides={})


def test_a_size_to_extrapolate_to():
    spec = parse('factor = "rows"\nto = 180_000_000')
    assert (spec.growth.factor, spec.growth.to) == ("rows", 180_000_000)


def test_what_is_no_size():
    def answer(growth):
        with pytest.raises(SpecError) as raised:
            parse(growth)
        return str(raised.value)

    compare_answers("spec/growth", answer)
