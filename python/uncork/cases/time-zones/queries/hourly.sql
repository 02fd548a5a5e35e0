-- As published: the day's bounds from one table, the hour from the other. An hour of UTC is taken for an hour of every
-- zone, which is wrong for half-hour zones.
SELECT hourly.time_zone_name, hourly.hour_at_time_zone AS hour, count(*) AS events, sum(event.revenue) AS revenue
  FROM event
  JOIN publisher ON publisher.id = event.publisher_id
  JOIN time_zone_daily_conversion AS daily
    ON daily.time_zone_name = publisher.time_zone_name AND daily.day = :night::timestamp::date
  JOIN time_zone_hourly_conversion AS hourly
    ON hourly.time_zone_name = publisher.time_zone_name AND hourly.hour_at_utc = date_trunc('hour', event.event_time)
 WHERE event.event_time >= :night::timestamp - interval '14 hours'
   AND event.event_time < :night::timestamp + interval '36 hours'
   AND event.event_time >= daily.day_starts_at_utc AND event.event_time < daily.day_ends_at_utc
 GROUP BY 1, 2
