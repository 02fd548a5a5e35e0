"""A Ray cluster of several nodes on this machine, on loopback, in a process of its own. A program.

    python tests/fakes/ray_cluster.py '[{}, {"PYTHONPATH": "..."}]'

The argument has the environment of each node beside the head. The first line of output is JSON: the address,
and the pids of the nodes' raylets. The cluster ends with standard input.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STORE = 80 << 20


@dataclass(frozen=True)
class RayCluster:
    """A running cluster; `environment` has what its users need."""

    address: str
    client: str
    raylets: list[int]
    environment: dict[str, str]


@contextlib.contextmanager
def ray_cluster(
    nodes: Sequence[Mapping[str, str]], token: str | None = "t" * 64, client: bool = False
) -> Iterator[RayCluster]:
    """Start a cluster, and end it with all its processes and files. Without a token, anyone may use it."""
    folder = tempfile.mkdtemp(prefix="rc-")
    environment = {**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    environment |= {"RAY_AUTH_MODE": "disabled"} if token is None else {}
    environment |= {} if token is None else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    environment["RAY_TMPDIR"] = folder
    words = [sys.executable, __file__, json.dumps(list(nodes)), "client" if client else ""]
    with (
        (Path(folder) / "log").open("wb") as log,
        subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            line = process.stdout.readline()
            assert line, (Path(folder) / "log").read_text()[-2000:]
            found = json.loads(line)
            yield RayCluster(found["address"], found["client"], found["raylets"], environment)
        finally:
            process.communicate()
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    from ray.cluster_utils import Cluster

    nodes, client = json.loads(sys.argv[1]), sys.argv[2] == "client"
    output, sys.stdout = sys.stdout, sys.stderr
    same = {"object_store_memory": STORE, "num_gpus": 0}
    head = {**same, "num_cpus": 0, "include_dashboard": False}
    port = 21_000 + os.getpid() % 10_000 if client else None
    cluster = Cluster(initialize_head=True, head_node_args={**head, "ray_client_server_port": port})
    started = [cluster.add_node(**same, num_cpus=1, env_vars=dict(one)) for one in nodes]
    daemons = [node.all_processes["raylet"][0].process for node in started]
    for one in daemons:  # a zombie would keep the workers of a killed raylet alive
        threading.Thread(target=one.wait, daemon=True).start()
    raylets = [one.pid for one in daemons]
    facts = {"address": cluster.address, "client": f"ray://127.0.0.1:{port}", "raylets": raylets}
    print(json.dumps(facts), file=output, flush=True)
    sys.stdin.read()
    with contextlib.suppress(Exception):  # tests kill some of them
        cluster.shutdown()


if __name__ == "__main__":
    main()
