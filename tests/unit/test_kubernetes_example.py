"""The examples for Kubernetes are valid YAML, and their commands are ones that uncork understands."""

import shlex
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
JOB, RAY_JOB = EXAMPLES / "load-job.yaml", EXAMPLES / "load-rayjob.yaml"


class Strict(yaml.SafeLoader):
    """Refuses a key that is given twice, which YAML's usual loaders accept."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


def test_each_pod_sends_its_own_part_once(monkeypatch):
    from typer.testing import CliRunner

    from uncork.cli.app import app
    from uncork.cli.load import http as verbs

    job = yaml.load(JOB.read_text(), Strict)
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert (spec["completionMode"], spec["backoffLimit"]) == ("Indexed", 0)
    assert spec["completions"] == spec["parallelism"] == 4
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    (script,) = container["args"]
    line = script.replace("$((JOB_COMPLETION_INDEX + 1))", "3").replace("START", "2026-05-31T08:30:00Z")
    seen = []
    monkeypatch.setattr(verbs, "load_http", seen.append)
    words = shlex.split(line)
    assert words[:2] == ["exec", "uncork"]
    done = CliRunner().invoke(app, words[2:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert seen[0].shard == (3, 4)
    assert seen[0].start_at is not None and seen[0].end_after == 90 * 10**9


def test_the_cluster_has_a_token_and_the_nodes_that_the_load_asks_for(monkeypatch):
    from typer.testing import CliRunner

    from uncork.cli.app import app
    from uncork.cli.load import http as verbs

    job = yaml.load(RAY_JOB.read_text(), Strict)
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"} and job["spec"]["backoffLimit"] == 0
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    (group,) = cluster["workerGroupSpecs"]
    spread = group["template"]["spec"]["topologySpreadConstraints"][0]
    assert spread["labelSelector"]["matchLabels"].items() <= group["template"]["metadata"]["labels"].items()
    seen = []
    monkeypatch.setattr(verbs, "load_http", seen.append)
    words = shlex.split(job["spec"]["entrypoint"])
    assert words[0] == "uncork"
    done = CliRunner().invoke(app, words[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (options,) = seen
    assert (options.nodes, options.cluster, options.yes) == (group["replicas"], "auto", True)
    assert group["minReplicas"] == group["maxReplicas"] == options.nodes
