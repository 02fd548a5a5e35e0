-- The same rows as in schema.sql.
CREATE TABLE time_zone_offset (time_zone_name text, starts_at_utc timestamp, ends_at_utc timestamp, offset_s integer);
INSERT INTO time_zone_offset VALUES :offsets;

CREATE TABLE publisher AS
SELECT (place + zones * (turn - 1))::integer AS id, time_zone_name
  FROM (SELECT time_zone_name, row_number() OVER (ORDER BY time_zone_name) AS place, count(*) OVER () AS zones
          FROM time_zone_offset WHERE starts_at_utc = timestamp '2024-01-01') AS zone,
       range(1, 101) AS turns (turn);

CREATE TABLE night (place integer, day timestamp);
INSERT INTO night VALUES
    (0, '2024-03-10'), (1, '2024-03-31'), (2, '2024-04-07'), (3, '2024-10-06'), (4, '2024-10-27'), (5, '2024-11-03');

CREATE TABLE event AS
SELECT n AS id, day - interval 14 hours + to_seconds(n * 48271 % 180000) AS event_time,
       (n * 7919 % (SELECT count(*) FROM publisher) + 1)::integer AS publisher_id, (n * 31 % 1000)::integer AS revenue
  FROM range(1, :events + 1) AS made (n) JOIN night ON place = n % 6
 ORDER BY 2;

CREATE TABLE time_zone_hourly_conversion AS
SELECT hour_at_utc, time_zone_name, date_trunc('hour', hour_at_utc + to_seconds(offset_s)) AS hour_at_time_zone
  FROM (SELECT timestamp '2024-01-01' + to_hours(h) AS hour_at_utc FROM range(8784) AS hours (h)) AS hours
  JOIN time_zone_offset ON hour_at_utc >= starts_at_utc AND hour_at_utc < ends_at_utc;

-- Every offset is a multiple of a quarter of an hour: one row per quarter is right for every zone.
CREATE TABLE time_zone_quarter_conversion AS
SELECT quarter_at_utc, time_zone_name, quarter_at_utc + to_seconds(offset_s) AS quarter_at_time_zone
  FROM (SELECT timestamp '2024-01-01' + to_minutes(15 * q) AS quarter_at_utc FROM range(35136) AS quarters (q)) AS quarters
  JOIN time_zone_offset ON quarter_at_utc >= starts_at_utc AND quarter_at_utc < ends_at_utc;
