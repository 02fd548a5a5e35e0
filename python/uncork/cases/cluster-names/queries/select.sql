SELECT org_id, account_number, notification_type, state, report, updated_at, notified_at, error_log
  FROM reported
 WHERE cluster = :cluster;
