"""HTTP servers for tests: a real nginx, and scripted ones that misbehave on real sockets."""

import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uncork.engines.ports import free_port

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

_SERVERS = {
    "plain": "listen 127.0.0.1:{port};",
    "two": "listen 127.0.0.1:{port} http2;",
    "limited": "listen 127.0.0.1:{port}; keepalive_requests 1000;",
    "limited_two": "listen 127.0.0.1:{port} http2; keepalive_requests 1000;",
    "tls": "listen 127.0.0.1:{port} ssl http2; ssl_certificate good.crt; ssl_certificate_key good.key;",
    "tls_one": "listen 127.0.0.1:{port} ssl; ssl_certificate good.crt; ssl_certificate_key good.key;",
    "expired": "listen 127.0.0.1:{port} ssl http2; ssl_certificate old.crt; ssl_certificate_key old.key;",
    "two_streams": "listen 127.0.0.1:{port} http2; http2_max_concurrent_streams 2;",
    "sendfile_two": "listen 127.0.0.1:{port} http2; sendfile on;",
    "delayed_one": "listen 127.0.0.1:{port}; sendfile on; tcp_nodelay off;",
    "other": "listen 127.0.0.1:{port} ssl http2; ssl_certificate other.crt; ssl_certificate_key other.key;",
}
_LOCATIONS = """
    root {folder}/files;
    location = /refuse { return 503; }
    location = /move { return 301 /small.txt; }
    location = /switched { if (-f {folder}/down) { return 503; } return 200 "up"; }
    location = /json { default_type application/json; return 200 '{"items": [{"id": 7}], "ok": true}'; }
    location /method { add_header X-Method $request_method; add_header X-Length $http_content_length;
                       return 200 "$request_method $request_uri $http_x_own"; }
    location /object { return 200 "$request_uri"; }
"""


class Nginx:
    """A running nginx: its process, the ports of its servers by kind, its folder, and its certificate.

    ``/switched`` answers 200 while the folder has no file ``down``, else 503.
    """

    def __init__(self, pid: int, ports: dict[str, int], folder: Path) -> None:
        self.pid = pid
        self.ports = ports
        self.folder = folder
        self.cacert = folder / "good.crt"

    def requests(self, kind: str = "plain") -> list[str]:
        """Return the request lines that this server has logged."""
        return (self.folder / f"{kind}.log").read_text().splitlines()

    def new_requests(self, kind: str, before: int, count: int) -> list[str]:
        """Return the lines behind the first `before`; nginx may log an answer after it was read."""
        until = time.monotonic() + 20
        while len(self.requests(kind)) < before + count and time.monotonic() < until:
            time.sleep(0.02)
        return self.requests(kind)[before:]


@contextmanager
def nginx(folder: Path) -> Iterator[Nginx]:
    """Start nginx with a server of each kind, on loopback; it is gone afterwards."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    files = folder / "files"
    files.mkdir()
    (files / "small.txt").write_bytes(b"x" * 101)
    (files / "big.bin").write_bytes(bytes(range(256)) * 600)
    folder.chmod(0o755)
    certificate(folder, "good", 3)
    certificate(folder, "old", -1)
    certificate(folder, "other", 3, "DNS:other.example")
    ports: dict[str, int] = {}
    while len(set(ports.values())) < len(_SERVERS):
        ports = {kind: free_port() for kind in _SERVERS}
    blocks = []
    for kind, text in _SERVERS.items():
        listen = text.replace("{port}", str(ports[kind]))
        log = f"access_log {folder}/{kind}.log line;"
        blocks.append(f"server {{ {listen} {log} {_LOCATIONS.replace('{folder}', str(folder))} }}")
    configuration = f"""
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 2000; }}
http {{
  log_format line '$request';
  keepalive_requests 100000000; sendfile off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fast;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  {" ".join(blocks)}
}}
"""
    (folder / "nginx.conf").write_text(configuration)
    log = (folder / "start.log").open("wb")
    running = subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf")], stdout=log, stderr=log
    )
    try:
        for port in ports.values():
            _await(port, running, folder)
        yield Nginx(running.pid, ports, folder)
    finally:
        running.terminate()
        running.wait(10)
        log.close()


def _await(port: int, running: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and running.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"nginx does not run: {(folder / 'start.log').read_text()}")


def certificate(folder: Path, name: str, days: int, subject: str = "IP:127.0.0.1") -> None:
    """Make a certificate that is valid for so many days from now, or long expired."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test"]
    if days > 0:
        names = ["-addext", f"subjectAltName={subject}", "-addext", "basicConstraints=critical,CA:FALSE"]
        _openssl("req", "-x509", *made, *names, "-days", str(days), "-keyout", key, "-out", certificate)
        return
    # `req` signs nothing for the past; `ca` does, and wants a registry.
    asked, extensions, registry = folder / f"{name}.csr", folder / f"{name}.ext", folder / "ca.cnf"
    extensions.write_text(f"subjectAltName={subject}\n")
    (folder / "index.txt").write_text("")
    registry.write_text(
        f"[ca]\ndefault_ca=c\n[c]\nnew_certs_dir={folder}\ndatabase={folder}/index.txt\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
    )
    _openssl("req", *made, "-keyout", key, "-out", asked)
    dates = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"]
    signed = ["-in", asked, "-out", certificate, "-extfile", extensions, "-notext"]
    _openssl("ca", "-batch", "-selfsign", "-config", registry, "-keyfile", key, *signed, *dates)


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@contextmanager
def scripted(talk: Callable[[socket.socket, int], None]) -> Iterator[int]:
    """Listen on loopback, and let `talk` have each connection and its number; yield the port.

    What `talk` meets when the other side goes away is nobody's concern.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    over = threading.Event()
    threads: list[threading.Thread] = []

    def carry(connection: socket.socket, number: int) -> None:
        with connection:
            try:
                talk(connection, number)
            except OSError:
                return

    def accept() -> None:
        number = 0
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(20)
            thread = threading.Thread(target=carry, args=(connection, number), daemon=True)
            thread.start()
            threads.append(thread)
            number += 1

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join(10)
        for thread in threads:
            thread.join(25)


def answer(connection: socket.socket, reply: bytes = OK, count: int = 10**9) -> None:
    """Answer so many requests of HTTP/1.1 that have no body, one by one."""
    received = b""
    while count:
        part = connection.recv(65536)
        if not part:
            return
        received += part
        while b"\r\n\r\n" in received and count:
            _, received = received.split(b"\r\n\r\n", 1)
            connection.sendall(reply)
            count -= 1


def reset(connection: socket.socket) -> None:
    """See to it that closing the connection resets it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Counts:
    """Bytes that crossed a proxy, to the server and from it."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0


@contextmanager
def proxy(port: int) -> Iterator[tuple[int, Counts]]:
    """Pass connections on to a port of loopback; yield the proxy's port, and the bytes that it counts."""
    counts = Counts()
    lock = threading.Lock()

    def pump(source: socket.socket, target: socket.socket, way: str) -> None:
        while part := source.recv(1 << 18):
            with lock:
                setattr(counts, way, getattr(counts, way) + len(part))
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)

    def talk(client: socket.socket, number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as server:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up = threading.Thread(target=pump_quietly, args=(client, server, "sent"), daemon=True)
            up.start()
            pump_quietly(server, client, "received")
            up.join(20)

    def pump_quietly(source: socket.socket, target: socket.socket, way: str) -> None:
        with suppress(OSError):
            pump(source, target, way)

    with scripted(talk) as own:
        yield own, counts
