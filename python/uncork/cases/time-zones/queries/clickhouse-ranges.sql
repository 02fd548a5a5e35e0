SELECT time_zone_name, toStartOfHour(local) AS hour, count() AS events, sum(revenue) AS revenue
  FROM (SELECT publisher.time_zone_name AS time_zone_name, event.revenue AS revenue, event.event_time + zone.offset_s AS local
          FROM event
          JOIN publisher ON publisher.id = event.publisher_id
          JOIN time_zone_offset AS zone ON zone.time_zone_name = publisher.time_zone_name
         WHERE event.event_time >= toDateTime(:night, 'UTC') - 50400
           AND event.event_time < toDateTime(:night, 'UTC') + 129600
           AND event.event_time >= zone.starts_at_utc AND event.event_time < zone.ends_at_utc) AS converted
 WHERE local >= toDateTime(:night, 'UTC') AND local < toDateTime(:night, 'UTC') + 86400
 GROUP BY time_zone_name, hour
