"""nginx in front of the service: HTTP/2 without TLS towards clients, HTTP/1.1 towards the service.

It writes a configuration to FOLDER and replaces itself by nginx. Environment variables: HOST, PORT,
SERVICE_API (the address of the service) and KEEPALIVE_REQUESTS, after which nginx closes a connection
(default: 1 000).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

CONFIGURATION = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    http2_max_concurrent_streams 1000;
    keepalive_requests {requests};
    upstream api {{
        server {api};
        keepalive 100;
        keepalive_requests 1000000;
    }}
    server {{
        listen {host}:{port} http2;
        location / {{
            proxy_pass http://api;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffers 16 64k;
            proxy_busy_buffers_size 128k;
        }}
    }}
}}
"""


def main() -> int:
    """Replace this process by nginx; return the exit status if that is impossible."""
    try:
        host, port = os.environ.get("HOST", "127.0.0.1"), os.environ["PORT"]
        folder, api = Path(os.environ["FOLDER"]), urlsplit(os.environ["SERVICE_API"]).netloc
        requests = int(os.environ.get("KEEPALIVE_REQUESTS", "1000"))
    except KeyError as missing:
        return _refuse(f"{missing.args[0]} is not set")
    except ValueError as wrong:
        return _refuse(f"KEEPALIVE_REQUESTS must be a number: {wrong}")
    nginx = shutil.which("nginx")
    if nginx is None:
        return _refuse("there is no nginx on PATH")
    written = folder / "nginx.conf"
    written.write_text(CONFIGURATION.format(folder=folder, requests=requests, api=api, host=host, port=port))
    os.execv(nginx, [nginx, "-p", str(folder), "-e", "stderr", "-c", str(written)])  # noqa: S606


def _refuse(reason: str) -> int:
    print(f"front: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
