-- Raw events are in UTC, each belongs to a publisher, and each publisher has a time zone. The events fall into the 50
-- hours in which some zone has the day of `night`: days on which zones switch. Every number is computed from n, so that
-- all engines hold the same rows.
CREATE TABLE time_zone_offset (
    time_zone_name text NOT NULL,
    starts_at_utc timestamp NOT NULL,
    ends_at_utc timestamp NOT NULL,
    offset_s integer NOT NULL,
    PRIMARY KEY (time_zone_name, starts_at_utc)
);

INSERT INTO time_zone_offset
SELECT zone, start_utc::timestamp, end_utc::timestamp, offset_s FROM (VALUES :offsets) AS made (zone, start_utc, end_utc, offset_s);

CREATE TABLE publisher (id integer PRIMARY KEY, time_zone_name text NOT NULL);

INSERT INTO publisher
SELECT place + zones * (turn - 1), time_zone_name
  FROM (SELECT time_zone_name, row_number() OVER (ORDER BY time_zone_name COLLATE "C") AS place, count(*) OVER () AS zones
          FROM time_zone_offset WHERE starts_at_utc = '2024-01-01') AS zone,
       generate_series(1, 100) AS turn;

CREATE TABLE night (place integer PRIMARY KEY, day timestamp NOT NULL);

INSERT INTO night VALUES
    (0, '2024-03-10'), (1, '2024-03-31'), (2, '2024-04-07'), (3, '2024-10-06'), (4, '2024-10-27'), (5, '2024-11-03');

CREATE TABLE event (id bigint NOT NULL, event_time timestamp NOT NULL, publisher_id integer NOT NULL, revenue integer NOT NULL);

INSERT INTO event
SELECT n, day - interval '14 hours' + n * 48271 % 180000 * interval '1 second',
       n * 7919 % (SELECT count(*) FROM publisher) + 1, n * 31 % 1000
  FROM generate_series(1, :events::bigint) AS made (n) JOIN night ON place = n % 6
 ORDER BY 2;

CREATE INDEX event_time ON event (event_time);

-- The published tables: one row per zone and day, one row per zone and hour.
CREATE TABLE time_zone_daily_conversion (
    time_zone_name text NOT NULL,
    day date NOT NULL,
    day_starts_at_utc timestamp NOT NULL,
    day_ends_at_utc timestamp NOT NULL,
    PRIMARY KEY (time_zone_name, day)
);

INSERT INTO time_zone_daily_conversion
SELECT time_zone_name, day,
       min(starts_at_utc) FILTER (WHERE edge = 'start'), min(starts_at_utc) FILTER (WHERE edge = 'end')
  FROM (SELECT zone.time_zone_name, day::date AS day, edge,
               min(wall - zone.offset_s * interval '1 second') AS starts_at_utc
          FROM time_zone_offset AS zone,
               generate_series(timestamp '2024-01-02', '2024-12-30', interval '1 day') AS day,
               LATERAL (VALUES ('start', day), ('end', day + interval '1 day')) AS edges (edge, wall)
         WHERE wall - zone.offset_s * interval '1 second' >= zone.starts_at_utc
           AND wall - zone.offset_s * interval '1 second' < zone.ends_at_utc
         GROUP BY 1, 2, 3) AS edges
 GROUP BY 1, 2;

CREATE TABLE time_zone_hourly_conversion (
    hour_at_utc timestamp NOT NULL,
    time_zone_name text NOT NULL,
    hour_at_time_zone timestamp NOT NULL,
    day date NOT NULL,
    PRIMARY KEY (hour_at_utc, time_zone_name)
);

INSERT INTO time_zone_hourly_conversion
SELECT hour_at_utc, time_zone_name, date_trunc('hour', hour_at_utc + offset_s * interval '1 second'),
       (hour_at_utc + offset_s * interval '1 second')::date
  FROM generate_series(timestamp '2024-01-01', '2024-12-31 23:00', interval '1 hour') AS hour_at_utc
  JOIN time_zone_offset ON hour_at_utc >= starts_at_utc AND hour_at_utc < ends_at_utc;

-- The usual conversion.
CREATE FUNCTION local_time(at_utc timestamp, zone text) RETURNS timestamp STABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (at_utc AT TIME ZONE 'UTC') AT TIME ZONE zone;
END $$;

-- The same, but every call checks whether the rules have changed, as C libraries do if TZ is not set: one system call
-- per row. It stands for the lock that Vertica's function takes in the C library.
CREATE FUNCTION careful_local_time(at_utc timestamp, zone text) RETURNS timestamp STABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_stat_file('PG_VERSION');
    RETURN (at_utc AT TIME ZONE 'UTC') AT TIME ZONE zone;
END $$;
