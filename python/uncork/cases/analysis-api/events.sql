-- The events of each object: a hundred, every tenth one still open.
CREATE TABLE event (
    id integer PRIMARY KEY,
    object integer NOT NULL,
    raised_at timestamptz NOT NULL,
    level integer NOT NULL,
    open boolean NOT NULL,
    text text NOT NULL
);
INSERT INTO event
SELECT n,
       1 + n % 500,
       timestamptz '2021-01-01 00:00:00Z' + n * interval '4 minutes',
       1 + n % 4,
       n / 500 % 10 = 0,
       'event ' || md5(n::text)
  FROM generate_series(1, 50000) AS n;
CREATE INDEX event_object ON event (object, raised_at);
