\set repository random(1, 2000)
\set version random(0, 19)
SELECT r.id, r.name, r.visibility_id FROM repository AS r JOIN "user" AS u ON u.id = r.namespace_user_id WHERE u.username = 'team-' || (:repository % 100 + 1) AND r.name = 'image-' || :repository AND r.state <> 3;
SELECT t.id, t.name, m.digest, m.manifest_bytes FROM tag AS t JOIN manifest AS m ON m.id = t.manifest_id WHERE t.repository_id = :repository AND t.name = 'v' || :version AND t.lifetime_end_ms IS NULL AND NOT t.hidden;
INSERT INTO logentry3 (kind_id, account_id, repository_id, ip, metadata_json) VALUES (14, :repository % 100 + 1, :repository, '192.0.2.7', '{"tag": "latest"}');
