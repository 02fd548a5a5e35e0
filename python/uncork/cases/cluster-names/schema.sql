-- The table of the talk. A row's cluster name is the same UUID for every column type, so that every variant
-- gives the same answers. The report is about 550 bytes of JSON.
CREATE TABLE reported (
    org_id integer NOT NULL,
    account_number integer NOT NULL,
    cluster :type NOT NULL,
    notification_type integer NOT NULL,
    state integer NOT NULL,
    report varchar NOT NULL,
    updated_at timestamp NOT NULL,
    notified_at timestamp NOT NULL,
    error_log varchar,
    PRIMARY KEY (org_id, cluster, notified_at)
);

INSERT INTO reported
SELECT n % 1000, n % 1000, :value, n % 5, n % 4, report,
       timestamp '2026-01-01' + n * interval '1 second', timestamp '2026-01-01' + n * interval '1 second', NULL
  FROM generate_series(1, :rows) AS n,
       LATERAL (SELECT md5(n::text)::uuid::text AS name,
                       format('{"reports": [%s]}', repeat(format('{"rule": "%s"},', md5(n::text)), 12)) AS report) AS made;

:index
