-- The published idea with a correct step: equality joins, as with the hourly table.
SELECT quarters.time_zone_name, date_trunc('hour', quarters.quarter_at_time_zone) AS hour,
       count(*) AS events, sum(event.revenue) AS revenue
  FROM event
  JOIN publisher ON publisher.id = event.publisher_id
  JOIN time_zone_quarter_conversion AS quarters
    ON quarters.time_zone_name = publisher.time_zone_name
   AND quarters.quarter_at_utc = time_bucket(interval 15 minutes, event.event_time)
 WHERE event.event_time >= :night::timestamp - interval 14 hours
   AND event.event_time < :night::timestamp + interval 36 hours
   AND quarters.quarter_at_utc >= :night::timestamp - interval 14 hours
   AND quarters.quarter_at_utc < :night::timestamp + interval 36 hours
   AND quarters.quarter_at_time_zone >= :night::timestamp
   AND quarters.quarter_at_time_zone < :night::timestamp + interval 1 day
 GROUP BY 1, 2
