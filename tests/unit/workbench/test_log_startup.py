"""What reading a log loads: loading modules was half of the time of a short log."""

import subprocess
import sys

HEAVY = (
    "asyncio",
    "postgast",
    "google.protobuf",
    "uncork.model.results.database",
    "uncork.model.system",
)


def test_a_log_without_plans_loads_nothing_for_servers_objects_and_parse_trees(tmp_path):
    log = tmp_path / "postgresql.log"
    log.write_text(
        "".join(
            f"2026-03-01 10:00:0{second}.000 UTC [7] LOG:  duration: 250.000 ms  statement: SELECT {second}\n"
            for second in range(9)
        )
    )
    code = (
        "import sys; from pathlib import Path; from uncork.profile.logs import LogRequest; "
        "from uncork.workbench.profile.logs import profile_logs; "
        "run = profile_logs(Path(sys.argv[1]), LogRequest((Path(sys.argv[2]),)), command='uncork'); "
        f"print(run.result.entries, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "runs"), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "9 []"
