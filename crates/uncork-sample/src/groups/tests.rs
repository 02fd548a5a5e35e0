use std::fs;

use tempfile::TempDir;

use super::*;

/// A machine of fixtures: files by path, and process 7 in the groups given.
fn host(cgroup: &str, files: &[(&str, &str)]) -> (TempDir, Host) {
    let folder = tempfile::tempdir().expect("a folder");
    let status = "Cpus_allowed_list:\t0-1\n";
    let own = [("proc/7/cgroup", cgroup), ("proc/7/status", status)];
    for (path, text) in own.iter().chain(files) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    let host = Host::at(folder.path());
    (folder, host)
}

const V2_STAT: &str = "usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 77\n\
    nr_bursts 1\nburst_usec 4\n";
const V1_STAT: &str = "nr_periods 10\nnr_throttled 3\nthrottled_time 77000\n";

#[test]
fn version_2_is_bound_by_the_group_with_the_least_quota() {
    let (folder, host) = host(
        "0::/pod/server\n",
        &[
            ("sys/fs/cgroup/cpu.stat", "usage_usec 1\n"),
            ("sys/fs/cgroup/pod/cpu.stat", V2_STAT),
            ("sys/fs/cgroup/pod/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/pod/cpu.max.burst", "20000\n"),
            ("sys/fs/cgroup/pod/server/cpu.stat", "usage_usec 1\n"),
            ("sys/fs/cgroup/pod/server/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/pod/memory.stat", ""),
            ("sys/fs/cgroup/pod/memory.max", "1048576\n"),
            (
                "sys/fs/cgroup/pod/memory.events",
                "low 0\nmax 4\noom_kill 1\n",
            ),
        ],
    );
    let mut group = Group::of(&host, 7, "server");
    assert_eq!(group.read(0, &mut Vec::new()), None);
    let more = "usage_usec 9\nnr_periods 20\nnr_throttled 8\nthrottled_usec 177\n\
        nr_bursts 3\nburst_usec 34\n";
    fs::write(folder.path().join("sys/fs/cgroup/pod/cpu.stat"), more).expect("written");
    let events = folder.path().join("sys/fs/cgroup/pod/memory.events");
    fs::write(events, "low 0\nmax 9\noom_kill 1\n").expect("written");
    let expected = GroupTick {
        tick: 1,
        role: "server".to_owned(),
        periods: 10,
        throttled_periods: 5,
        throttled_ns: 100_000,
        burst_periods: Some(2),
        burst_ns: Some(30_000),
    };
    assert_eq!(group.read(1, &mut Vec::new()), Some(expected));
    let expected = Bounds {
        role: "server".to_owned(),
        cgroup: Some(2),
        quota_cpus: Some(1.5),
        burst_ns: Some(20_000_000),
        allowed_cpus: Some(2),
        memory_bytes: Some(1_048_576),
        memory_hits: Some(5),
        oom_kills: Some(0),
    };
    assert_eq!(group.bounds(&host), expected);
}

#[test]
fn version_1_and_hybrid_systems_are_read_where_the_controller_is() {
    let (_folder, host) = host(
        "4:memory:/m\n1:cpu,cpuacct:/a\n0::/b\n",
        &[
            ("sys/fs/cgroup/unified/b/cpu.stat", "usage_usec 1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", V1_STAT),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/m/memory.stat", ""),
            (
                "sys/fs/cgroup/memory/m/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("sys/fs/cgroup/memory/m/memory.failcnt", "2\n"),
        ],
    );
    let group = Group::of(&host, 7, "server");
    let bounds = group.bounds(&host);
    assert_eq!((bounds.cgroup, bounds.quota_cpus), (Some(1), Some(0.5)));
    assert_eq!((bounds.memory_bytes, bounds.memory_hits), (None, Some(0)));
    assert_eq!(group.throttled_ns(), Some(77_000));
}

#[test]
fn in_a_container_the_root_of_the_tree_is_our_group() {
    let (_folder, host) = host(
        "0::/../../outside\n",
        &[
            ("sys/fs/cgroup/cpu.stat", V2_STAT),
            ("sys/fs/cgroup/cpu.max", "200000 100000\n"),
        ],
    );
    let group = Group::of(&host, 7, "server");
    assert_eq!(group.bounds(&host).quota_cpus, Some(2.0));
}

#[test]
fn without_control_groups_nothing_is_said_of_them() {
    let (_folder, host) = host("", &[]);
    let mut group = Group::of(&host, 7, "server");
    assert_eq!(group.throttled_ns(), None);
    assert_eq!(group.read(0, &mut Vec::new()), None);
    let bounds = group.bounds(&host);
    assert_eq!(
        (bounds.cgroup, bounds.quota_cpus, bounds.memory_hits),
        (None, None, None)
    );
    assert_eq!(bounds.allowed_cpus, Some(2));
}

#[test]
fn roles_in_the_same_group_share_it() {
    let (_folder, host) = host("0::/\n", &[("sys/fs/cgroup/cpu.stat", V2_STAT)]);
    let mut group = Group::of(&host, 7, "server");
    assert!(group.same(&Group::of(&host, 7, "generator")));
    group.add_role("generator");
    group.add_role("server");
    assert_eq!(group.bounds(&host).role, "server, generator");
}
