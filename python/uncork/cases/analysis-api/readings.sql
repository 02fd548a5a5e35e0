-- The measurements of each object: 38 channels, hourly for a day.
CREATE TABLE reading (
    object integer,
    channel integer,
    at timestamptz,
    mean real NOT NULL,
    lowest real NOT NULL,
    highest real NOT NULL,
    samples integer NOT NULL,
    PRIMARY KEY (object, channel, at)
);
INSERT INTO reading
SELECT object,
       channel,
       timestamptz '2021-06-01 00:00:00Z' + hour * interval '1 hour',
       level,
       level - 2,
       level + 3,
       3600 - (object + channel + hour) % 7
  FROM generate_series(1, 500) AS object,
       generate_series(1, 38) AS channel,
       generate_series(0, 23) AS hour,
       LATERAL (SELECT (20 + (object * 31 + channel * 17 + hour * 5) % 40)::real AS level) AS made;
