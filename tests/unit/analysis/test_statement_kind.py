"""The kind of a template: by its first words, whatever brackets, names and lists it has."""

from __future__ import annotations

from fakes.goldens import compare_answers
from uncork.analysis.log.contributions import kind_of


def test_a_template_has_the_kind_of_its_statement():
    compare_answers("log/statement_kinds", kind_of)
