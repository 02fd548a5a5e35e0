"""A large table that statements scan again and again, because no index has what they search for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.merging import Merged, merge
from uncork.advise.rules.indexes.problems import Problem, fractions_of, problems, read_sentences
from uncork.advise.rules.indexes.proposals import columns_text, index_candidates
from uncork.advise.rules.indexes.uses import large_tables
from uncork.advise.rules.indexes.variants import variants
from uncork.advise.rules.indexes.whole_reads import reads_whole, selective
from uncork.advise.rules.indexes.within import bill_of_scans, within_sentences
from uncork.advise.rules.plans.outdated import misled
from uncork.model.database.finding import Candidate, Finding
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count

_MOST_STATEMENTS: Final = 4
_PROOF: Final = "Compare the statements with and without the index in uncork run."


def _find(evidence: Evidence) -> Iterator[Finding]:
    found = [
        problem
        for problem in problems(evidence)
        if problem.obstacle is None and not misled(problem.statement, problem.use.table.name, evidence)
    ]
    for merged in merge([problem.want.wanted for problem in found]):
        yield _finding(merged, [found[place] for place in merged.members], evidence)
    yield from _unparsed(evidence)


def _finding(merged: Merged, mine: Sequence[Problem], evidence: Evidence) -> Finding:
    fractions = fractions_of(mine)
    within = {problem.statement.number for problem in mine if problem.within}
    first, table = mine[0], merged.index.table
    candidates = [
        *index_candidates(merged.index, evidence, merged.extension),
        *variants(merged, mine, evidence),
    ]
    return Finding(
        RULE.name,
        _headline(merged, first),
        objects=(table, *(key.column for key in merged.index.keys if key.column)),
        bill=bill_of_scans(fractions, within, evidence),
        templates=tuple(fractions),
        statement=first.within.outer.text if first.within else first.statement.text,
        evidence=tuple(_evidence(mine, evidence)),
        candidates=tuple(candidates),
        proof=_PROOF,
    )


def _headline(merged: Merged, first: Problem) -> str:
    table, keys = merged.index.table, columns_text(merged.index.keys)
    if merged.index.predicate and not first.want.wanted.equal:
        return f"Calls scan {table} for the few rows where {merged.index.predicate}"
    if first.read.how in ("filter", "repeated"):
        return f"Table {table} has no index on {keys}, so calls discard rows"
    joined = any(served.predicate.value == "column" for served in first.want.served)
    return f"Table {table} has no index on {keys}, so {'joins' if joined else 'calls'} scan it"


def _evidence(mine: Sequence[Problem], evidence: Evidence) -> Iterator[str]:
    first = mine[0]
    yield from read_sentences(first, evidence)
    if first.within is not None:
        yield from within_sentences(first.within, first.scans, first.use.table)
    yield f"An index would fetch about {count_words(max(1, round(first.want.fetched)), 'row')} instead."
    others = {problem.statement.number: problem.statement.text for problem in mine[1:]}
    others.pop(first.statement.number, None)
    for text in list(others.values())[:_MOST_STATEMENTS]:
        yield f"The same index serves: {short_template(text)}"


def _unparsed(evidence: Evidence) -> Iterator[Finding]:
    """Yield the large scans of statements that the grammar rejects, from their text and their blocks."""
    large = large_tables(evidence).values()
    for statement in evidence.costliest() if large else ():
        if statement.number < 0 or statement.shape is not None:
            continue
        found = [
            table
            for table in large
            if reads_whole(statement, table, evidence) and selective(statement, table, evidence)
        ]
        if not found:
            continue
        table = max(found, key=lambda table: table.seq_rows)
        yield Finding(
            RULE.name,
            _unparsed_headline(statement, table.name),
            objects=(table.name,),
            bill=evidence.bill_of((statement.number,)),
            templates=(statement.number,),
            statement=statement.text,
            evidence=(f"Table {table.name} has {format_count(round(evidence.rows(table.name)))} rows.",),
            candidates=(
                Candidate(
                    "index",
                    f"Create an index on the columns of {table.name} that the WHERE clause compares, and "
                    "check with EXPLAIN (ANALYZE, BUFFERS) that it is used.",
                ),
            ),
            proof=_PROOF,
        )


def _unparsed_headline(statement: Statement, table: str) -> str:
    found = statement.a_call(statement.rows)
    if found is None:
        each = ""
    else:
        each = " for a row each" if found < 1.5 else f" for {format_count(round(found))} rows each"
    if not statement.calls:
        return f"Each call reads the whole table {table}{each}"
    verb = "reads" if statement.calls == 1 else "read"
    return f"{count_words(statement.calls, 'call')} {verb} the whole table {table}{each}"


RULE: Final = Rule("missing-index", _find)
