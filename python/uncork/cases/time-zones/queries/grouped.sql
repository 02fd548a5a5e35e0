-- Fewer conversions instead of cheaper ones: every offset is a multiple of a quarter of an hour, so events of one zone
-- and quarter are converted together.
SELECT time_zone_name, date_trunc('hour', local) AS hour, sum(events)::bigint AS events, sum(revenue)::bigint AS revenue
  FROM (SELECT time_zone_name, (quarter AT TIME ZONE 'UTC') AT TIME ZONE time_zone_name AS local, events, revenue
          FROM (SELECT publisher.time_zone_name, date_bin('15 minutes', event.event_time, timestamp '2024-01-01') AS quarter,
                       count(*) AS events, sum(event.revenue) AS revenue
                  FROM event JOIN publisher ON publisher.id = event.publisher_id
                 WHERE event.event_time >= :night::timestamp - interval '14 hours'
                   AND event.event_time < :night::timestamp + interval '36 hours'
                 GROUP BY 1, 2
                OFFSET 0) AS quarters) AS converted
 WHERE local >= :night::timestamp AND local < :night::timestamp + interval '1 day'
 GROUP BY 1, 2
