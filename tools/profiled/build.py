"""Build a wheel whose reader of logs is compiled by a profile of its own work (`make release`; ADR-0054).

The crates that read logs are compiled twice: first with counters, then by what was counted while the first
build read logs. A real server writes these logs; they are not those that `bench/log_speed.py` measures with.
Other crates are compiled as usual, so what sends load does not depend on the profile.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uncork.engines import tpcb
from uncork.engines.embedded import EmbeddedServer

ROOT: Final = Path(__file__).parents[2]
CRATES: Final = ("uncork-ingest", "uncork-log")
"""What is compiled by the profile."""
COUNTED: Final = (*CRATES, "uncork-py")
"""What is compiled with counters. Without the library itself, what writes the counts would not be linked."""
TARGET: Final = ROOT / "build" / "profiled"
"""A folder of its own: cargo would take a library with counters for the usual one."""
_COMPILER: Final = TARGET / "compiler.sh"
_ENVIRONMENT: Final = {
    **os.environ,
    "CARGO_TARGET_DIR": str(TARGET),
    "RUSTC_WORKSPACE_WRAPPER": str(_COMPILER),
}
COPIES: Final = 20
"""Of the log, to compare both builds: most statements have then been seen, as in long logs."""
READ_TIME: Final = Path(__file__).with_name("read_time.py")
TEMPLATES: Final = 3000
SETTINGS: Final = {
    "logging_collector": True,
    "log_destination": "stderr,csvlog,jsonlog",
    "log_filename": "server.log",
    "log_rotation_size": 0,
    "log_min_duration_statement": 0,
    "log_lock_waits": True,
    "log_temp_files": 0,
    "log_checkpoints": True,
    "log_connections": True,
    "log_disconnections": True,
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
}
LOADS: Final = (
    ("-b", "tpcb-like", "-M", "simple", "-T", "3"),
    ("-b", "tpcb-like", "-M", "prepared", "-T", "3"),
    ("-b", "select-only", "-M", "extended", "-T", "3"),
)


def main() -> None:
    """Write the wheel into `dist`; exit with a message if a command fails."""
    merge = _profdata()
    with tempfile.TemporaryDirectory(prefix="uncork-profiled-") as name:
        place = Path(name)
        logs = _logs(place)
        package = _package_with_counters(place)
        for log in logs:
            _run(
                *(sys.executable, "-m", "uncork", "profile", "logs", str(log), "-q"),
                *("--runs", str(place / "runs")),
                PYTHONPATH=str(package),
                LLVM_PROFILE_FILE=str(place / "counts" / "%m_%p.profraw"),
            )
        profile = place / "profile"
        _run(str(merge), "merge", "-o", str(profile), str(place / "counts"))
        print(f"{len(logs)} logs read; {profile.stat().st_size / 1e6:.1f} MB of profile")
        _compile_with(f"-Cprofile-use={profile}", CRATES)
        _run(
            *(str(Path(sys.executable).with_name("maturin")), "build", "--release", "--locked"),
            *("--quiet", "--out", str(ROOT / "dist")),
            VIRTUAL_ENV=str(Path(sys.executable).parents[1]),
        )
        (wheel,) = (ROOT / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            content.extractall(place / "wheel")
        _compare((place / "server.log").read_bytes() * COPIES, place)


def _profdata() -> Path:
    """Return rustup's program that merges profiles: its version has to be the compiler's."""
    library = _run("rustc", "--print", "target-libdir").strip()
    program = Path(library).parent / "bin" / "llvm-profdata"
    if not program.is_file():
        raise SystemExit(f"{program} is missing. Run: rustup component add llvm-tools")
    return program


def _logs(place: Path) -> list[Path]:
    """Return logs of one server in each format: of pgbench's scripts, and of many different statements."""
    script = place / "statements.sql"
    script.write_text(_statements())
    server = EmbeddedServer(SETTINGS)
    server.start()
    try:
        tpcb.initialise(server.conninfo(), scale=1)
        for load in (*LOADS, ("-f", str(script), "-M", "simple", "-t", "3")):
            _run(
                *(sys.executable, "-m", "uncork", "load", "sql", server.conninfo()),
                *(*load, "-c", "4", "-j", "2", "--runs", str(place / "runs")),
            )
        written = [one for one in server.logs if one.parent.name == "log"]
        logs = [Path(shutil.copy(one, place / one.name)) for one in written]
    finally:
        server.stop()
    packed = place / "packed.log.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        file.write((place / "server.log").read_bytes())
    return [*logs, packed]


def _statements() -> str:
    """Return a script of different statements; every tenth group of ten is a transaction."""
    lines = ["\\set aid random(1, 100000)"]
    for number in range(TEMPLATES):
        if number % 100 == 0:
            lines.append("BEGIN;")
        lines.append(
            f"SELECT a.abalance AS balance_{number}, b.bbalance FROM pgbench_accounts a "  # noqa: S608
            f"JOIN pgbench_branches b USING (bid) WHERE a.aid IN (:aid, {number}) "
            f"AND a.filler <> 'no {number}' ORDER BY a.aid LIMIT {number % 7 + 1};"
        )
        if number % 100 == 9:
            lines.append("COMMIT;")
    return "\n".join(lines) + "\n"


def _package_with_counters(place: Path) -> Path:
    """Return a folder to import uncork from, whose core counts what it runs."""
    _compile_with("-Cprofile-generate", COUNTED)
    _run("cargo", "build", "--release", "--locked", "--quiet", "-p", "uncork-py")
    package = place / "package"
    shutil.copytree(ROOT / "python" / "uncork", package / "uncork")
    shutil.copy(TARGET / "release" / "lib_core.so", package / "uncork" / "_core.abi3.so")
    return package


def _compile_with(flag: str, crates: Sequence[str]) -> None:
    """Let cargo compile some crates again with a flag. Only its nightly version has flags of single crates.

    The program that it runs as the compiler keeps its path: names in a profile contain a hash of it.
    """
    _COMPILER.parent.mkdir(parents=True, exist_ok=True)
    _COMPILER.write_text(
        f'#!/bin/sh\ncase "$CARGO_PKG_NAME" in {"|".join(crates)}) exec "$@" {flag};; esac\nexec "$@"\n'
    )
    _COMPILER.chmod(0o755)
    _run("cargo", "clean", "--release", "--quiet", *(word for crate in COUNTED for word in ("-p", crate)))


def _compare(log: bytes, place: Path) -> None:
    """Tell what the profile brought. If reading is not faster, the names in the profile did not fit."""
    path = place / "long.log"
    path.write_bytes(log)
    taken: dict[Path, float] = {}
    for folder in (ROOT / "python", place / "wheel") * 3:
        seconds = float(_run(sys.executable, str(READ_TIME), str(path), PYTHONPATH=str(folder)))
        taken[folder] = min(seconds, taken.get(folder, seconds))
    usual, profiled = taken.values()
    print(f"{len(log) / 1e6:.0f} MB read in {profiled:.3f} s instead of {usual:.3f} s")


def _run(*words: str, **environment: str) -> str:
    """Run a program in the root of the repository, and return its output."""
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=_ENVIRONMENT | environment, text=True, capture_output=True, check=False
        )
    except FileNotFoundError as missing:
        raise SystemExit(f"{words[0]} is not on the path") from missing
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
