"""The time of sessions by place, in parts of a watch whose samples are uneven."""

import pyarrow as pa
import pytest

from uncork.analysis.database.evidence import pieces_of


def test_a_share_is_of_the_time_however_uneven_the_samples_are():
    """A machine under load samples rarely for a while: the parts with these samples are longer."""
    weights = [1.0] * 60 + [4.0] * 40
    templates = [1] * 60 + [2] * 40
    rows = {
        "template": templates,
        "state": ["active"] * 100,
        "wait_class": [""] * 100,
        "wait_event": [""] * 100,
        "application": ["shop"] * 100,
        "user": ["app"] * 100,
        "sample": list(range(100)),
    }
    pieces = pieces_of(pa.table(rows), weights)
    sessions = {piece.template: piece.sessions for piece in pieces}
    for template in (1, 2):
        share = sum(w for w, mine in zip(weights, templates, strict=True) if mine == template) / sum(weights)
        assert sessions[template] == pytest.approx(share)
    assert all(len(piece.batches) == 20 for piece in pieces)
