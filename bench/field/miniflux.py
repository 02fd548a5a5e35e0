"""Miniflux 2.2: a feed reader in Go, over database/sql and lib/pq.

It is built from the Go module that pins/go.mod and pins/go.sum name. Its scheduler is off.

Known bottlenecks are listed in README.md.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from subject import PINS, Place, Service, Subject, main

TOKEN = "field-token"  # noqa: S105 -- of a service on loopback
_FILL = """
CREATE EXTENSION pgcrypto;
INSERT INTO users (username, password, is_admin)
VALUES ('field', crypt('field-password', gen_salt('bf', 10)), true);
INSERT INTO integrations (user_id) VALUES (1);
INSERT INTO api_keys (user_id, token, description) VALUES (1, 'field-token', 'field');
INSERT INTO categories (user_id, title) SELECT 1, 'Category ' || n FROM generate_series(1, 10) AS n;
INSERT INTO feeds (user_id, category_id, title, feed_url, site_url)
SELECT 1, 1 + n % 10, 'Feed ' || n, 'http://127.0.0.1/feed/' || n, 'http://127.0.0.1/site/' || n
FROM generate_series(1, 200) AS n;
INSERT INTO entries (user_id, feed_id, hash, published_at, title, url, content, author, status, starred, tags,
                     created_at, changed_at, reading_time, document_vectors)
SELECT 1, 1 + n % 200, md5(n::text), moment, title, 'http://127.0.0.1/entry/' || n,
       '<p>' || repeat('Some text about ' || topic || '. ', 30) || '</p>', 'Author ' || n % 300,
       (CASE WHEN n % 4 = 0 THEN 'unread' ELSE 'read' END)::entry_status, n % 50 = 0, ARRAY[topic],
       moment, moment, 3, setweight(to_tsvector(title), 'A') || setweight(to_tsvector(topic), 'B')
FROM (SELECT n, now() - n * interval '11 minutes' AS moment, 'topic' || n % 500 AS topic,
             'Entry ' || n || ' about topic' || n % 500 AS title
      FROM generate_series(1, {rows}) AS n) AS numbered;
INSERT INTO enclosures (user_id, entry_id, url, size, mime_type)
SELECT 1, id, 'http://127.0.0.1/file/' || id || '.mp3', 1000000, 'audio/mpeg' FROM entries;
"""


class Miniflux(Subject):
    """One process, with at most 20 connections."""

    name = "miniflux"
    plants: ClassVar[dict[str, str]] = {
        "no-index": "drops the index on enclosures (entry_id)",
        "one-connection": "DATABASE_MAX_CONNS=1 instead of 20",
        "one-processor": "GOMAXPROCS=1",
        "basic-auth": "the load sends a password, which the service checks with bcrypt at each request",
    }

    def install(self, folder: Path) -> None:
        """Install the service unless it is there."""
        if (folder / "miniflux").exists():
            return
        module = folder / "module"
        module.mkdir(exist_ok=True)
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(PINS / name, module / name)
        build = ["go", "build", "-mod=mod", "-modcacherw", "-o", str(folder / "miniflux"), "miniflux.app/v2"]
        places = {"GOPATH": str(folder / "go"), "GOCACHE": str(folder / "go-cache"), "GOFLAGS": ""}
        subprocess.run(build, cwd=module, check=True, stdout=sys.stderr, env=os.environ | places)

    def fill(self, place: Place) -> None:
        """Create and fill the tables."""
        migrate = [str(place.folder / "miniflux"), "-migrate"]
        subprocess.run(migrate, check=True, stdout=sys.stderr, env=os.environ | self._environment(place))
        place.database.run(_FILL.format(rows=place.rows))

    def prepare(self, place: Place) -> None:
        """Drop or create the planted indexes."""
        if "no-index" in place.plants:
            place.database.run("DROP INDEX IF EXISTS enclosures_entry_id_idx")
        else:
            place.database.run("CREATE INDEX IF NOT EXISTS enclosures_entry_id_idx ON enclosures (entry_id)")

    def service(self, place: Place) -> Service:
        """Start the service."""
        return Service([str(place.folder / "miniflux")], "/healthcheck", self._environment(place))

    def urls(self, place: Place) -> dict[str, str]:
        """Return the paths to load."""
        del place
        return {
            "unread": "/v1/entries?status=unread&limit=100&order=published_at&direction=desc",
            "search": "/v1/entries?search=topic42&limit=20",
            "counters": "/v1/feeds/counters",
            "one": "/v1/entries/4711",
            "me": "/v1/me",
        }

    def headers(self, place: Place) -> dict[str, str]:
        """Authenticate each request."""
        if "basic-auth" in place.plants:
            return {"Authorization": "Basic " + base64.b64encode(b"field:field-password").decode()}
        return {"X-Auth-Token": TOKEN}

    @staticmethod
    def _environment(place: Place) -> dict[str, str]:
        settings = {
            "DATABASE_URL": place.database.dsn + "?sslmode=disable",
            "LISTEN_ADDR": f"127.0.0.1:{place.port}",
            "DISABLE_SCHEDULER_SERVICE": "1",
            "LOG_LEVEL": "error",
        }
        if "one-connection" in place.plants:
            settings["DATABASE_MAX_CONNS"] = "1"
        if "one-processor" in place.plants:
            settings["GOMAXPROCS"] = "1"
        return settings


if __name__ == "__main__":
    main(Miniflux())
