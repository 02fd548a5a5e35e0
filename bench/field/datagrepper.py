"""datagrepper: Fedora's archive of messages, in Flask over datanommer's models (SQLAlchemy 1.4).

Its tables normally lie in TimescaleDB. Two functions replace what it needs of that extension: a
`create_hypertable` that does nothing, and an `approximate_row_count` from the planner's statistics.

Known bottlenecks are listed in README.md.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar

from subject import PINS, Place, Service, Subject, install_python, main

_REPLACEMENTS = """
CREATE FUNCTION create_hypertable(text, text) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION approximate_row_count(regclass) RETURNS bigint LANGUAGE sql AS
  'SELECT reltuples::bigint FROM pg_class WHERE oid = $1';
"""
_CREATE = """
import sys, sqlalchemy, datanommer.models as dm
engine = sqlalchemy.create_engine(sys.argv[1], future=True)
dm.DeclarativeBase.metadata.create_all(engine)
with engine.begin() as connection:
    dm.create_view(connection)
"""
_FILL = """
SELECT setseed(0.5);
INSERT INTO users (id, name) SELECT n, 'user' || n FROM generate_series(1, 500) AS n;
INSERT INTO packages (id, name) SELECT n, 'package-' || n FROM generate_series(1, 3000) AS n;
INSERT INTO messages (id, msg_id, i, topic, timestamp, category, agent_name, source_name, source_version, msg,
                      headers)
SELECT n, '2026-' || md5(n::text), 0, 'org.fedoraproject.prod.' || category || '.' || verb,
       date_trunc('minute', now())::timestamp - n * interval '150 seconds', category,
       'user' || (1 + n % 500), 'datanommer', '1.5.0',
       json_build_object('update', 'FEDORA-' || n, 'note', repeat('message text ', 20), 'build', n % 500),
       jsonb_build_object('sent-at', '2026-01-01T00:00:00+00:00', 'priority', n % 10)
FROM (SELECT n, (ARRAY['bodhi', 'buildsys', 'git', 'koji', 'pagure'])[1 + n % 5] AS category,
             (ARRAY['new', 'change', 'complete', 'comment', 'edit', 'delete', 'tag'])[1 + n % 7] AS verb
      FROM generate_series(1, {rows}) AS n) AS numbered;
INSERT INTO users_messages (user_id, msg_id, msg_timestamp)
SELECT 1 + (id * 7 + part) % 500, id, timestamp FROM messages, generate_series(0, 1) AS part;
INSERT INTO packages_messages (package_id, msg_id, msg_timestamp)
SELECT 1 + (id * 13) % 3000, id, timestamp FROM messages;
REFRESH MATERIALIZED VIEW recent_topics;
"""


class Datagrepper(Subject):
    """Two gunicorn workers, each with one connection in use at a time."""

    name = "datagrepper"
    plants: ClassVar[dict[str, str]] = {
        "no-index": "drops the indexes on the message id of both association tables",
        "one-worker": "one gunicorn worker instead of two",
    }

    def install(self, folder: Path) -> None:
        """Install the service unless it is there."""
        install_python(folder, PINS / "datagrepper.txt")

    def fill(self, place: Place) -> None:
        """Create and fill the tables."""
        place.database.run(_REPLACEMENTS)
        python = place.folder / "venv" / "bin" / "python"
        subprocess.run([str(python), "-c", _CREATE, place.database.dsn], check=True)
        place.database.run(_FILL.format(rows=place.rows))

    def prepare(self, place: Place) -> None:
        """Drop or create the planted indexes."""
        for table in ("users_messages", "packages_messages"):
            if "no-index" in place.plants:
                place.database.run(f"DROP INDEX IF EXISTS ix_{table}_msg_id, ix_{table}_msg_timestamp;")
            else:
                place.database.run(
                    f"CREATE INDEX IF NOT EXISTS ix_{table}_msg_id ON {table} (msg_id);"
                    f"CREATE INDEX IF NOT EXISTS ix_{table}_msg_timestamp ON {table} (msg_timestamp);"
                )

    def service(self, place: Place) -> Service:
        """Start the service."""
        settings = place.folder / "datagrepper.cfg"
        settings.write_text(
            f'DATANOMMER_SQLALCHEMY_URL = "{place.database.dsn}"\nAPP_PATH = "http://127.0.0.1"\n'
        )
        workers = "1" if "one-worker" in place.plants else "2"
        command = [str(place.folder / "venv" / "bin" / "gunicorn"), "--bind", f"127.0.0.1:{place.port}"]
        command += ["--workers", workers, "datagrepper.app:app"]
        return Service(command, "/healthz/live", {"DATAGREPPER_CONFIG": str(settings)})

    def urls(self, place: Place) -> dict[str, str]:
        """Return the paths to load."""
        message = place.database.run("SELECT msg_id FROM messages WHERE id = 4711")
        return {
            "month": "/raw?rows_per_page=100&delta=2592000",
            "latest": "/raw",
            "user": "/raw?user=user42&rows_per_page=20",
            "one": f"/id?id={message}",
            "front": "/",
        }


if __name__ == "__main__":
    main(Datagrepper())
