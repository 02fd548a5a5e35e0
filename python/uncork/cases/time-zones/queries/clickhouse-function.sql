-- Only formatDateTime accepts a zone that differs from row to row: other functions require a constant, and if a setting
-- allows a column they silently answer in UTC.
SELECT time_zone_name, toDateTime(concat(local_hour, ':00:00'), 'UTC') AS hour, count() AS events, sum(revenue) AS revenue
  FROM (SELECT publisher.time_zone_name AS time_zone_name, event.revenue AS revenue,
               formatDateTime(event.event_time, '%Y-%m-%d %H', publisher.time_zone_name) AS local_hour
          FROM event JOIN publisher ON publisher.id = event.publisher_id
         WHERE event.event_time >= toDateTime(:night, 'UTC') - 50400
           AND event.event_time < toDateTime(:night, 'UTC') + 129600) AS converted
 WHERE startsWith(local_hour, substring(:night, 1, 10))
 GROUP BY time_zone_name, local_hour
