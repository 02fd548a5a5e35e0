"""`uncork profile logs` on objects, as a person runs it: in moto's S3, and on a server that misbehaves."""

import gzip
import http.client
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from bench.servers.s3_server import BUCKET, s3_server

from fakes.log_fleet import PREFIX, fleet_log
from fakes.object_server import object_server

FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs"
NAME = "same-events.stderr.log.gz"
NAMED = "postgresql.log.2026-11-27"
TEXT = gzip.decompress((FIXTURES / NAME).read_bytes())


@pytest.fixture
def server():
    with object_server() as running:
        yield running


def put(server, key, content):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("PUT", f"/{BUCKET}/{key}", content, {"content-type": "application/octet-stream"})
    assert connection.getresponse().status == 200
    connection.close()


def test_logs_in_a_bucket_are_reported_as_local_ones_are(uncork):
    with s3_server() as server:
        put(server, f"error/{NAME}", (FIXTURES / NAME).read_bytes())
        put(server, "error/notes.bin", b"\0")
        bucket = f"s3://{BUCKET}/error/"
        done = uncork("profile", "logs", bucket, "-j", "1", "--json", env=server.environment)
        advice = uncork("advise", bucket, "-q", env=server.environment)
        none = uncork("profile", "logs", f"s3://{BUCKET}/none/", env=server.environment)
    assert done.returncode == 0, done.stderr
    local = json.loads(uncork("profile", "logs", FIXTURES / NAME, "-j", "1", "--json").stdout)
    assert json.loads(done.stdout)["skipped"] == [f"{bucket}notes.bin"]
    found = json.loads(done.stdout.replace(f"{bucket}{NAME}", str(FIXTURES / NAME)))
    assert {name for name in found if found[name] != local[name]} <= {"run", "missing", "skipped", "warnings"}
    assert advice.returncode == 0, advice.stderr
    assert none.returncode == 1
    assert none.stderr == f"uncork: s3://{BUCKET}/none/: no object has this name or prefix\n"


def test_an_object_that_cannot_be_read_to_its_end_is_named(uncork, server):
    server.put("a.log", TEXT)
    server.put("b.log", TEXT)
    server.faults["a.log", 0] = ["403"] * 2  # also of its beginning
    done = uncork("profile", "logs", "s3://logs/", env=server.s3)
    assert done.returncode == 2
    said = " ".join(done.stdout.split())
    assert "s3://logs/a.log" in said and "access is forbidden (403 SlowDown)" in said


def test_a_signed_address_is_stored_without_its_signature(uncork, server):
    server.put("a.log", TEXT)
    address = f"http://127.0.0.1:{server.port}/logs/a.log"
    done = uncork("profile", "logs", f"{address}?X-Amz-Signature=hush", "-q")
    assert done.returncode == 0, done.stderr
    written = b"".join(path.read_bytes() for path in uncork.runs[0].rglob("*") if path.is_file())
    assert b"hush" not in written
    assert "SIGNATURE:?" in (uncork.runs[0] / "manifest.json").read_text()


def test_objects_are_not_followed(uncork, server):
    done = uncork("profile", "logs", "s3://logs/", "--follow", env=server.s3)
    assert done.returncode == 1
    assert done.stderr == "uncork: --follow reads files and folders, not objects such as s3://logs/\n"


def test_ctrl_c_keeps_what_has_arrived(uncork, server):
    server.put(f"{NAMED}-01", TEXT)
    server.put(f"{NAMED}-02", TEXT)
    server.put(f"{NAMED}-03", TEXT)
    server.silent[f"{NAMED}-03"] = 0
    for name, value in server.s3.items():
        uncork.environment[name] = value
    process = uncork.start("profile", "logs", "s3://logs/")
    until = time.monotonic() + 60
    while f"{NAMED}-03" not in {key for key, _, _ in server.ranges} and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(1)  # the others have long arrived
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    facts = json.loads((uncork.runs[0] / "facts.json").read_text())
    assert facts["stopped"] and facts["entries"] > 0


def test_a_killed_command_goes_on_with_what_it_had_not_read(uncork, server):
    for number in range(4):
        server.put(f"{NAMED}-0{number}", fleet_log(random.Random(number), 0, number, 200).encode())
    server.silent[f"{NAMED}-02"] = 0
    for name, value in server.s3.items():
        uncork.environment[name] = value
    words = ("profile", "logs", "s3://logs/", "-p", PREFIX)
    process = uncork.start(*words, "--processes", "2")
    kept, until = uncork.folder / "runs" / ".unfinished", time.monotonic() + 60
    while len(list(kept.glob("*[!w]"))) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    server.silent.clear()
    server.ranges.clear()
    done = uncork(*words, "--processes", "2", "--json")
    assert "3 of 4 parts of the logs were read before an interruption" in done.stderr
    assert {key for key, _, _ in server.ranges} == {f"{NAMED}-02"} and not kept.exists()
    whole = json.loads(uncork(*words, "-j", "1", "--json").stdout)
    found = json.loads(done.stdout)
    assert {name for name in found if found[name] != whole[name]} <= {"run", "missing", "findings"}
