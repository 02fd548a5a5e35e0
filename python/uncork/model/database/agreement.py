"""Whether a copy of a database plans a statement as the source does."""

from __future__ import annotations

from uncork.model.records import Record


class PlanAgreement(Record):
    """The plans of one statement on the source and on a copy.

    `template` is the statement's number in the run. With `same`, a measurement on the copy tells about the
    source. `difference` describes the first difference in a sentence; with `same`, it is empty or a small
    difference, such as another number of parallel workers. The plans are EXPLAIN's text, with the values of
    parameters, or empty if the server did not plan the statement.
    """

    template: int
    same: bool
    difference: str
    source_plan: str
    copy_plan: str
