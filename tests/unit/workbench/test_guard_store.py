"""Guards on disk: read back as they were written."""

from dataclasses import replace

import pytest

from fakes.guards import everything
from uncork.errors import StoreError
from uncork.workbench.guard.store import read_guard, write_guard


def test_a_guard_is_read_as_it_was_written(tmp_path):
    write_guard(tmp_path, everything())
    assert read_guard(tmp_path) == everything()


def test_a_guard_of_another_version_is_refused(tmp_path):
    write_guard(tmp_path, replace(everything(), version=2))
    with pytest.raises(StoreError, match="format version 2, but this uncork reads version 1"):
        read_guard(tmp_path)
