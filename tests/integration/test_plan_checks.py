"""`uncork plan` asks the server's own program about settings, and an existing server what a run would ask."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from uncork.engines.postgres import refuse_version
from uncork.errors import ConnectError, SetupError, SpecError, UsageError
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, made_source
from uncork.workbench.experiment.checking import check_source

pytestmark = pytest.mark.postgres

FILE = """\
[experiment]
name = "settings"
question = "Which?"

[variants.none]
baseline = true

[variants.own]
{own}

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.get]
sql = "SELECT * FROM t"
{server}
"""


def check(choice, own="", server=""):
    text = FILE.format(own=own, server=server)
    return check_source(made_source(text, {}, Options(), "case.toml"), choice, "case.toml")


def refused(choice, **parts):
    with pytest.raises(SpecError) as raised:
        check(choice, **parts)
    return str(raised.value).splitlines()


def test_values_of_settings_are_checked_without_a_server(embedded):
    choice = ServerChoice()
    wrong = '[server.settings]\nwork_mem = "4QB"\nwork_mm = "4MB"\nenable_seqscan = "maybe"\nfsync = false'
    assert refused(choice, server=wrong) == [
        'case.toml:17: server.settings.work_mem: invalid value for parameter "work_mem": "4QB". Valid units '
        'for this parameter are "B", "kB", "MB", "GB", and "TB"',
        'case.toml:18: server.settings.work_mm: unrecognized configuration parameter "work_mm"',
        'case.toml:19: server.settings.enable_seqscan: parameter "enable_seqscan" requires a Boolean value',
    ]
    assert refused(choice, own='settings = { log_directory = "x", shared_buffers = "1QB" }') == [
        'case.toml:9: variants.own.settings.shared_buffers: invalid value for parameter "shared_buffers": '
        '"1QB". Valid units for this parameter are "B", "kB", "MB", "GB", and "TB"',
        "case.toml:9: variants.own.settings.log_directory: cannot differ between variants; move it to "
        "[server.settings]",
    ]
    assert check(choice, own='settings = { shared_buffers = "1GB", work_mem = "1MB" }') == ()
    assert check(choice, own='settings = { jit = false, work_mem = "1MB", "auto_explain.x" = 1 }') == ()


def test_an_existing_server_is_asked_what_a_run_would_ask_and_nothing_changes_there(embedded):
    choice = ServerChoice(dsn=embedded.conninfo())
    assert check(choice, own='settings = { work_mem = "1MB" }') == ()
    (warning,) = check(choice, own='extensions = ["no_such"]')
    assert warning == "variant own will be skipped: the extension no_such is not installed on the server"
    first, second = refused(choice, own='settings = { work_mem = "4QB", shared_buffers = "1GB" }')
    assert first.startswith(
        'case.toml:9: variants.own.settings.work_mem: invalid value for parameter "work_mem"'
    )
    assert second.endswith("without --dsn, uncork starts a server of its own for such a variant")
    with pytest.raises(UsageError, match=r"\[server.settings\] cannot be set on an existing server"):
        check(choice, server="[server.settings]\njit = false")
    with pytest.raises(ConnectError, match="cannot connect to the server"):
        check(ServerChoice(dsn="host=127.0.0.1 port=1 dbname=x"))
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        with pytest.raises(SetupError, match='role "reader" may not create databases'):
            check(ServerChoice(dsn=make_conninfo(embedded.conninfo(), user="reader")))
        connection.execute("DROP ROLE reader")
        rows = connection.execute("SELECT 1 FROM pg_database WHERE datname LIKE 'uncork%'").fetchall()
        assert rows == []


def test_an_old_server_is_refused_by_plan_and_run_alike():
    refuse_version(130_000)
    with pytest.raises(SetupError, match="the server runs PostgreSQL 12, and uncork measures on 13 or newer"):
        refuse_version(120_017)
