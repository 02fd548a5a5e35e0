"""Secrets do not go to a cluster: nodes have their own, by name."""

from dataclasses import replace
from pathlib import Path

import pytest

from uncork.cluster.jobs import PartJob, part_of_job, portable_http, portable_sql
from uncork.errors import UsageError
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.load import ClusterRequest, LoadPart, LoadScript, LoadSpec
from uncork.requests.jobs import HttpJob, LoadJob, ServerOptions

FAR, OWN = ClusterRequest(2, "auto"), ClusterRequest(2)
HTTP = HttpSpec(HttpServer("shop.example", 80), (Request("/", "GET", "/"),), clients=4, operations=10)


def sql(dsn, **options):
    spec = LoadSpec((LoadScript("s", 1, "SELECT 1;"),), clients=4, operations_each=1)
    options = {"tables": None, "needs_tables": False, "scale": None, "vacuum": "usual", **options}
    return LoadJob(spec, ServerOptions(dsn=dsn), command="uncork load sql", **options)


def carried(job, request=FAR):
    return portable_sql(job, job.server.address(), request).server.dsn


def test_a_password_in_the_connection_string_is_refused_with_the_other_ways():
    job = sql("postgresql://u:secret@db.example/shop")
    with pytest.raises(UsageError, match=r"set PGPASSWORD where Ray is started .* password file") as refused:
        carried(job)
    assert "secret" not in str(refused.value)
    assert "password=secret" in carried(job, OWN)


def test_a_password_of_this_machine_stays_here(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    job = sql("postgresql://u@db.example:5433/shop?sslmode=require")
    found = carried(job)
    assert "secret" not in found
    assert {"host=db.example", "port=5433", "user=u", "dbname=shop", "sslmode=require"} <= set(found.split())


def test_certificates_of_this_home_are_looked_up_on_each_node(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".postgresql"
    folder.mkdir()
    (folder / "root.crt").write_text("")
    assert str(Path(folder)) not in carried(sql("host=db.example dbname=shop"))
    assert "sslrootcert=/etc/ca.crt" in carried(sql("host=db.example dbname=shop sslrootcert=/etc/ca.crt"))


def test_a_secret_header_is_refused_but_not_the_name_of_a_variable():
    secret = replace(HTTP, requests=(replace(HTTP.requests[0], headers=(("Authorization", "Bearer x7"),)),))
    with pytest.raises(UsageError, match=r'Authorization = "\$\{NAME\}"') as refused:
        portable_http(HttpJob(secret, ""), FAR)
    assert "x7" not in str(refused.value)
    assert portable_http(HttpJob(secret, ""), OWN).spec == secret
    named = (("Authorization", "Bearer ${TOKEN}"),)
    job = HttpJob(replace(HTTP, login=(Request("in", "GET", "/", headers=named),)), "")
    assert portable_http(job, FAR) == job


def test_values_of_variables_come_from_the_environment_of_the_node():
    job = portable_http(HttpJob(replace(HTTP, environment=(("TOKEN", "x7"),)), ""), FAR)
    assert job.spec.environment == (("TOKEN", ""),)
    part = part_of_job(PartJob(job, 2, 4), {"TOKEN": "node's own"})
    assert part.spec.environment == (("TOKEN", "node's own"),)
    with pytest.raises(UsageError, match="no environment variable TOKEN"):
        part_of_job(PartJob(job, 2, 4), {})


def test_a_part_is_numbered_keeps_its_hard_end_and_only_the_first_one_vacuums():
    job = sql("host=db.example dbname=shop")
    job = replace(job, spec=replace(job.spec, progress_s=5, part=LoadPart(end_after_ns=7)))
    first, second = (part_of_job(PartJob(job, number, 2), {}) for number in (1, 2))
    assert (first.vacuum, second.vacuum) == ("usual", "none")
    assert second.spec.part == LoadPart(2, 2, end_after_ns=7, lease="-")
    assert second.spec.progress_s is None
