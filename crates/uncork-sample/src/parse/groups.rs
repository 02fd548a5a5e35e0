//! Control groups, of both versions.

/// The two versions of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Hierarchy {
    /// One hierarchy per controller.
    V1,
    /// A unified hierarchy.
    V2,
}

/// The place of a process' group for one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupPath<'a> {
    pub(crate) hierarchy: Hierarchy,
    /// Folders below `/sys/fs/cgroup` where the hierarchy may be mounted, the likeliest first.
    pub(crate) mounts: &'static [&'static str],
    /// The group within the hierarchy, beginning with a slash.
    pub(crate) path: &'a str,
}

/// Parse from `/proc/<pid>/cgroup` the places of a process' group for a controller (`cpu` or
/// `memory`), the likeliest first: on a hybrid system version 1 has the controllers.
pub(crate) fn group_paths<'a>(cgroup: &'a str, controller: &str) -> Vec<GroupPath<'a>> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            found.push(GroupPath {
                hierarchy: Hierarchy::V2,
                mounts: &["", "unified"],
                path,
            });
        } else if controllers.split(',').any(|one| one == controller) {
            let mounts: &[&str] = match controller {
                "cpu" => &["cpu", "cpu,cpuacct", "cpuacct,cpu"],
                _ => &["memory"],
            };
            let group = GroupPath {
                hierarchy: Hierarchy::V1,
                mounts,
                path,
            };
            found.insert(0, group);
        }
    }
    found
}

/// Return a group and its ancestors, up to the root. In a container the path may name a group that
/// is not mounted; the root is then our own.
pub(crate) fn lineage(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path.trim_matches('/'));
    std::iter::from_fn(move || {
        let here = rest?;
        rest = match here.rsplit_once('/') {
            Some((above, _)) => Some(above),
            None if here.is_empty() => None,
            None => Some(""),
        };
        Some(here)
    })
}

/// The quota counts of `cpu.stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuStat {
    pub(crate) periods: u64,
    pub(crate) throttled_periods: u64,
    pub(crate) throttled_ns: u64,
    /// Periods in which saved time exceeded the quota; since Linux 5.14.
    pub(crate) burst_periods: Option<u64>,
    pub(crate) burst_ns: Option<u64>,
}

/// Parse `cpu.stat`; `None` if the group has no quota.
pub(crate) fn parse_cpu_stat(text: &str) -> Option<CpuStat> {
    let throttled_ns = match counter(text, "throttled_time") {
        Some(nanoseconds) => nanoseconds,
        None => counter(text, "throttled_usec")? * 1_000,
    };
    Some(CpuStat {
        periods: counter(text, "nr_periods")?,
        throttled_periods: counter(text, "nr_throttled")?,
        throttled_ns,
        burst_periods: counter(text, "nr_bursts"),
        burst_ns: counter(text, "burst_time")
            .or_else(|| counter(text, "burst_usec").map(|burst_us| burst_us * 1_000)),
    })
}

/// Parse `cpu.max`: how many processors' time the group may use; `None` if unlimited.
pub(crate) fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cores(quota.parse().ok()?, period.parse().ok()?)
}

/// Parse the same for version 1, from `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
pub(crate) fn parse_cfs(quota: &str, period: &str) -> Option<f64> {
    cores(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "quotas are far below 2^53 microseconds"
)]
fn cores(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// Parse `memory.max` or `memory.limit_in_bytes`; `None` if there is no limit. Version 1 writes the
/// greatest multiple of a page for no limit.
pub(crate) fn parse_memory_limit(text: &str) -> Option<u64> {
    let bytes: u64 = text.trim().parse().ok()?;
    (bytes < 1 << 62).then_some(bytes)
}

/// Return the number after a name, in a file of such lines.
pub(crate) fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        (found, number) if found == name => number.trim().parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_has_the_controllers_of_a_hybrid_system() {
        let hybrid = "4:memory:/m\n1:cpu,cpuacct:/a/b\n0::/c\n";
        let found = group_paths(hybrid, "cpu");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].hierarchy, found[0].path), (Hierarchy::V1, "/a/b"));
        assert_eq!((found[1].hierarchy, found[1].path), (Hierarchy::V2, "/c"));
        assert_eq!(group_paths("0::/x:y\n", "cpu")[0].path, "/x:y");
        assert!(group_paths("2:cpuacct:/\n", "cpu").is_empty());
    }

    #[test]
    fn a_lineage_ends_at_the_root() {
        assert_eq!(lineage("/a/b").collect::<Vec<_>>(), ["a/b", "a", ""]);
        assert_eq!(lineage("/").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn throttling_is_read_from_both_versions() {
        let expected = CpuStat {
            periods: 10,
            throttled_periods: 3,
            throttled_ns: 77_000,
            burst_periods: Some(2),
            burst_ns: Some(9_000),
        };
        let v1 =
            "nr_periods 10\nnr_throttled 3\nthrottled_time 77000\nnr_bursts 2\nburst_time 9000\n";
        let v2 = "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 77\nnr_bursts 2\nburst_usec 9\n";
        assert_eq!(parse_cpu_stat(v1), Some(expected));
        assert_eq!(parse_cpu_stat(v2), Some(expected));
        assert_eq!(parse_cpu_stat("usage_usec 5\nuser_usec 3\n"), None);
    }

    #[test]
    fn limits_are_told_and_their_absence_too() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cfs("50000\n", "100000\n"), Some(0.5));
        assert_eq!(parse_cfs("-1\n", "100000\n"), None);
        assert_eq!(parse_memory_limit("max\n"), None);
        assert_eq!(parse_memory_limit("9223372036854771712\n"), None);
        assert_eq!(parse_memory_limit("1048576\n"), Some(1_048_576));
        assert_eq!(counter("low 0\noom_kill 2\n", "oom_kill"), Some(2));
    }
}
