-- Each event is converted once: OFFSET 0 prevents the planner from converting it again for the condition.
SELECT time_zone_name, date_trunc('hour', local) AS hour, count(*) AS events, sum(revenue) AS revenue
  FROM (SELECT publisher.time_zone_name, event.revenue,
               careful_local_time(event.event_time, publisher.time_zone_name) AS local
          FROM event JOIN publisher ON publisher.id = event.publisher_id
         WHERE event.event_time >= :night::timestamp - interval '14 hours'
           AND event.event_time < :night::timestamp + interval '36 hours'
        OFFSET 0) AS converted
 WHERE local >= :night::timestamp AND local < :night::timestamp + interval '1 day'
 GROUP BY 1, 2
