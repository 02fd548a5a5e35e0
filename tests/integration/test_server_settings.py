"""The settings that apply to a whole server, as the programs of PostgreSQL describe them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from uncork.engines.setting_check import binaries_here
from uncork.experiment.plan.server_settings import OF_A_SERVER

OTHER = re.compile(
    r"File Locations|Authentication|Connections and Authentication / (SSL|Connection)|Logging|Recovery"
    r"|Standby|Sending Servers / *$|Sending Servers|Primary Server|Error Handling|Platform Compatibility"
)
"""Groups of settings that decide nothing that an experiment measures, or that uncork sets itself."""


@pytest.mark.parametrize("binaries", [None, Path("/usr/lib/postgresql/15/bin")])
def test_no_setting_of_a_whole_server_is_missing(embedded, binaries):
    program = binaries_here(binaries) / "postgres"
    described = subprocess.run(
        [program, "--describe-config"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split("\t") for line in described.splitlines() if line.count("\t") > 2]
    whole = {name: group for name, context, group, *_ in rows if context in ("postmaster", "sighup")}
    assert len(whole) > 100
    assert {
        name for name, group in whole.items() if name not in OF_A_SERVER and not OTHER.search(group)
    } == set()
    others = {name for name, context, *_ in rows if context not in ("postmaster", "sighup")}
    assert others & OF_A_SERVER == set()
