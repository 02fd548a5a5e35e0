"""`uncork merge` of an experiment's runs: several hosts become one run, with claims in two scopes."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.postgres
EXAMPLE = Path(__file__).parents[2] / "examples" / "pytest" / "orders.toml"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """One real run of an experiment; runs of other hosts are made from it."""
    import uncork

    return uncork.run(EXAMPLE, runs=tmp_path_factory.mktemp("runs"), budget="8s", precision="90%").folder


def on_host(measured, folder, number, *, machine=None, slower=1.0):
    """Store the run as if another host had measured it, on which the second baseline is slower.

    Else the second baseline differs from the first by 1 % in turns: what was measured could differ by chance,
    and the copies would all differ alike.
    """
    place = folder / f"host{number}"
    shutil.copytree(measured, place)
    machine = number if machine is None else machine
    (place / "host.json").write_text(json.dumps({"name": f"db{number}", "machine": machine}))
    rows = [row for path in (place / "trials").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    first = {(row["round"], row["block"], row["variant"]): row["value"] for row in rows if not row["again"]}
    for path in (place / "trials").glob("*.parquet"):
        table = pq.read_table(path)
        values = [
            first[row["round"], row["block"], row["variant"]] * slower * (1 + 0.01 * (-1) ** row["round"])
            if row["again"]
            else row["value"]
            for row in table.to_pylist()
        ]
        column = pa.array(values, table.schema.field("value").type)
        pq.write_table(table.set_column(table.column_names.index("value"), "value", column), path)
    return place


@pytest.mark.thorough
def test_runs_of_five_hosts_say_something_about_others(uncork, measured, tmp_path):
    hosts = [on_host(measured, tmp_path, number) for number in (1, 2, 3, 4)]
    hosts += [on_host(measured, tmp_path, 5, machine=50), on_host(measured, tmp_path, 6, machine=50)]
    done = uncork("merge", *hosts, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rounds = json.loads((measured / "manifest.json").read_text())["attempts"][0]["rounds"]
    assert found["run"]["rounds"] == 6 * rounds
    assert [(one["name"], one["rounds"], one["odd"]) for one in found["hosts"]] == [
        *((f"db{number}", rounds, False) for number in (1, 2, 3, 4)),
        ("db5", 2 * rounds, False),
    ]
    (comparison,) = found["comparisons"]
    these, others = comparison["scopes"]["these_hosts"], comparison["scopes"]["hosts_like_these"]
    assert (these["count"], others["count"]) == (6 * rounds, 5)
    wider = max((these, others), key=lambda one: one["high"] / one["low"])
    assert (comparison["low"], comparison["high"]) == (wider["low"], wider["high"])
    assert "about hosts like these" in " ".join(found["reasons"])
    shown = uncork("report", "last")
    assert "Measured on 5 hosts" in " ".join(shown.stdout.split())
    folder = next(uncork.folder.glob("runs/*-merged-*"))
    assert "on hosts like these" in (folder / "report.html").read_text()
    assert len(list((folder / "parts").iterdir())) == 6
    resumed = uncork("run", "--resume", folder.name)
    assert resumed.returncode == 1 and "has the rounds of several hosts" in resumed.stderr


@pytest.mark.thorough
def test_few_hosts_say_nothing_about_others_and_an_odd_one_is_named(uncork, measured, tmp_path):
    hosts = [on_host(measured, tmp_path, 1), on_host(measured, tmp_path, 2, slower=100.0)]
    done = uncork("merge", *hosts, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["odd"] for one in found["hosts"]] == [False, True]
    reasons = " ".join(found["reasons"])
    assert "about these hosts only" in reasons and "differs from itself on db2" in reasons


def test_runs_that_do_not_belong_together_are_refused(uncork, measured, tmp_path):
    one, other = on_host(measured, tmp_path, 1), on_host(measured, tmp_path, 2)
    text = (other / "experiment.toml").read_text()
    (other / "experiment.toml").write_text(text + "\n# another\n")
    refused = uncork("merge", one, other)
    assert refused.returncode == 1 and "their experiment files differ" in refused.stderr
    assert "the same run is named twice" in uncork("merge", one, one).stderr
    assert "at least two hosts" in uncork("merge", one).stderr
    (other / "experiment.toml").write_text(text)
    (other / "trials" / "000001.parquet").write_text("damaged")
    assert "000001.parquet: damaged" in uncork("merge", one, other).stderr
    (other / "host.json").unlink()
    assert "host.json: damaged" in uncork("merge", one, other).stderr
    assert not list(uncork.folder.glob("runs/*"))
