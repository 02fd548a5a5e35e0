INSERT INTO reported (org_id, account_number, cluster, notification_type, state, report, updated_at, notified_at, error_log)
SELECT 1, 1, :value, 1, 1, '{"reports": []}', now(), now(), NULL
  FROM (SELECT md5(:number::text)::uuid::text AS name) AS made;
