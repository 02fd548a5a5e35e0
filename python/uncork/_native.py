"""The only module that imports the compiled Rust core. Importing it checks that the core fits this package.

The import raises `CoreMismatch` if the core is missing, was built from another version of the package, or
uses another version of the load plan. The core raises the exceptions of `uncork.errors`.
"""

from __future__ import annotations

import json
from typing import Any

from uncork import __version__
from uncork.errors import CoreMismatch

try:
    from uncork import _core
except ImportError as problem:
    message = f"cannot load the compiled core of uncork ({problem}); run `make build`"
    raise CoreMismatch(message) from problem

PLAN_VERSION = 11
"""Version of the load plan's format that this package writes."""

Grammar = _core.Grammar
Lease = _core.Lease
LogFollower = _core.LogFollower
LogPortions = _core.LogPortions
LogProfile = _core.LogProfile
Sampler = _core.Sampler
add_histograms = _core.add_histograms
begin_of_log = _core.begin_of_log
begin_of_object = _core.begin_of_object
build_info = _core.build_info
check_load = _core.check_load
cut_log = _core.cut_log
draw_stacks = _core.draw_stacks
gather_logs = _core.gather_logs
hdr_log = _core.hdr_log
install_postgres = _core.install_postgres
is_complete_portion = _core.is_complete_portion
merge_histograms = _core.merge_histograms
planned_operations = _core.planned_operations
read_logs = _core.read_logs
read_stacks = _core.read_stacks
run_block = _core.run_block
run_load = _core.run_load
start_sampler = _core.start_sampler
sum_stacks = _core.sum_stacks
summarize = _core.summarize
write_stacks = _core.write_stacks


def _check(built: dict[str, Any], version: str) -> None:
    """Raise `CoreMismatch` unless the core was built from `version` and uses our version of the load plan."""
    for what, found, expected in (
        ("built from version", built.get("version"), version),
        ("made for load plans of version", built.get("plan_version"), PLAN_VERSION),
    ):
        if found != expected:
            message = (
                f"the compiled core of uncork was {what} {found}, but this package needs {expected}; "
                "run `make build`"
            )
            raise CoreMismatch(message)


_check(json.loads(build_info()), __version__)
