-- New advisories are stored, known ones stay unchanged; each then belongs to this update.
WITH incoming AS (SELECT * FROM :batch),
added AS (
    INSERT INTO vuln (
        hash_kind, hash, updater, name, description, issued, links, severity, normalized_severity, package_name,
        package_version, package_kind, package_arch, dist_id, dist_name, dist_version, dist_version_code_name,
        dist_version_id, dist_pretty_name, repo_name, repo_uri, fixed_in_version, version_kind
    )
    SELECT
        hash_kind, hash, updater, name, description, issued, links, severity, normalized_severity, package_name,
        package_version, package_kind, package_arch, dist_id, dist_name, dist_version, dist_version_code_name,
        dist_version_id, dist_pretty_name, repo_name, repo_uri, fixed_in_version, version_kind
      FROM incoming
    ON CONFLICT (hash_kind, hash) DO NOTHING
    RETURNING id
)
INSERT INTO uo_vuln (uo, vuln)
SELECT 41, id FROM added
UNION ALL
SELECT 41, vuln.id FROM incoming JOIN vuln USING (hash_kind, hash)
ON CONFLICT DO NOTHING
