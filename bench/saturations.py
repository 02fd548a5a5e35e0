"""Saturate one real resource at a time and check what uncork names; also three healthy runs.

Each consists of a small service (`saturation_service.py`), a real PostgreSQL if it needs one, and a load by
`uncork load` that observes all components. The bottleneck that is named first is compared with the scarce
resource. Some need privileges (control groups, a network of their own); otherwise they are skipped, with the
reason.

    python bench/saturations.py                    # each once: a table of what was named, and why
    python bench/saturations.py --times 3          # three times: the table of confusions
    python bench/saturations.py --only pool,locks --json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import servers_folder
from uncork.engines.ports import free_port

HERE = Path(__file__).parent
HEALTHY = "none"
OTHERS = 0.35
"""Share of the machine above which other programs saturate it themselves, so that the run is repeated."""
TRIES = 4


class Skipped(Exception):
    """This machine, or this user, cannot produce the saturation; the message is the reason."""


@dataclass(frozen=True)
class Outcome:
    """What uncork named when `expected` was made scarce, and other programs' share of the machine."""

    name: str
    expected: str
    named: str
    sentence: str
    answer: str
    others: float
    skipped: str = ""

    @property
    def right(self) -> bool:
        """Return whether the scarce resource was named first."""
        return self.named == self.expected

    @property
    def disturbed(self) -> bool:
        """Return whether other programs filled the machine and were named: then the machine was scarce."""
        return self.others > OTHERS and self.named == "machine cpu"


# ---- set-up ----


@contextmanager
def database(**settings: object) -> Iterator[EmbeddedServer]:
    """Start a PostgreSQL with a table of counters."""
    server = EmbeddedServer({"max_connections": 60, "autovacuum": False, "fsync": True, **settings})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)")
            connection.execute("INSERT INTO counter SELECT i, 0 FROM generate_series(1, 100) AS i")
            connection.execute("CREATE TABLE event (id bigserial PRIMARY KEY, at timestamptz, what text)")
        yield server
    finally:
        server.stop()


@contextmanager
def service(
    what: str, dsn: str = "", *, files: int | None = None, group: Path | None = None
) -> Iterator[str]:
    """Start the service; yield its address."""
    port = free_port()
    env = {**os.environ, "SERVICE_DSN": dsn, **({} if files is None else {"SERVICE_FILES": str(files)})}
    running = subprocess.Popen(
        within(group, sys.executable, str(HERE / "servers" / "saturation_service.py"), str(port), what),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    try:
        assert running.stdout is not None  # noqa: S101
        if not running.stdout.readline():
            raise SystemExit(f"the service {what!r} does not run")
        yield f"http://127.0.0.1:{port}/"
    finally:
        running.terminate()
        running.wait(10)


@contextmanager
def quick() -> Iterator[str]:
    """Start nginx, which answers faster than one thread can send requests."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).is_file():
        raise Skipped("nginx is not here")
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            "events { worker_connections 4096; }\n"
            "http { access_log off; keepalive_requests 1000000000;\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} }} }}\n"
        )
        running = subprocess.Popen(
            [program, "-p", name, "-c", f"{name}/nginx.conf"], stderr=subprocess.DEVNULL
        )
        try:
            until = time.monotonic() + 10
            while time.monotonic() < until and running.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}/"
        finally:
            running.terminate()
            running.wait(10)


def within(group: Path | None, *command: str) -> list[str]:
    """Return the command that runs another within a control group."""
    if group is None:
        return list(command)
    return ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *command]


@contextmanager
def processor_group(processors: float) -> Iterator[Path]:
    """Create a control group with a CPU quota."""
    version_one = Path("/sys/fs/cgroup/cpu")
    root = version_one if version_one.is_dir() else Path("/sys/fs/cgroup")
    with control_group(root) as group:
        try:
            if root == version_one:
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text(f"{processors * 100_000:.0f}")
            else:
                (group / "cpu.max").write_text(f"{processors * 100_000:.0f} 100000")
        except OSError as error:
            raise Skipped(f"a control group takes no quota of processors here: {error}") from error
        yield group


@contextmanager
def slow_disk(operation: str, a_second: int) -> Iterator[Path]:
    """Create a control group with a limit of reads or writes per second on the servers' disk."""
    device = servers_folder().stat().st_dev
    place = f"{os.major(device)}:{os.minor(device)}"
    version_one = Path("/sys/fs/cgroup/blkio")
    root = version_one if version_one.is_dir() else Path("/sys/fs/cgroup")
    with control_group(root) as group:
        try:
            if root == version_one:
                (group / f"blkio.throttle.{operation}_iops_device").write_text(f"{place} {a_second}")
            else:
                (group / "io.max").write_text(f"{place} {operation[0]}iops={a_second}")
        except OSError as error:
            raise Skipped(f"a control group cannot slow down the disk {place} here: {error}") from error
        yield group


@contextmanager
def control_group(root: Path) -> Iterator[Path]:
    """Create a control group, and remove it when its processes have ended."""
    group = root / f"uncork-saturation-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise Skipped(f"no control group can be made here: {error}") from error
    try:
        yield group
    finally:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                group.rmdir()
                break
            except OSError:  # its processes are still ending
                time.sleep(0.1)


# ---- loading ----


def load(*words: object, group: Path | None = None, kind: str = "http") -> dict[str, Any]:
    """Run the load command; return the result."""
    command = (sys.executable, "-m", "uncork", "load", kind)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            within(group, *command, *map(str, words), "--json", "--runs", folder),
            capture_output=True,
            text=True,
            check=False,
        )
        if not done.stdout:
            raise SystemExit(f"uncork load {kind} failed: {done.stderr}")
        result: dict[str, Any] = json.loads(done.stdout)
        result["others"] = others_of(Path(folder))
    return result


def others_of(runs: Path) -> float:
    """Return the share of the machine that programs of no component took."""
    found = 0.0
    for path in runs.glob("*/seen.json"):
        for one in json.loads(path.read_text()):
            seen = one["seen"]
            machine = seen["machine"]
            parties = [seen[name] for name in ("database", "service", "generator") if seen[name]]
            used = sum(party["user"] + party["system"] for party in parties) / machine["processors"]
            found = max(found, (machine["busy"] or 0.0) - used)
    return found


Named = Callable[[], dict[str, Any]]
"""Sets up a case, loads it, and returns the result."""


def tool(name: str) -> str:
    """Return the path of a system tool."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise Skipped(f"{name} is not here")
    return found


def database_cpu() -> dict[str, Any]:
    """Eight sessions that compute."""
    query = "pool:8:SELECT sum(n * n) FROM generate_series(1, 40000) AS n"
    with database() as server, service(query, server.conninfo()) as url:
        return load("-c", 8, "-D", 5, "--postgres", server.conninfo(), url)


def service_cpu() -> dict[str, Any]:
    """A service that computes in its one thread."""
    with service("compute") as url:
        return load("-c", 8, "-D", 5, url)


def cpu_quota() -> dict[str, Any]:
    """The same, with a quota of 0.3 CPUs."""
    with processor_group(0.3) as group, service("compute", group=group) as url:
        return load("-c", 8, "-D", 5, url)


def pool() -> dict[str, Any]:
    """Four connections, each needed for 20 ms, and 32 clients."""
    with database() as server, service("pool:4:SELECT pg_sleep(0.02)", server.conninfo()) as url:
        return load("-c", 32, "-D", 5, "--postgres", server.conninfo(), url)


def locks() -> dict[str, Any]:
    """All requests update one row."""
    query = "pool:16:UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING pg_sleep(0.005)"
    with database() as server, service(query, server.conninfo()) as url:
        return load("-c", 16, "-D", 5, "--postgres", server.conninfo(), url)


def storage() -> dict[str, Any]:
    """Cold reads past the page cache, from a disk limited to 800 per second."""
    settings = {"shared_buffers": "1MB", "debug_io_direct": "data", "io_method": "sync"}
    query = "pool:16:SELECT count(pad) FROM row WHERE id = (random() * 200000)::int"
    with slow_disk("read", 800) as group, database(**settings) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE TABLE row (id int PRIMARY KEY, pad text)")
            connection.execute(
                "INSERT INTO row SELECT i, repeat('x', 500) FROM generate_series(1, 200000) AS i"
            )
            connection.execute("VACUUM ANALYZE row")
        into(group, server)
        with service(query, server.conninfo()) as url:
            return load("-c", 16, "-D", 5, "--postgres", server.conninfo(), url)


def into(group: Path, server: EmbeddedServer) -> None:
    """Put a server's postmaster, and so its later sessions, into a control group."""
    (group / "cgroup.procs").write_text(str(server.pid))


def commit() -> dict[str, Any]:
    """Inserts, each a commit, on a disk limited to 400 writes per second."""
    query = "pool:16:INSERT INTO event (at, what) VALUES (now(), 'x')"
    with slow_disk("write", 400) as group, database(synchronous_commit="on") as server:
        into(group, server)
        with service(query, server.conninfo()) as url:
            return load("-c", 16, "-D", 5, "--postgres", server.conninfo(), url)


def connection_limit() -> dict[str, Any]:
    """A service without a pool, and a server that accepts 20 connections."""
    with (
        database(max_connections=20) as server,
        service("connect:SELECT pg_sleep(0.1)", server.conninfo()) as url,
    ):
        return load("-c", 40, "-D", 5, "--postgres", server.conninfo(), url)


def file_descriptors() -> dict[str, Any]:
    """A service limited to 24 open files, and 64 clients."""
    with service("sleep", files=24) as url:
        return load("-c", 64, "-D", 4, "--timeout", "2s", url)


def listen_backlog() -> dict[str, Any]:
    """A service that accepts fifty connections per second, with a backlog of one."""
    with service("accept") as url:
        return load("-C", "-c", 32, "-D", 5, "--timeout", "5s", url)


def ephemeral_ports() -> dict[str, Any]:
    """A network with 64 ports, and 100 clients."""
    ports = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if os.environ.get("SATURATION_INSIDE") is None:
        raise Skipped("it needs a network of its own")
    subprocess.run([tool("ip"), "link", "set", "lo", "up"], check=True)
    ports.write_text("50000 50063")
    with quick() as url:
        return load("-c", 100, "-D", 4, url)


def generator() -> dict[str, Any]:
    """A generator limited to a fifth of a CPU, and a fast server."""
    with processor_group(0.2) as group, quick() as url:
        return load("-c", 16, "-D", 5, url, group=group)


def light_sql() -> dict[str, Any]:
    """A few statements per second."""
    with database() as server, tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "one.sql")
        script.write_text("SELECT n FROM counter WHERE id = 7;\n")
        sweep = ("--sweep", "rate", "-R", 20, "--to", 60, "-T", 0.5, "--budget", "12s")
        return load("-n", "-f", script, *sweep, "--dsn", server.conninfo(), kind="sql")


def light_http() -> dict[str, Any]:
    """Forty requests per second, one statement each."""
    query = "pool:4:SELECT n FROM counter WHERE id = 7"
    with database() as server, service(query, server.conninfo()) as url:
        return load("-c", 4, "-R", 40, "-D", 5, "--postgres", server.conninfo(), url)


def sleeping() -> dict[str, Any]:
    """A service that only waits, and four clients."""
    with service("sleep") as url:
        return load("-c", 4, "-D", 5, url)


RUNS: Mapping[str, tuple[str, Named]] = {
    "processors of the database": ("database cpu", database_cpu),
    "processors of the service": ("service cpu", service_cpu),
    "quota": ("cpu quota", cpu_quota),
    "pool": ("pool", pool),
    "locks": ("locks", locks),
    "storage": ("storage", storage),
    "commit": ("commit", commit),
    "connection limit": ("connection limit", connection_limit),
    "file descriptors": ("file descriptors", file_descriptors),
    "listen backlog": ("listen backlog", listen_backlog),
    "ephemeral ports": ("ephemeral ports", ephemeral_ports),
    "generator": ("generator", generator),
    "light SQL": (HEALTHY, light_sql),
    "light HTTP": (HEALTHY, light_http),
    "sleeping service": (HEALTHY, sleeping),
}


def carry_out(name: str) -> Outcome:
    """Run one case; repeat it if other programs took the machine meanwhile."""
    expected, run = RUNS[name]
    if name == "ephemeral ports" and "SATURATION_INSIDE" not in os.environ:
        try:
            return apart(name, expected)
        except Skipped as reason:
            return Outcome(name, expected, "", "", "", 0.0, str(reason))
    for _ in range(TRIES):
        try:
            result = run()
        except Skipped as reason:
            return Outcome(name, expected, "", "", "", 0.0, str(reason))
        found = result["bottlenecks"]
        named = found[0]["resource"] if found else HEALTHY
        sentence = found[0]["sentence"] if found else ""
        outcome = Outcome(name, expected, named, sentence, result["answer"], result["others"])
        if not outcome.disturbed:
            break
    return outcome


def apart(name: str, expected: str) -> Outcome:
    """Run one case in a network of its own, whose ports can be limited."""
    done = subprocess.run(
        [tool("unshare"), "-n", sys.executable, __file__, "--only", name, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SATURATION_INSIDE": "1"},
    )
    if not done.stdout:
        reason = (done.stderr.strip().splitlines() or ["unshare failed"])[-1]
        return Outcome(name, expected, "", "", "", 0.0, f"no network of its own can be made here: {reason}")
    return Outcome(**json.loads(done.stdout)[0])


# ---- printing ----


def main() -> int:
    """Run the requested cases; return 1 if any bottleneck was named wrongly."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="NAME,NAME", help=f"cases to run, of {', '.join(RUNS)}")
    parser.add_argument("--times", type=int, default=1, help="how often to run each")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    asked = parser.parse_args()
    names = list(RUNS) if asked.only is None else [one.strip() for one in asked.only.split(",")]
    unknown = [one for one in names if one not in RUNS]
    if unknown:
        parser.error(f"{unknown[0]!r} is none of {', '.join(RUNS)}")
    outcomes = []
    for turn in range(asked.times):
        for name in names:
            outcome = carry_out(name)
            outcomes.append(outcome)
            if not asked.json:
                tell(outcome, turn)
    if asked.json:
        print(json.dumps([asdict(one) for one in outcomes]))
    elif asked.times > 1:
        confusions(outcomes)
    return 0 if all(one.right or one.skipped or one.disturbed for one in outcomes) else 1


def tell(one: Outcome, turn: int) -> None:
    """Print an outcome."""
    if one.skipped:
        print(f"{turn + 1} {one.name}: skipped: {one.skipped}", flush=True)
        return
    verdict = "right" if one.right else "disturbed" if one.disturbed else f"WRONG: {one.expected} was scarce"
    print(f"{turn + 1} {one.name}: {one.named} ({verdict}; others {one.others * 100:.0f} %)", flush=True)
    print(f"    {one.sentence or one.answer}", flush=True)


def confusions(outcomes: Sequence[Outcome]) -> None:
    """Print how often each bottleneck was named, and the evidence of the last time."""
    print("\n| made scarce | named first | evidence of the last |\n|---|---|---|")
    for name in dict.fromkeys(one.name for one in outcomes):
        mine = [one for one in outcomes if one.name == name]
        if mine[-1].skipped:
            print(f"| {name} | skipped | {mine[-1].skipped} |")
            continue
        counted = Counter("disturbed" if one.disturbed else one.named for one in mine if not one.skipped)
        named = ", ".join(f"{many} × {what}" for what, many in counted.most_common())
        print(f"| {name} | {named} | {mine[-1].sentence or 'none'} |")


if __name__ == "__main__":
    sys.exit(main())
