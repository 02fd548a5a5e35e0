"""Guards on disk: read back as they were written, also by earlier versions."""

import json

from fakes.guards import everything
from uncork.workbench.guard.store import GUARD_FILE, read_guard, write_guard


def test_a_guard_is_read_as_it_was_written(tmp_path):
    write_guard(tmp_path, everything())
    assert read_guard(tmp_path) == everything()


def test_warnings_are_read_from_guards_that_called_them_doubts(tmp_path):
    write_guard(tmp_path, everything())
    data = json.loads((tmp_path / GUARD_FILE).read_text())
    data["version"] = 1
    for check in data["checks"]:
        check["doubts"] = check.pop("warnings")
    (tmp_path / GUARD_FILE).write_text(json.dumps(data))
    found = read_guard(tmp_path)
    assert found is not None and found.checks == everything().checks
