-- The same rows as in schema.sql.
CREATE TABLE time_zone_offset (time_zone_name String, starts_at_utc DateTime('UTC'), ends_at_utc DateTime('UTC'), offset_s Int32)
ENGINE = MergeTree ORDER BY (time_zone_name, starts_at_utc);
INSERT INTO time_zone_offset VALUES :offsets;

CREATE TABLE publisher (id Int32, time_zone_name String) ENGINE = MergeTree ORDER BY id;
INSERT INTO publisher
SELECT place + zones * turn, time_zone_name
  FROM (SELECT time_zone_name, row_number() OVER (ORDER BY time_zone_name) AS place, count(*) OVER () AS zones
          FROM time_zone_offset WHERE starts_at_utc = toDateTime('2024-01-01 00:00:00', 'UTC')) AS zone
 CROSS JOIN (SELECT number AS turn FROM numbers(100)) AS turns;

CREATE TABLE event (id Int64, event_time DateTime('UTC'), publisher_id Int32, revenue Int32) ENGINE = MergeTree ORDER BY event_time;
INSERT INTO event
SELECT n, toDateTime(['2024-03-10 00:00:00', '2024-03-31 00:00:00', '2024-04-07 00:00:00', '2024-10-06 00:00:00',
                      '2024-10-27 00:00:00', '2024-11-03 00:00:00'][n % 6 + 1], 'UTC') - 50400 + n * 48271 % 180000,
       n * 7919 % (SELECT count() FROM publisher) + 1, n * 31 % 1000
  FROM (SELECT toInt64(number + 1) AS n FROM numbers(:events));
