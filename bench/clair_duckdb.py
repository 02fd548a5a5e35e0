"""Measure the alternative that was considered for Clair: the same update on a column store.

Creates the case's advisories in DuckDB, then times batches: half known, half new, inserted unless known, and
each linked to the update. Each trial is one committed transaction and is undone before the next. The database
is a file; DuckDB runs in this process, without network or server. The rows are already in one of its tables,
so that sending them is not timed. Usage: clair_duckdb.py [stored] [trials].
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb

SIZES = (100, 1_000, 10_000, 100_000)

TEXTS = (
    *("hash_kind", "updater", "name", "description", "links", "severity", "normalized_severity"),
    *(
        "package_name",
        "package_version",
        "package_kind",
        "package_arch",
        "dist_id",
        "dist_name",
        "dist_version",
    ),
    *("dist_version_code_name", "dist_version_id", "dist_pretty_name", "repo_name", "repo_uri"),
    *("fixed_in_version", "version_kind"),
)

ADVISORIES = """
CREATE MACRO advisory(n) AS {{
    'hash_kind': 'md5', 'hash': unhex(md5(n::VARCHAR)), 'updater': 'updater-' || n % 40,
    'name': 'CVE-' || (2000 + n % 25) || '-' || n,
    'description': 'A flaw in the handling of ' || md5(n::VARCHAR)
        || ' lets a remote party read or end what it should not: '
        || repeat(md5(n::VARCHAR)[1:8] || ' ', 8),
    'issued': TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_days((n % 2000)::INTEGER),
    'links': 'https://security.example/advisory/' || md5(n::VARCHAR), 'severity': 'severity ' || n % 5,
    'normalized_severity': ['Unknown', 'Low', 'Medium', 'High', 'Critical'][n % 5 + 1],
    'package_name': 'package-' || md5(n::VARCHAR)[1:4], 'package_version': '', 'package_kind': 'source',
    'package_arch': '', 'dist_id': 'distribution-' || n % 4, 'dist_name': 'Distribution ' || n % 4,
    'dist_version': n % 12 || '.0', 'dist_version_code_name': 'name-' || n % 12,
    'dist_version_id': (n % 12)::VARCHAR, 'dist_pretty_name': 'Distribution ' || n % 4 || ' ' || n % 12,
    'repo_name': '', 'repo_uri': '', 'fixed_in_version': '1.' || n % 90 || '-' || n % 7,
    'version_kind': 'plain'
}};
CREATE SEQUENCE vuln_id;
CREATE TABLE vuln (
    id BIGINT PRIMARY KEY DEFAULT nextval('vuln_id'), {columns}, UNIQUE (hash_kind, hash)
);
INSERT INTO vuln SELECT nextval('vuln_id'), {fields}
  FROM (SELECT advisory(n) AS made FROM range(1, {stored} + 1) AS numbers (n));
CREATE TABLE uo_vuln (uo BIGINT, vuln BIGINT, PRIMARY KEY (uo, vuln));
INSERT INTO uo_vuln SELECT id % 40 + 1, id FROM vuln;
INSERT INTO uo_vuln SELECT (id + 1) % 40 + 1, id FROM vuln WHERE id % 2 = 0;
CREATE TABLE incoming AS SELECT place, {fields}
  FROM (SELECT place, advisory(CASE WHEN place % 2 = 0 THEN place * 7919 % {stored} + 1
                                    ELSE {stored} + place END) AS made
          FROM range(1, least({stored}, 100000) + 1) AS places (place));
CHECKPOINT;
"""

INSERT = """
INSERT INTO vuln ({names}) SELECT {names} FROM incoming WHERE place <= ? ON CONFLICT DO NOTHING
"""
LINK = """
INSERT INTO uo_vuln SELECT 41, vuln.id FROM incoming JOIN vuln USING (hash_kind, hash) WHERE place <= ?
ON CONFLICT DO NOTHING
"""
UNDO = ("DELETE FROM uo_vuln WHERE uo = 41", "DELETE FROM vuln WHERE id > {stored}")


def main(stored: int, trials: int) -> int:
    """Print the median, minimum and maximum time of a batch of each size."""
    names = [*TEXTS[:1], "hash", *TEXTS[1:4], "issued", *TEXTS[4:]]
    types = {"hash": "BLOB", "issued": "TIMESTAMPTZ"}
    made = ADVISORIES.format(
        columns=", ".join(f"{name} {types.get(name, 'VARCHAR')}" for name in names),
        fields=", ".join(f"made.{name} AS {name}" for name in names),
        stored=stored,
    )
    insert = INSERT.format(names=", ".join(names))
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(str(Path(folder) / "clair.duckdb"))
        begun = time.perf_counter()
        connection.execute(made)
        print(f"DuckDB {duckdb.__version__}: {stored} advisories made in {time.perf_counter() - begun:.1f} s")
        for size in (size for size in SIZES if size <= stored):
            seconds = sorted(_trial(connection, insert, size, stored) for _ in range(trials))
            median = statistics.median(seconds)
            print(
                f"{size:>7} rows: {median * 1e3:8.1f} ms [{seconds[0] * 1e3:.1f}, {seconds[-1] * 1e3:.1f}], "
                f"{median / size * 1e6:.1f} µs a row"
            )
        connection.close()
    return 0


def _trial(connection: duckdb.DuckDBPyConnection, insert: str, size: int, stored: int) -> float:
    begun = time.perf_counter()
    connection.execute("BEGIN")
    connection.execute(insert, [size])
    connection.execute(LINK, [size])
    connection.execute("COMMIT")
    seconds = time.perf_counter() - begun
    linked = connection.execute("SELECT count(*) FROM uo_vuln WHERE uo = 41").fetchone()
    if linked != (size,):
        raise SystemExit(f"{linked} advisories are linked, not {size}")
    for statement in UNDO:
        connection.execute(statement.format(stored=stored))
    return seconds


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:3]]
    raise SystemExit(main(*arguments, *(1_000_000, 7)[len(arguments) :]))
