"""A copy's server that ends because its disk is full: the cause is named, not only that it went away."""

import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.errors import ServerCrash, SetupError
from uncork.workbench.cure.curing import CopiedDatabase

GONE = ServerCrash("the copy's server went away")


@pytest.fixture
def copied(tmp_path):
    """Return a copy whose server has a folder and a log, and no process."""
    server = EmbeddedServer({})
    server._folder = tmp_path
    found = CopiedDatabase("dbname=x", None, None)
    found._server = server
    return found


def test_the_servers_log_tells_that_the_disk_is_full(copied, tmp_path):
    (tmp_path / "server.log").write_text("PANIC:  could not write to file: No space left on device\n")
    with pytest.raises(SetupError, match=r"the disk of the copy's server became full: .* are left in"):
        copied.check_disk(GONE)
    with pytest.raises(SetupError, match="set UNCORK_SERVERS"), copied:
        raise GONE
    assert not tmp_path.exists()


def test_other_ends_and_what_says_so_already_are_left_alone(copied, tmp_path):
    (tmp_path / "server.log").write_text("LOG:  database system is ready to accept connections\n")
    copied.check_disk(GONE)
    (tmp_path / "server.log").write_text("ERROR:  could not extend file: No space left on device\n")
    copied.check_disk(SetupError("the disk of the copy's server became full while rows were copied"))
