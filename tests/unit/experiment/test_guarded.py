"""The experiment that a guard runs: what is each side's own, what must be the same, what is told."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from fakes.goldens import compare_mistakes
from uncork.errors import UsageError
from uncork.experiment.guard.experiment import SideRequest, guarded
from uncork.experiment.guard.sides import Side, parse_side
from uncork.experiment.plan.order import arms, cells
from uncork.experiment.run.http_request import service_jobs
from uncork.experiment.spec.schema import parse_spec

FILE = """
[experiment]
name = "look-up"
question = "How should a row be found?"
seed = 7
source = "a blog"

[variants.scan]
baseline = true
title = "by a scan"
values = { condition = "id + 0 = :id" }
settings = { work_mem = "1MB" }

[variants.key]
values = { condition = "id = :id" }

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.get]
sql = "SELECT f FROM t WHERE :condition"
duration = "100ms"
parameters.id = { generator = { kind = "uniform", min = 1, max = 3000 } }

[workloads.other]
sql = ["SELECT 1", "SELECT 2"]
duration = "100ms"
variants = ["key"]

[stop]
practical = "4%"
"""

API = """
[experiment]
name = "api"
question = "How fast is it?"

[services.app]
command = ["{python}", "app.py", "--image={image}", "--in={checkout}"]
environment = { POOL = ":pool", OLD = "yes" }
files = ["queries.py"]

[variants.plain]
baseline = true
values = { pool = "5" }

[variants.more]
values = { pool = "9" }

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.find]
duration = "1s"
http = { requests = ["/items", { path = "/more", weight = 2 }] }
"""


def asked(role, text=FILE, says=(), files=None, **facts):
    known = files or {}

    def read(name):
        if name not in known:
            raise FileNotFoundError(2, "No such file or directory")
        return known[name]

    spec = parse_spec(text, file="x.toml", read=read, overrides={})
    facts = {"origin": f"the {role}'s file", "files": spec.files} | facts
    return SideRequest(parse_side(role, list(says)), tomllib.loads(text), spec, **facts)


def derive(baseline=None, candidate=None, variant=None, changes=None):
    made = guarded(
        asked("baseline") if baseline is None else baseline,
        asked("candidate") if candidate is None else candidate,
        variant,
        changes or {},
    )
    return made, parse_spec(made.text, file="made", read=made.files.__getitem__, overrides={})


def derive_api(baseline, candidate):
    made = guarded(baseline, candidate, None, {})

    def read(name):
        if name not in made.files:
            raise FileNotFoundError(2, "No such file or directory")
        return made.files[name]

    return made, parse_spec(made.text, file="made", read=read, overrides={})


def test_both_sides_are_the_files_baseline_and_differ_in_what_they_say():
    made, spec = derive(candidate=asked("candidate", says=["setting=work_mem:64MB"]))
    assert list(spec.variants) == ["baseline", "candidate"]
    assert spec.baseline == "baseline"
    assert [one.settings for one in spec.variants.values()] == [{"work_mem": "1MB"}, {"work_mem": "64MB"}]
    assert spec.variants["candidate"].values == {"condition": "id + 0 = :id"}
    assert spec.experiment.name == "guard-look-up"
    assert spec.experiment.seed == 7
    assert spec.stop.practical == 0.04
    assert (made.same, made.told) == (False, ())
    assert made.baseline.title == "by a scan"
    assert made.candidate.title == "work_mem = 64MB"
    assert len(arms(spec)) == 3


def test_workloads_that_do_not_compare_the_chosen_variant_are_left_out():
    _, spec = derive(variant="scan")
    assert list(spec.workloads) == ["get", "other"], "the baseline is compared everywhere"
    _, spec = derive(candidate=asked("candidate", says=["variant=key"]))
    assert list(spec.workloads) == ["get", "other"]
    assert spec.statements("get", "baseline") == spec.statements("get", "candidate")
    assert spec.variants["candidate"].values == {"condition": "id = :id"}


def test_two_sides_that_come_out_the_same_are_said_to_be():
    assert derive()[0].same
    assert derive(candidate=asked("candidate", says=["setting=work_mem:1MB"]))[0].same
    assert derive(candidate=asked("candidate", origin="commit 1", revision="commit 1", commit="1"))[0].same
    servers = (asked(role, dsn=f"host={role}") for role in ("baseline", "candidate"))
    assert not derive(*servers)[0].same


def test_what_differs_between_commits_is_each_sides_own():
    newer = FILE.replace("(id int)", "(id bigint, f text)").replace(
        "SELECT f FROM", "SELECT f, :more::int FROM"
    )
    newer = newer.replace("[workloads.other]", 'parameters.more = { query = "SELECT 1" }\n[workloads.other]')
    newer = newer.replace('values = { condition = "id', 'values = { extra = "x", condition = "id')
    made, spec = derive(candidate=asked("candidate", newer))
    assert spec.setup_sql("baseline") == "CREATE TABLE t (id int)"
    assert spec.setup_sql("candidate") == "CREATE TABLE t (id bigint, f text)"
    assert spec.statements("get", "baseline") == ("SELECT f FROM t WHERE :condition",)
    assert spec.statements("get", "candidate") == ("SELECT f, :more::int FROM t WHERE :condition",)
    assert spec.statements("other", "candidate") == ("SELECT 1", "SELECT 2")
    assert "other" not in spec.variants["baseline"].workloads
    assert set(spec.workloads["get"].parameters) == {"id", "more"}
    assert spec.variants["baseline"].values["extra"] == "x"
    assert not made.same


def test_what_is_asked_is_as_the_candidate_asks_and_told():
    newer = FILE.replace('duration = "100ms"', 'duration = "200ms"\nmetric = "latency_p99"').replace(
        '"4%"', '"5%"'
    )
    made, spec = derive(candidate=asked("candidate", newer, origin="commit abc"))
    assert spec.workloads["get"].metric == "latency_p99"
    assert spec.stop.practical == 0.05
    assert made.told == (
        "the files of the baseline's file and commit abc differ (stop, workloads.get.duration, "
        "workloads.get.metric, workloads.other.duration, workloads.other.metric): both sides use the values "
        "of commit abc",
    )


def test_what_cannot_be_asked_of_both_is_one_error_that_names_it():
    compare_mistakes("spec/guarded", FILE, lambda text: derive(candidate=asked("candidate", text)))


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("value=conditon:x",
         'candidate value=conditon:x: variant scan has no such value; did you mean "condition"?'),
        ("variant=kee",
         '--candidate variant=kee: the candidate\'s file has no such variant; did you mean "key"?'),
        ("env=api.POOL:9", 'there is no service "api"; the file has none'),
        ("image=x:2",
         "--candidate image=x:2: no service uses {image} in its command or environment"),
        ("url=http://h", "--candidate url=…: works only for stored loads"),
    ],
)  # fmt: skip
def test_a_side_that_names_what_there_is_not_is_told(says, told):
    with pytest.raises(UsageError) as error:
        derive(candidate=asked("candidate", says=[says]))
    assert told in str(error.value)
    with pytest.raises(UsageError, match="--variant none: the baseline's file has no such variant"):
        derive(variant="none")


def test_services_are_each_sides_own_with_files_image_and_checkout():
    old = asked("baseline", API, ["image=app:1"], {"app.py": "old()", "queries.py": "A"}, checkout="/one")
    newer = API.replace(', OLD = "yes"', "")
    new = asked(
        *("candidate", newer, ["image=app:2", "env=app.TOKEN:hush"]),
        {"app.py": "new()", "queries.py": "A"},
        checkout="/two",
    )
    made, spec = derive_api(old, new)
    (cell,) = cells(spec)
    jobs = [service_jobs(spec, cell, name)[0] for name in ("baseline", "candidate")]
    assert jobs[0].command == ("{python}", "app.py", "--image=app:1", "--in=/one")
    assert jobs[1].command == ("{python}", "app.py", "--image=app:2", "--in=/two")
    assert dict(jobs[0].environment) == {"POOL": "5", "OLD": "yes"}
    assert dict(jobs[1].environment) == {"POOL": "5", "TOKEN": "hush"}
    assert [job.files["app.py"] for job in jobs] == ["old()", "new()"]
    assert jobs[0].files["queries.py"] == "A"
    assert made.candidate.what == ("app.TOKEN = ***", "image app:2")
    assert spec.workloads["find"].http.requests[1].weight == 2


def test_one_side_without_image_is_told():
    old, new = (
        asked(role, API, files={"app.py": "", "queries.py": ""}) for role in ("baseline", "candidate")
    )
    with pytest.raises(UsageError, match="--baseline image=REF is missing: service app uses"):
        derive_api(old, new)


def test_other_requests_cannot_be_compared():
    files = {"app.py": "", "queries.py": ""}
    old = asked("baseline", API, ["image=a"], files)
    new = asked("candidate", API.replace('"/items"', '"/item"'), ["image=b"], files)
    with pytest.raises(UsageError, match=r"workloads.find.http differs: .*'/items'.* and .*'/item'"):
        derive_api(old, new)


def test_what_is_checked_out_makes_a_side_where_its_services_use_it():
    files = {"app.py": "", "queries.py": ""}
    old = asked("baseline", API, ["image=a"], files, commit="1", checkout="/one")
    new = asked("candidate", API, ["image=a"], files, commit="1", checkout="/two")
    assert derive_api(old, new)[0].same, "another folder, the same commit"
    assert not derive_api(old, replace(new, changed=True))[0].same
    assert not derive_api(old, replace(new, commit="2"))[0].same


def test_without_workloads_by_http_services_are_left_out():
    text = API.replace(
        "[workloads.find]", '[workloads.get]\nsql = "SELECT 1"\nduration = "1s"\n[workloads.find]'
    )
    spec = parse_spec(text, file="x", read={"app.py": "", "queries.py": ""}.get, overrides={})
    kept = spec.model_copy(update={"workloads": {"get": spec.workloads["get"]}, "services": {}})
    sides = [SideRequest(Side(role), tomllib.loads(text), kept, "x") for role in ("baseline", "candidate")]
    made, derived = derive(*sides)
    assert not derived.services
    assert list(derived.workloads) == ["get"]
    assert made.same


def test_the_command_of_a_metric_keeps_the_candidates_file():
    text = FILE + '\n[metrics.size]\ncommand = ["sh", "size.sh"]\n'
    old, new = (asked(role, text, files={"size.sh": role}) for role in ("baseline", "candidate"))
    made, spec = derive_api(old, new)
    assert made.files["size.sh"] == "candidate"
    assert spec.metrics["size"].command == ("sh", "size.sh")
    assert spec.files["size.sh"] == "candidate"
