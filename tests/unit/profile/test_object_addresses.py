"""Addresses of objects, what their names say about time, and how their stores are reached."""

from datetime import UTC, datetime

import pytest

from uncork.errors import UsageError
from uncork.profile.objects.address import LogObject, is_object_address, parse_object_address
from uncork.profile.objects.client import pause_s, settings_of
from uncork.profile.objects.finding import glob_pattern
from uncork.profile.objects.layouts import can_be_within, is_named_as_log, named_times

AZURE = "resourceId=/SUBSCRIPTIONS/1/PROVIDERS/shop/y=2026/m=11/d=27/h=04/m=00/PT1H.json"
CLOUD_SQL = "cloudsql.googleapis.com/postgres.log/2026/11/27/04:00:00_04:59:59_S0.json"


def us(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def objects(*keys, modified="2026-12-31"):
    address = parse_object_address("s3://logs/")
    at = int(datetime.fromisoformat(modified).replace(tzinfo=UTC).timestamp())
    return [LogObject(address.name(key), address, key, 1, at, '"a"') for key in keys]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/a/b", ("s3", "bucket", "a/b", "")),
        ("S3A://bucket", ("s3", "bucket", "", "")),
        ("gcs://bucket/a b/*.log", ("gs", "bucket", "a b/*.log", "")),
        ("az://container/p", ("az", "container", "p", "")),
        ("abfss://container@shop.dfs.core.windows.net/p", ("az", "container", "p", "shop")),
        ("https://host:8443/a%20b/c.log", ("http", "https://host:8443", "a b/c.log", "")),
    ],
)
def test_an_address_says_where_objects_are(text, expected):
    found = parse_object_address(text)
    assert (found.backend, found.bucket, found.key, found.account) == expected
    assert is_object_address(text)


@pytest.mark.parametrize("text", ["/var/log/a.log", "postgresql://h/db", "host=h", "C:\\a", "sftp://h/a"])
def test_other_texts_are_no_addresses_of_objects(text):
    assert not is_object_address(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sftp://host/a", 'unknown scheme "sftp://"'),
        ("s3:///a", "names no bucket"),
        ("s3://buck*/a", "names no bucket"),
        ("s3://me:hush@bucket/a", "names no bucket"),
        ("https://host/", "a web server lists no files"),
        ("https://host/folder/", "a web server lists no files"),
    ],
)
def test_an_address_that_means_nothing_is_refused(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_object_address(text)
    assert "hush" not in str(caught.value)


def test_secrets_of_a_web_address_are_not_shown():
    found = parse_object_address("https://me:hush@host/a.log?sig=hush")
    assert "hush" not in repr(found) and found.shown == "https://host/a.log"
    assert (found.login, found.query) == ("me:hush", "sig=hush")
    assert "hush" not in repr(settings_of(found, {}))
    assert settings_of(found, {}).headers == {"authorization": "Basic bWU6aHVzaA=="}


@pytest.mark.parametrize(
    ("key", "begin", "end"),
    [
        ("error/postgresql.log.2026-11-27-04", "2026-11-27 04:00", None),
        ("error/postgresql.log.2026-11-27-0430.csv.gz", "2026-11-27 04:30", None),
        (CLOUD_SQL, "2026-11-27 04:00", "2026-11-27 05:00"),
        (AZURE, "2026-11-27 04:00", "2026-11-27 05:00"),
        ("pg/postgresql-2026-11-27_040000.log", "2026-11-27 04:00", None),
        ("pg/postgresql_2026_11_27_04_00_00.log", "2026-11-27 04:00", None),
    ],
)
def test_names_of_services_say_when_entries_were_written(key, begin, end):
    found = named_times(key)
    assert found.begin == datetime.fromisoformat(begin).replace(tzinfo=UTC)
    assert found.end == (end and datetime.fromisoformat(end).replace(tzinfo=UTC))
    assert is_named_as_log(key)


@pytest.mark.parametrize(
    "key",
    ["postgresql-Fri.log", "postgresql.log.1", "postgresql.log-20261127.gz", "postgresql.log.2026-13-40-99"],
)
def test_other_names_say_nothing_about_time(key):
    assert named_times(key) is None


def test_objects_outside_a_time_range_are_left_out_by_their_names():
    hours = objects(*(f"error/postgresql.log.2026-11-27-{hour:02}" for hour in range(24)))
    kept = can_be_within(hours, us("2026-11-27 05:30"), us("2026-11-27 06:30"))
    assert [one.key[-2:] for one in kept] == ["05", "06"]
    at_the_edge = can_be_within(hours, us("2026-11-27 06:02"), us("2026-11-27 06:58"))
    assert [one.key[-2:] for one in at_the_edge] == ["05", "06", "07"]
    assert [one.key[-2:] for one in can_be_within(hours, us("2026-11-28 09:00"), None)] == ["23"]
    assert can_be_within(hours, None, None) == tuple(hours)
    exports = objects(CLOUD_SQL, CLOUD_SQL.replace("04:", "06:").replace("04:59", "06:59"), AZURE)
    kept = can_be_within(exports, us("2026-11-27 06:10"), us("2026-11-27 06:20"))
    assert [one.key for one in kept] == [exports[1].key]


def test_names_in_an_unknown_time_zone_leave_out_only_what_no_zone_allows():
    days = objects(*(f"postgresql-2026-11-{day:02}_000000.log" for day in range(20, 30)))
    kept = can_be_within(days, us("2026-11-25 12:00"), us("2026-11-25 13:00"))
    assert [one.key[19:21] for one in kept] == ["24", "25", "26"]


def test_an_object_written_before_the_range_is_left_out_whatever_its_name():
    old, new = objects("a.log", modified="2026-11-26") + objects("b.log", modified="2026-11-28")
    assert can_be_within([old, new], us("2026-11-27"), None) == (new,)
    assert can_be_within([old, new], None, us("2026-11-20")) == (old, new)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("a/*.log", "a/b.log", "a/b/c.log"),
        ("a/**/*.log", "a/b/c/d.log", "b/d.log"),
        ("a/**/*.log", "a/d.log", "a/d.logs"),
        ("a/b?.[lc]og", "a/b1.log", "a/b12.log"),
        ("a/[!b]*", "a/cc", "a/bb"),
        ("a+b/(x)*", "a+b/(x)y", "aab/x"),
    ],
)
def test_globs_stay_within_folders_unless_they_say_otherwise(glob, yes, no):
    assert glob_pattern(glob).fullmatch(yes)
    assert not glob_pattern(glob).fullmatch(no)


@pytest.mark.parametrize(
    ("text", "environment", "config", "plain"),
    [
        ("s3://b", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9/"}, {"endpoint": "http://127.0.0.1:9"},
         True),
        ("s3://b", {"AWS_ENDPOINT_URL": "https://minio"}, {"endpoint": "https://minio"}, False),
        ("s3://b", {"AWS_ENDPOINT_URL": "http://m", "AWS_ALLOW_HTTP": "true"},
         {"endpoint": "http://m"}, True),
        ("s3://b", {}, {}, False),
        ("gs://b", {"STORAGE_EMULATOR_HOST": "localhost:9"},
         {"base_url": "http://localhost:9", "skip_signature": True}, True),
        ("abfss://c@shop.dfs.core.windows.net/",
         {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=x;AccountKey=a==;EndpointSuffix=a.net"},
         {"account_name": "shop", "account_key": "a=="}, False),
        ("http://[::1]:80/a.log", {}, {}, True),
    ],
)  # fmt: skip
def test_the_environment_says_how_to_reach_a_store(text, environment, config, plain):
    found = settings_of(parse_object_address(text), environment)
    assert (found.config, found.allow_http) == (config, plain)


@pytest.mark.parametrize(
    ("text", "environment", "variable"),
    [
        ("s3://b", {"AWS_ENDPOINT_URL": "http://minio:9000"}, "AWS_ALLOW_HTTP"),
        ("s3://b", {"AWS_ENDPOINT_URL": "http://127.0.0.1.example.com"}, "AWS_ALLOW_HTTP"),
        ("gs://b", {"STORAGE_EMULATOR_HOST": "fake:9"}, "GOOGLE_ALLOW_HTTP"),
        ("http://host/a.log", {}, "UNCORK_ALLOW_HTTP"),
    ],
)
def test_http_is_for_loopback_unless_it_is_allowed(text, environment, variable):
    with pytest.raises(UsageError, match=f"unencrypted; use https://, or set {variable}=true"):
        settings_of(parse_object_address(text), environment)


def test_an_endpoint_that_is_no_address_is_refused():
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL=minio:9000 is no address of a server"):
        settings_of(parse_object_address("s3://b"), {"AWS_ENDPOINT_URL": "minio:9000"})


def test_pauses_grow_and_are_spread():
    assert [pause_s(attempt, 0.0) for attempt in range(4)] == [0.1, 0.2, 0.4, 0.8]
    assert pause_s(0, 1.0) == 0.2 and pause_s(50, 1.0) == 15.0
