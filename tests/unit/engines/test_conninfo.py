"""Where a server is, resolved as libpq would, without a server."""

import os
import socket

import psycopg
import pytest

from uncork.engines import conninfo
from uncork.engines.conninfo import Address, resolve
from uncork.errors import ConnectError, UsageError


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A home of our own and no PG* variables, so that only what a test sets counts."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(path, text, mode=0o600):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_uri_and_words_name_the_same_place():
    expected = Address(
        host="db.example", port=5433, user="tester", database="shop", password="p", sslmode="require"
    )
    assert resolve("postgresql://tester:p@db.example:5433/shop?sslmode=require") == expected
    assert resolve("host=db.example port=5433 user=tester dbname=shop password=p sslmode=require") == expected


def test_nothing_named_is_libpqs_default():
    address = resolve("host=db.example")
    user = address.user
    assert address == Address(host="db.example", port=5432, user=user, database=user)
    assert resolve("", host="db.example", user="other").database == "other"


def test_variables_come_after_the_string_and_words_before_it(monkeypatch):
    monkeypatch.setenv("PGHOST", "variable")
    monkeypatch.setenv("PGPORT", "1111")
    monkeypatch.setenv("PGDATABASE", "variable")
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGAPPNAME", "shop")
    address = resolve("dbname=string port=2222", port=3333)
    assert (address.host, address.database, address.port) == ("variable", "string", 3333)
    assert (address.sslmode, address.application_name) == ("disable", "shop")


def test_a_service_comes_before_variables(monkeypatch, tmp_path):
    file = write(tmp_path / "services", "[shop]\nhost=service\nport=4444\nchannel_binding=disable\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.setenv("PGPORT", "1111")
    address = resolve("service=shop")
    assert (address.host, address.port, address.channel_binding) == ("service", 4444, "disable")
    monkeypatch.setenv("PGSERVICE", "shop")
    assert resolve("port=5555").port == 5555
    with pytest.raises(ConnectError, match='definition of service "nowhere" not found'):
        resolve("service=nowhere")


def test_the_password_file_is_read_by_libpqs_rules(monkeypatch, capfd, tmp_path):
    file = write(tmp_path / ".pgpass", "other:*:*:*:wrong\ndb.example:5432:shop:tester:open\\:sesame\n")
    wanted = "host=db.example user=tester dbname=shop"
    assert resolve(wanted).password == "open:sesame"
    assert resolve(wanted + " password=given").password == "given"
    assert resolve(wanted, dbname="elsewhere").password is None
    file.chmod(0o644)
    assert resolve(wanted).password is None
    assert "group or world access" in capfd.readouterr().err
    other = write(tmp_path / "passwords", "*:*:*:*:variable\n")
    monkeypatch.setenv("PGPASSFILE", str(other))
    assert resolve(wanted).password == "variable"


def test_a_password_does_not_show():
    address = resolve("postgresql://tester:sesame@db.example/shop")
    assert address.password == "sesame"
    assert "sesame" not in repr(address)
    for wrong in (
        "host=db.example password=open sesame",
        "postgresql://tester:sesame@[::1/shop",
        "postgresql://tester:sesame%zz@db.example/shop",
        'host=db.example password=open sesame"quoted',
    ):
        with pytest.raises(ConnectError, match="the connection string is not valid") as caught:
            resolve(wrong)
        assert "sesame" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(("wrong", "message"), [
    ("host=x hots=y", 'invalid connection option "hots"'),
    ("host=x sslmode=always", 'invalid sslmode value: "always"'),
    ("host=x channel_binding=maybe", 'invalid channel_binding value: "maybe"'),
    ("host=x sslrootcert=system sslmode=require", "weak sslmode"),
    ("host=x port=many", 'port "many" is not a number from 1 to 65535'),
    ("host=x connect_timeout=soon", 'connect_timeout "soon" is not a number'),
    ("host=x sslmode=verify-ca", "set sslrootcert"),
    ("hostaddr=127.0.0.1 sslmode=verify-full sslrootcert=system", "needs the server's name"),
])  # fmt: skip
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises(ConnectError, match=message):
        resolve(wrong)


@pytest.mark.parametrize(("option", "value"), [
    ("host", "a,b"),
    ("port", "1,2"),
    ("gssencmode", "require"),
    ("require_auth", "scram-sha-256"),
    ("sslcrl", "/somewhere"),
    ("target_session_attrs", "primary"),
    ("ssl_min_protocol_version", "TLSv1.3"),
    ("min_protocol_version", "3.2"),
])  # fmt: skip
def test_a_demand_that_load_cannot_fulfil_is_refused(option, value):
    words = {"host": "a,b", option: value} if option == "port" else {"host": "a", option: value}
    text = " ".join(f"{name}={text}" for name, text in words.items())
    with pytest.raises(UsageError, match=r"name one server|remove the option"):
        resolve(text)


def test_demands_that_load_fulfils_pass():
    text = "host=a gssencmode=prefer target_session_attrs=any ssl_min_protocol_version=TLSv1.2 keepalives=0"
    assert resolve(text).host == "a"


def test_without_a_host_it_is_the_folder_with_the_socket(monkeypatch, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    monkeypatch.setattr(conninfo, "SOCKET_FOLDERS", (str(first), str(second)))
    default = resolve("port=6543").host
    assert default.startswith("/")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(second / ".s.PGSQL.6543"))
        assert resolve("port=6543").host == str(second)
        assert resolve("port=6544").host == default
    assert resolve("host=/somewhere").on_socket
    assert not resolve("host=/somewhere hostaddr=127.0.0.1").on_socket


def test_certificate_files_at_home_are_used(home):
    folder = home / ".postgresql"
    write(folder / "root.crt", "")
    assert resolve("host=x").sslrootcert == str(folder / "root.crt")
    assert resolve("host=x").sslcert is None
    assert resolve("host=x sslmode=verify-ca").sslrootcert == str(folder / "root.crt")
    write(folder / "postgresql.crt", "")
    address = resolve("host=x")
    assert address.sslcert == str(folder / "postgresql.crt")
    assert address.sslkey == str(folder / "postgresql.key")
    address = resolve("host=x sslrootcert=/r sslcert=/c sslkey=/k sslsni=0")
    assert (address.sslrootcert, address.sslcert, address.sslkey) == ("/r", "/c", "/k")
    assert not address.sslsni
    assert resolve("host=x sslcertmode=disable").sslcert is None


def test_the_operating_systems_roots_mean_full_verification():
    address = resolve("host=db.example sslrootcert=system")
    assert (address.sslmode, address.sslrootcert) == ("verify-full", "system")


@pytest.mark.parametrize(
    ("text", "expected"), [("", 10_000_000_000), ("3", 3_000_000_000), ("0", 0), ("-1", 0)]
)
def test_the_time_to_connect_is_bounded_unless_asked_otherwise(text, expected):
    words = f"host=x connect_timeout={text}" if text else "host=x"
    assert resolve(words).connect_timeout_ns == expected


def test_variables_that_are_settings_go_to_the_server(monkeypatch):
    monkeypatch.setenv("PGTZ", "Europe/Berlin")
    monkeypatch.setenv("PGDATESTYLE", "ISO, DMY")
    monkeypatch.setenv("PGGEQO", "default")
    address = resolve("host=x options='-c work_mem=1MB'")
    assert address.options == "-c work_mem=1MB -c timezone=Europe/Berlin -c datestyle=ISO,\\ DMY"


def test_an_address_leads_libpq_to_the_same_place():
    text = (
        "host=db.example hostaddr=127.0.0.1 port=5433 user=tester dbname=shop password=p options='-c a=b' "
        "sslmode=verify-full sslrootcert=/r sslcert=/c sslkey=/k sslsni=0 channel_binding=require "
        "connect_timeout=3 application_name=load sslnegotiation=direct"
    )
    address = resolve(text)
    assert resolve(address.conninfo()) == address
    assert resolve(address.conninfo("other")).database == "other"
    given = psycopg.conninfo.conninfo_to_dict(text)
    assert psycopg.conninfo.conninfo_to_dict(address.conninfo()) == given
