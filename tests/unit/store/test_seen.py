"""What was seen of all components comes back as it was."""

import pytest

from uncork.errors import StoreError
from uncork.model.bottleneck import Component, DatabaseUse, LoadUse, MachineUse, Seen
from uncork.store.run_documents import Pressed, read_pressed, write_pressed

SEEN = Seen(
    LoadUse(8.0, 2e7, errors={"status 503": 2}, opened=3),
    MachineUse(2, 0.4, overflows=3, backlog=2),
    Component(0.1, 0.2),
    DatabaseUse({("Lock", "tuple"): 3.0}, 4.0, connections=5, templates={"select ?": 1.0}),
    Component(0.5, 0.1, 0.3, 0.9, 24, 24, (0.4, 0.1), 0.2),
    indirect=True,
)


def test_it_comes_back_as_it_was(tmp_path):
    assert read_pressed(tmp_path) == ()
    pressed = (
        Pressed(None, SEEN, ("the database is not in sight",)),
        Pressed(8.0, Seen(SEEN.load, SEEN.machine)),
    )
    write_pressed(tmp_path, pressed)
    assert read_pressed(tmp_path) == pressed


def test_what_is_damaged_is_named(tmp_path):
    (tmp_path / "seen.json").write_text('[{"level": 1}]')
    with pytest.raises(StoreError, match=r"seen\.json: damaged"):
        read_pressed(tmp_path)
