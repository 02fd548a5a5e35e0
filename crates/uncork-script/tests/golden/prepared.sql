-- A script whose requests a server was asked to log, sent by the extended protocol; see make.sh.
\set one 1
\set half 0.5
\set nothing NULL
\set truth 1 = 1
SELECT :one::int, :one::text, /* ::one */ :half::float8 + :half, :truth::text, :undefined::int, :nothing::text;
SELECT 5 AS five, NULL AS gone, 'x;' AS "text" \gset
SELECT :five::int, :gone::text, :text;
\startpipeline
SELECT :one::int;
SELECT '12:30'::time, 1::int;
\endpipeline
\startpipeline
SELECT :five::int + 1
\endpipeline
