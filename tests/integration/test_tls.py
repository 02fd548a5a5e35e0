"""Connections of the load engine as libpq makes them: encrypted, verified, bound, or refused with a reason.

One real server with TLS; its certificate, and whether it has TLS at all, change from test to test.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from uncork import _native
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.places import server_account
from uncork.errors import ConnectError

pytestmark = pytest.mark.postgres

PASSWORD = "open sesame"

ENCRYPTED = {"name": "s", "sql": "SELECT 1 FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl"}
"""Returns a row an operation if its connection is encrypted, and none otherwise."""


def plan(connection, statements, **changes):
    """Write a load plan. The only place here that knows its shape."""
    written = {
        "connection": connection,
        "driver": "postgres",
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "stop": {"operations": 1},
        "deadline_ns": 60_000_000_000,
        **changes,
    }
    if _native.PLAN_VERSION == 1:
        written["statements"] = statements
    else:
        written["scripts"] = [{"name": "s", "weight": 1, "statements": statements}]
    return json.dumps(written).encode()


def load(address, *statements, parameters=(), **changes):
    """Carry out operations and return the totals."""
    table = pa.table({"p": pa.array(list(parameters), pa.string())})
    request = plan(asdict(address), list(statements or [ENCRYPTED]), **changes)
    return json.loads(_native.run_load(request, table)[0])


def is_encrypted(address):
    totals = load(address)
    assert (totals["outcome"], totals["succeeded"]) == ("complete", 1), totals
    return totals["rows"] == 1


# ---- certificates ----


class Authority:
    """Makes certificates in a folder, by the openssl command."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.certificate = folder / f"{name}.crt"
        self.key = folder / f"{name}.key"
        self._run(
            *("req", "-x509", *self._new_key(self.key), "-out", self.certificate),
            *("-subj", f"/CN={name}", "-days", "3650"),
        )

    def issue(self, name, *, subject="localhost", names="DNS:localhost,IP:127.0.0.1", days=(-1, 30)):
        """Sign a certificate, valid from and to so many days from now; return it and its key."""
        certificate, key, request = (self.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr"))
        self._run("req", *self._new_key(key), "-new", "-subj", f"/CN={subject}", "-out", request)
        settings = self.folder / f"{name}.cnf"
        index = self.folder / f"{name}.index"
        index.write_text("")
        extensions = f"[extensions]\nsubjectAltName = {names}\n" if names else "[extensions]\n"
        settings.write_text(
            f"[ca]\ndefault_ca = here\n[here]\ndatabase = {index}\nnew_certs_dir = {self.folder}\n"
            f"rand_serial = yes\npolicy = any\ndefault_md = sha256\n[any]\ncommonName = supplied\n"
            f"{extensions}"
        )
        begin, end = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + day * 86400)) for day in days)
        self._run(
            *("ca", "-batch", "-notext", "-config", settings, "-in", request, "-out", certificate),
            *("-cert", self.certificate, "-keyfile", self.key, "-startdate", begin, "-enddate", end),
            *(("-extensions", "extensions") if names else ()),
        )
        return certificate, key

    def issue_version_1(self, name):
        """Sign as `openssl x509 -req` does without extensions: a certificate of version 1."""
        certificate, key, request = (self.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr"))
        self._run("req", *self._new_key(key), "-new", "-subj", "/CN=localhost", "-out", request)
        settings = self.folder / "none.cnf"
        settings.write_text("")
        self._run(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key),
            *("-CAcreateserial", "-days", "30", "-extfile", settings, "-out", certificate),
        )
        return certificate, key

    def sign_itself(self, name, *options):
        """Make a certificate that is its own authority, as the quickest recipes do."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        options = options or self._new_key(key)
        subject = ("-subj", "/CN=localhost", "-days", "30", "-addext", "subjectAltName=DNS:localhost")
        self._run("req", "-x509", *options, "-keyout", key, "-nodes", "-out", certificate, *subject)
        return certificate, key

    @staticmethod
    def _new_key(path):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path)

    @staticmethod
    def _run(*words):
        done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Certificates:
    """What the tests present and trust."""

    folder: Path
    authority: Authority
    other: Authority
    right: tuple[Path, Path]
    client: tuple[Path, Path]


@pytest.fixture(scope="module")
def certificates():
    folder = Path(tempfile.mkdtemp(prefix="uc-tls-"))
    folder.chmod(0o755)
    authority = Authority(folder, "authority")
    made = Certificates(
        folder=folder,
        authority=authority,
        other=Authority(folder, "other"),
        right=authority.issue("right"),
        client=authority.issue("client", subject="certuser", names=""),
    )
    yield made
    shutil.rmtree(folder)


# ---- the server ----

RULES = """
local   all all trust
hostssl all certuser all cert
hostssl all tlsuser all trust
host    all tlsuser all reject
hostnossl all plainuser all trust
host    all plainuser all reject
host    all scramuser all scram-sha-256
host    all md5user all md5
host    all clearuser all password
host    all nobodyuser all reject
host    all all all trust
"""


class TlsServer:
    """A server whose certificate changes."""

    def __init__(self, own: EmbeddedServer, certificates: Certificates) -> None:
        self.own = own
        self._certificates = certificates

    def control(self):
        return psycopg.connect(self.own.conninfo(), autocommit=True)

    def address(self, user="anyone", **words):
        """Resolve an address of this server by TCP, as libpq would."""
        words = {"host": "localhost", "port": self.own.port, "user": user, "dbname": "postgres", **words}
        return resolve(psycopg.conninfo.make_conninfo(**words))

    def present(self, certificate, key):
        """Change the server's certificate."""
        self.set(ssl="on", ssl_cert_file=certificate, ssl_key_file=readable(key, self._certificates.folder))

    def set(self, **settings):
        with self.control() as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")
        for name, value in settings.items():
            for _ in range(200):
                with self.control() as connection:
                    if connection.execute(f"SHOW {name}").fetchone() == (str(value),):
                        break
                time.sleep(0.02)
            else:
                raise AssertionError(f"{name} is not {value}: {self.own.log_tail}")


def readable(key, folder):
    """Copy a key to where the server's account owns it."""
    account = server_account()
    copy = folder / f"server-{key.name}"
    shutil.copy(key, copy)
    copy.chmod(0o600)
    if account.change:
        os.chown(copy, account.uid, account.gid)
    return copy


@pytest.fixture(scope="module")
def running(certificates):
    rules = certificates.folder / "pg_hba.conf"
    rules.write_text(RULES)
    certificate, key = certificates.right
    settings = {
        "shared_buffers": "64MB",
        "ssl": True,
        "ssl_cert_file": certificate,
        "ssl_key_file": readable(key, certificates.folder),
        "ssl_ca_file": certificates.authority.certificate,
        "hba_file": rules,
    }
    own = EmbeddedServer(settings)
    own.start()
    server = TlsServer(own, certificates)
    try:
        with server.control() as connection:
            for user in ("anyone", "certuser", "tlsuser", "plainuser", "nobodyuser"):
                connection.execute(f"CREATE ROLE {user} LOGIN")
            for user in ("scramuser", "md5user", "clearuser"):
                kind = "md5" if user == "md5user" else "scram-sha-256"
                connection.execute(f"SET password_encryption = '{kind}'")
                connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        own.stop()


@pytest.fixture
def server(running, certificates, monkeypatch, tmp_path):
    """The server with TLS and its right certificate; no PG* variables and no files in our home."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield running
    running.present(*certificates.right)


# ---- modes ----

REFUSED = None


@pytest.mark.parametrize(
    ("mode", "has_tls", "user", "expected"),
    [
        ("disable", True, "anyone", False),
        ("disable", False, "anyone", False),
        ("disable", True, "tlsuser", REFUSED),
        ("allow", True, "anyone", False),
        ("allow", False, "anyone", False),
        ("allow", True, "tlsuser", True),
        ("allow", False, "tlsuser", REFUSED),
        ("prefer", True, "anyone", True),
        ("prefer", False, "anyone", False),
        ("prefer", True, "plainuser", False),
        ("prefer", True, "nobodyuser", REFUSED),
        ("require", True, "anyone", True),
        ("require", False, "anyone", REFUSED),
        ("require", True, "plainuser", REFUSED),
        ("verify-ca", True, "anyone", True),
        ("verify-ca", False, "anyone", REFUSED),
        ("verify-full", True, "anyone", True),
        ("verify-full", False, "anyone", REFUSED),
    ],
)
def test_each_mode_encrypts_as_libpq_does(server, certificates, mode, has_tls, user, expected):
    if not has_tls:
        server.set(ssl="off")
    roots = {"sslrootcert": certificates.authority.certificate} if mode.startswith("verify") else {}
    address = server.address(user, sslmode=mode, **roots)
    # libpq itself is the witness of what is expected.
    if expected is REFUSED:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(address.conninfo())
        with pytest.raises(ConnectError, match=f"localhost:{server.own.port}"):
            load(address)
        return
    with psycopg.connect(address.conninfo()) as connection:
        assert connection.pgconn.ssl_in_use == expected
    assert is_encrypted(address) == expected


def test_a_unix_socket_is_never_encrypted(server):
    address = server.address(host=server.own.host, sslmode="require")
    assert not is_encrypted(address)


def test_a_server_without_tls_is_named_where_tls_is_demanded(server):
    server.set(ssl="off")
    place = f"localhost:{server.own.port}"
    with pytest.raises(ConnectError, match=rf"{place} does not support TLS, but sslmode require requires it"):
        load(server.address(sslmode="require"))


def test_tls_begins_without_asking_where_that_is_wanted(server):
    address = server.address(sslmode="require", sslnegotiation="direct")
    assert is_encrypted(address)
    server.set(ssl="off")
    with pytest.raises(ConnectError, match="TLS with localhost:"):
        load(address)


# ---- whom to trust ----


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_a_certificate_of_another_authority_is_refused(server, certificates, mode):
    roots = certificates.other.certificate
    with pytest.raises(ConnectError, match=rf'its certificate is not signed by those in "{roots}"'):
        load(server.address(sslmode=mode, sslrootcert=roots))


def test_without_roots_require_trusts_whoever_answers(server, certificates):
    server.present(*certificates.other.issue("stranger", subject="else", names="DNS:elsewhere"))
    assert is_encrypted(server.address(sslmode="require"))


def test_a_certificate_for_another_name_is_refused_only_in_full_verification(server, certificates):
    server.present(*certificates.authority.issue("elsewhere", names="DNS:elsewhere,DNS:*.example"))
    roots = {"sslrootcert": certificates.authority.certificate}
    assert is_encrypted(server.address(sslmode="verify-ca", **roots))
    with pytest.raises(ConnectError, match=r'for "elsewhere", "\*\.example", not for "localhost"'):
        load(server.address(sslmode="verify-full", **roots))
    named = server.address(sslmode="verify-full", host="db.example", hostaddr="127.0.0.1", **roots)
    assert is_encrypted(named)


def test_an_address_and_a_common_name_are_names_too(server, certificates):
    roots = {"sslrootcert": certificates.authority.certificate, "sslmode": "verify-full"}
    assert is_encrypted(server.address(host="127.0.0.1", **roots))
    server.present(*certificates.authority.issue("common", names=""))
    assert is_encrypted(server.address(**roots))
    with pytest.raises(ConnectError, match=r'for "localhost", not for "127\.0\.0\.1"'):
        load(server.address(host="127.0.0.1", **roots))


@pytest.mark.parametrize(
    ("days", "expected"), [((-30, -1), "expired on 20"), ((1, 30), "is not valid before 20")]
)
def test_a_certificate_out_of_its_time_is_refused(server, certificates, days, expected):
    server.present(*certificates.authority.issue("out-of-time", days=days))
    with pytest.raises(ConnectError, match=expected):
        load(server.address(sslmode="verify-ca", sslrootcert=certificates.authority.certificate))
    assert is_encrypted(server.address(sslmode="require"))


def test_a_self_signed_certificate_can_be_its_own_root(server, certificates):
    certificate, key = certificates.authority.sign_itself("itself")
    server.present(certificate, key)
    assert is_encrypted(server.address(sslmode="verify-full", sslrootcert=certificate))
    with pytest.raises(ConnectError, match="not signed by"):
        load(server.address(sslmode="verify-full", sslrootcert=certificates.authority.certificate))


def test_certificates_of_version_1_are_taken(server, certificates):
    server.present(*certificates.authority.issue_version_1("old"))
    assert is_encrypted(server.address(sslmode="require"))
    roots = certificates.authority.certificate
    assert is_encrypted(server.address(sslmode="verify-full", sslrootcert=roots))
    with pytest.raises(ConnectError, match="not signed by"):
        load(server.address(sslmode="verify-ca", sslrootcert=certificates.other.certificate))


def test_roots_in_our_home_are_found(server, certificates, tmp_path):
    folder = tmp_path / ".postgresql"
    folder.mkdir()
    shutil.copy(certificates.authority.certificate, folder / "root.crt")
    assert is_encrypted(server.address(sslmode="verify-full"))
    shutil.copy(certificates.other.certificate, folder / "root.crt")
    with pytest.raises(ConnectError, match="not signed by"):
        load(server.address(sslmode="require"))


def test_the_systems_roots_do_not_know_our_authority(server, certificates, monkeypatch):
    with pytest.raises(ConnectError, match="an authority that the operating system trusts"):
        load(server.address(sslrootcert="system"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority.certificate))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    assert is_encrypted(server.address(sslrootcert="system"))


@pytest.mark.parametrize(("option", "file"), [("sslrootcert", "nothing.crt"), ("sslrootcert", "right.key")])
def test_a_file_that_cannot_be_used_is_named(server, certificates, option, file):
    path = certificates.folder / file
    with pytest.raises(ConnectError, match=rf'{option} "{path}" (cannot be read|contains no certificate)'):
        load(server.address(sslmode="require", **{option: path}))


# ---- who we are ----


def test_a_client_certificate_lets_in(server, certificates):
    certificate, key = certificates.client
    address = server.address("certuser", sslmode="require", sslcert=certificate, sslkey=key)
    assert is_encrypted(address)
    with pytest.raises(ConnectError, match=r"28000|valid client certificate"):
        load(server.address("certuser", sslmode="require"))
    certificate, key = certificates.other.issue("stranger-client", subject="certuser", names="")
    with pytest.raises(ConnectError, match="does not accept the client certificate"):
        load(server.address("certuser", sslmode="require", sslcert=certificate, sslkey=key))
    with pytest.raises(ConnectError, match="is not the key of"):
        load(server.address("certuser", sslmode="require", sslcert=certificates.client[0], sslkey=key))


def test_a_key_that_others_can_read_is_refused(server, certificates):
    certificate, key = certificates.client
    copy = shutil.copy(key, certificates.folder / "open.key")
    copy.chmod(0o644)
    with pytest.raises(ConnectError, match="can be read by others; give it permissions 0600"):
        load(server.address("certuser", sslmode="require", sslcert=certificate, sslkey=copy))


RSA = ("-newkey", "rsa:2048")
SIGNATURES = {
    "ecdsa with sha256": (),
    "ecdsa with sha384": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1", "-sha384"),
    "rsa with sha256": (*RSA, "-sha256"),
    "rsa with sha512": (*RSA, "-sha512"),
    "rsa with sha1": (*RSA, "-sha1"),
    "rsa-pss with sha384": (*RSA, "-sha384", "-sigopt", "rsa_padding_mode:pss"),
}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_passwords_are_bound_to_certificates_of_all_kinds(server, certificates, signature):
    name = signature.replace(" ", "-")
    server.present(*certificates.authority.sign_itself(name, *SIGNATURES[signature]))
    for binding in ("require", "prefer", "disable"):
        address = server.address("scramuser", password=PASSWORD, sslmode="require", channel_binding=binding)
        assert is_encrypted(address), binding
        wrong = server.address("scramuser", password="wrong", sslmode="require", channel_binding=binding)
        with pytest.raises(ConnectError, match=r"scramuser.*28P01"):
            load(wrong)


def test_a_certificate_without_a_hash_cannot_be_bound_to(server, certificates):
    server.present(*certificates.authority.sign_itself("edwards", "-newkey", "ed25519"))
    words = {"password": PASSWORD, "sslmode": "require"}
    assert is_encrypted(server.address("scramuser", **words))
    with pytest.raises(ConnectError, match="signed by an algorithm that has no hash"):
        load(server.address("scramuser", channel_binding="require", **words))


@pytest.mark.parametrize(
    ("user", "mode", "reason"),
    [
        ("scramuser", "disable", "the connection is not encrypted"),
        ("md5user", "require", "a method other than scram-sha-256"),
        ("clearuser", "require", "a method other than scram-sha-256"),
        ("anyone", "require", "accepts the connection without a bound password exchange"),
    ],
)
def test_binding_is_not_given_up_where_it_is_demanded(server, user, mode, reason):
    address = server.address(user, password=PASSWORD, sslmode=mode, channel_binding="require")
    with pytest.raises(psycopg.OperationalError, match="channel binding required"):
        psycopg.connect(address.conninfo())
    with pytest.raises(ConnectError, match=reason) as caught:
        load(address)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("user", ["scramuser", "md5user", "clearuser"])
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_passwords_are_proved_with_and_without_tls(server, user, mode):
    address = server.address(user, password=PASSWORD, sslmode=mode)
    assert is_encrypted(address) == (mode == "require")


def test_refusals_of_both_ways_are_one_message(server):
    with pytest.raises(ConnectError, match=r"SSL encryption.*; without TLS, .*no encryption") as caught:
        load(server.address("nobodyuser", sslmode="prefer"))
    assert "\n" not in str(caught.value)


def test_the_server_sees_our_name_and_settings(server):
    show = {"name": "s", "sql": "SELECT 1 WHERE current_setting('application_name') = $1", "parameters": [0]}
    address = server.address(application_name="shop's load")
    assert load(address, show, parameters=["shop's load"])["rows"] == 1
    show["sql"] = "SELECT 1 WHERE current_setting('timezone') = $1"
    address = server.address(options="-c timezone=Asia/Tokyo")
    assert load(address, show, parameters=["Asia/Tokyo"])["rows"] == 1


# ---- what is sent ----


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_answers_are_the_same_with_and_without_tls(server, protocol):
    rows = "SELECT n, repeat(md5(n::text), 40) FROM generate_series(1, 4000) n"
    statements = [{"name": "large", "sql": rows}, {"name": "small", "sql": "SELECT 1"}]
    changes = {"protocol": protocol, "digest": "ordered", "clients": 3, "stop": {"operations": 6}}
    totals = [load(server.address(sslmode=mode), *statements, **changes) for mode in ("disable", "require")]
    for one in totals:
        assert (one["outcome"], one["succeeded"], one["rows"]) == ("complete", 6, 6 * 4001)
        assert one["received_bytes"] > 6 * 5_000_000
    assert totals[0]["digest"] == totals[1]["digest"]


def test_a_long_row_and_a_long_request_come_whole(server):
    text = "x" * 6_000_000
    length = {"name": "length", "sql": "SELECT 1 WHERE length($1) = 6000000", "parameters": [0]}
    echo = {"name": "echo", "sql": "SELECT $1::text", "parameters": [0]}
    for protocol in ("simple", "extended", "prepared"):
        totals = load(
            *(server.address(sslmode="require"), length, echo),
            **{"parameters": [text], "protocol": protocol, "stop": {"operations": 3}, "digest": "multiset"},
        )
        assert (totals["outcome"], totals["succeeded"], totals["rows"]) == ("complete", 3, 6), totals
        assert totals["sent_bytes"] > 6 * 6_000_000
        assert totals["received_bytes"] > 3 * 6_000_000


def test_many_small_answers_are_found(server):
    echo = {"name": "echo", "sql": "SELECT $1::int", "parameters": [0]}
    changes = {"clients": 8, "threads": 2, "stop": {"operations": 4000}, "digest": "multiset"}
    if _native.PLAN_VERSION > 1:
        changes["pipeline_depth"] = 4
    numbers = [str(n) for n in range(1000)]
    totals = [
        load(server.address(sslmode=mode), echo, parameters=numbers, **changes)
        for mode in ("disable", "require")
    ]
    for one in totals:
        assert (one["outcome"], one["succeeded"], one["rows"]) == ("complete", 4000, 4000)
    assert totals[0]["digest"] == totals[1]["digest"]


def test_errors_and_the_servers_last_words_come_through(server):
    divide = {"name": "divide", "sql": "SELECT 1 / ($1::int % 2)", "parameters": [0]}
    totals = load(server.address(sslmode="require"), divide, parameters=["0", "1"], stop={"operations": 100})
    assert totals["errors"] == {"22012": 50}
    leave = {"name": "leave", "sql": "SELECT pg_terminate_backend(pg_backend_pid())"}
    address = server.address(host="localhost", user="uncork", sslmode="require")
    totals = load(address, leave, stop={"operations": 1})
    assert totals["outcome"] == "connection lost"
    assert "terminating connection" in str(totals)


def test_what_is_given_up_is_cancelled_at_the_server(server):
    sleep = {"name": "sleep", "sql": "SELECT pg_sleep(30)"}
    address = server.address(sslmode="require", application_name="sleeper")
    totals = load(address, sleep, deadline_ns=500_000_000)
    assert totals["outcome"] == "deadline"
    active = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sleeper' AND state = 'active'"
    with server.control() as connection:
        for _ in range(100):
            if connection.execute(active).fetchone() == (0,):
                return
            time.sleep(0.05)
    raise AssertionError("the statement goes on")


def test_many_connections_are_opened_at_once(server):
    totals = load(server.address(sslmode="require"), clients=40, threads=4, stop={"operations": 400})
    assert (totals["outcome"], totals["rows"]) == ("complete", 400)


def test_the_servers_own_word_is_told(server):
    with contextlib.suppress(psycopg.Error), server.control() as connection:
        connection.execute("ALTER ROLE tlsuser CONNECTION LIMIT 2")
    try:
        with pytest.raises(ConnectError, match=r'too many connections for role "tlsuser".*53300'):
            load(server.address("tlsuser", sslmode="require"), clients=5)
        with pytest.raises(ConnectError, match="3D000"):
            load(server.address(dbname="nowhere", sslmode="require"))
    finally:
        with server.control() as connection:
            connection.execute("ALTER ROLE tlsuser CONNECTION LIMIT -1")
