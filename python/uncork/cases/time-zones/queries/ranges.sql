-- The corrected table: one row per range of one offset, not per hour.
SELECT time_zone_name, date_trunc('hour', local) AS hour, count(*) AS events, sum(revenue) AS revenue
  FROM (SELECT publisher.time_zone_name, event.revenue,
               event.event_time + zone.offset_s * interval '1 second' AS local
          FROM event
          JOIN publisher ON publisher.id = event.publisher_id
          JOIN time_zone_offset AS zone
            ON zone.time_zone_name = publisher.time_zone_name
           AND event.event_time >= zone.starts_at_utc AND event.event_time < zone.ends_at_utc
         WHERE event.event_time >= :night::timestamp - interval '14 hours'
           AND event.event_time < :night::timestamp + interval '36 hours') AS converted
 WHERE local >= :night::timestamp AND local < :night::timestamp + interval '1 day'
 GROUP BY 1, 2
