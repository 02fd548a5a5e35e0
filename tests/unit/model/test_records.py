from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mypy import api

from uncork.model.records import build_from

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Source:
    executions: int
    sum_ns: int
    text: str

    @property
    def mean_ns(self) -> float:
        return self.sum_ns / self.executions


@dataclass(frozen=True, slots=True)
class Target:
    text: str
    mean_ns: float
    share: float
    names: tuple[str, ...] = field(default_factory=tuple)


SOURCE = Source(executions=2, sum_ns=10, text="select")


def test_a_record_takes_fields_and_properties_of_its_source_and_what_is_given():
    assert build_from(Target, SOURCE, share=0.5) == Target("select", 5.0, 0.5)


def test_what_is_given_counts_instead_of_what_the_source_has():
    found = build_from(Target, SOURCE, share=0.5, text="insert", names=("a",))
    assert found == Target("insert", 5.0, 0.5, ("a",))


def test_a_field_that_nobody_gives_is_an_error():
    with pytest.raises(TypeError, match="share"):
        build_from(Target, SOURCE)


MODULE = """
from dataclasses import dataclass
from uncork.model.records import build_from

@dataclass
class Source:
    same: int
    other_type: int
    optional: int | None

@dataclass
class Target:
    same: int
    other_type: str
    optional: int
    own: float
    default: int = 0

def build(source: Source) -> None:
    reveal_type(build_from(Target, source, other_type="", optional=1, own=1.0))
    build_from(Target, source, optional=1, own=1.0)
    build_from(Target, source, other_type="", own=1.0)
    build_from(Target, source, other_type="", optional=1)
    build_from(Target, source, other_type=2, optional=1, own=1.0)
    build_from(Target, source, other_type="", optional=1, own=1.0, unknown=1)
"""
REPORTED = [
    'Revealed type is "module.Target"',
    'Missing named argument "other_type"',
    'Missing named argument "optional"',
    'Missing named argument "own"',
    'Argument "other_type" to "build_from" has incompatible type "int"; expected "str"',
    'Unexpected keyword argument "unknown"',
]


def test_mypy_checks_what_is_given_and_what_is_taken(tmp_path, monkeypatch):
    package = tmp_path / "uncork" / "model"  # without the rest of uncork, which takes mypy half a minute
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "records.py").write_text((ROOT / "python/uncork/model/records.py").read_text())
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nplugins = {ROOT / 'tools/mypy_records.py'}\n")
    monkeypatch.chdir(tmp_path)
    found = api.run(["--cache-dir=cache", "module.py"])[0]
    lines = [
        line for line in found.splitlines() if line.startswith("module.py:") and "defined in" not in line
    ]
    assert len(lines) == len(REPORTED), found
    assert all(expected in line for expected, line in zip(REPORTED, lines, strict=True)), found
