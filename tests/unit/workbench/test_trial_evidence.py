"""Ctrl-C while evidence is gathered ends the run, and is not taken for the end of one recording."""

import pytest

from fakes.ports import measured
from uncork.model.request import LoadRequest, Statement
from uncork.model.server import Target
from uncork.model.trial import Cell
from uncork.model.variant_evidence import Sampling
from uncork.workbench.experiment import evidence_collection as trial_evidence
from uncork.workbench.profile.stack_recording import Recorded


class Load:
    def run(self, request):
        return measured(1_000_000)


def request(**changes):
    connection = {"host": "/nowhere", "port": 1, "user": "u", "database": "d"}
    target = Target("d", connection, **changes)
    return LoadRequest(
        target, (Statement("s", "SELECT 1", ()),), ((),), False, 1, 1, "prepared", 0, 1, None, 10**9
    )


def test_an_interrupted_recording_interrupts_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_evidence, "record_stacks", lambda wanted: Recorded("interrupted", {}, {}, ""))
    with pytest.raises(KeyboardInterrupt):
        trial_evidence.LocalEvidence(tmp_path).gather(
            (Cell(()), "w", "v"), ("stacks",), request(), Load(), Sampling(1, 0)
        )
    assert not list(tmp_path.iterdir())


def test_an_engine_whose_processes_are_not_known_is_told_in_a_line(tmp_path):
    asked = request(engine="duckdb")
    lack = trial_evidence.LocalEvidence(tmp_path).gather(
        (Cell(()), "w", "v"), ("cpu",), asked, Load(), Sampling(1, 0)
    )
    assert lack == "uncork cannot sample the processes of duckdb yet"
