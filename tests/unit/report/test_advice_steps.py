"""The last steps of advice: how to prove a change, by a command that works for the findings at hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.cures import missing_index, pool_cure
from uncork.model.database.finding import Candidate
from uncork.model.results.advice import AdviceResult, AdviceSource, LookedAt
from uncork.report.advice.document import build_advice_document
from uncork.report.findings import proof_steps

INDEX = missing_index()
POOL = replace(
    pool_cure().tried[0].finding,
    templates=(),
    candidates=(Candidate("client", "Keep connections.", habit="connects", per_hour=3600.0),),
)
WATCHED = AdviceSource(kind="database", run="database-1", server="ada@db.example:5432/shop", seconds=60.0)


def proofs(*findings):
    result = AdviceResult(
        sources=(WATCHED,),
        answer="",
        reasons=(),
        findings=findings,
        missing=(),
        looked_at=LookedAt(60, 1, 1, 1, 1, 1),
        sessions=1.0,
        reproduce="uncork advise",
        uncork_version="1",
    )
    commands = [step.command for step in build_advice_document(result).steps if step.command]
    return [one.split("'")[0] + one.split("'")[-1] for one in commands if one.startswith("uncork")]


@pytest.mark.parametrize(
    ("findings", "commands"),
    [
        ([INDEX], ["uncork cure database-1 ", "uncork advise database-1  --experiment 1 > question.toml"]),
        ([POOL], ["uncork cure database-1 "]),
        (
            [POOL, INDEX],
            ["uncork cure database-1 ", "uncork advise database-1  --experiment 2 > question.toml"],
        ),
        ([replace(POOL, candidates=())], []),
    ],
    ids=["an index", "a pool", "a pool before an index", "nothing to try"],
)
def test_only_commands_that_can_prove_a_change_are_named(findings, commands):
    assert proofs(*findings) == commands


def test_the_proof_reads_the_logs_that_the_advice_read():
    log = AdviceSource("log-1", "log", "a b.log", 60.0, ("/var/log/a b.log",))
    many = replace(log, files=tuple(f"/var/log/pg/{number}.log" for number in range(9)))
    for source, options in ((log, " --logs '/var/log/a b.log'"), (many, " --logs /var/log/pg")):
        (step,) = proof_steps([INDEX], "database-1", WATCHED.server, source.files)
        assert step.command.startswith("uncork cure database-1 ") and step.command.endswith(options)
