-- As published, an hour of UTC is taken for an hour of every zone; wrong for half-hour zones.
SELECT hourly.time_zone_name, hourly.hour_at_time_zone AS hour, count(*) AS events, sum(event.revenue) AS revenue
  FROM event
  JOIN publisher ON publisher.id = event.publisher_id
  JOIN time_zone_hourly_conversion AS hourly
    ON hourly.time_zone_name = publisher.time_zone_name AND hourly.hour_at_utc = date_trunc('hour', event.event_time)
 WHERE event.event_time >= :night::timestamp - interval 14 hours
   AND event.event_time < :night::timestamp + interval 36 hours
   AND hourly.hour_at_time_zone >= :night::timestamp AND hourly.hour_at_time_zone < :night::timestamp + interval 1 day
 GROUP BY 1, 2
