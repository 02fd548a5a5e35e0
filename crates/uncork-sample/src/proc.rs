//! Reading `/proc` and the control groups; parsing is apart from reading.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::{ProcessTimes, Snapshot};

const NS_PER_S: u64 = 1_000_000_000;
/// `USER_HZ`, when the system does not say: it is 100 on every Linux of today.
const DEFAULT_TICKS_PER_S: u64 = 100;

/// Why a snapshot could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A file of `/proc` could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of `/proc` has an unknown shape.
    #[error("cannot understand {path}")]
    Shape {
        /// The file.
        path: PathBuf,
    },
    /// The process to watch does not exist.
    #[error("there is no process {pid} to watch: {source}")]
    NoProcess {
        /// The process id.
        pid: u32,
        /// The reason.
        source: Errno,
    },
}

/// Reads the host's steal and our own throttling, and watches no process.
///
/// # Errors
///
/// [`SampleError`] when `/proc/stat` cannot be read.
pub fn snapshot() -> Result<Snapshot, SampleError> {
    let ticks_per_s = sysconf(SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .unwrap_or(DEFAULT_TICKS_PER_S);
    let path = Path::new("/proc/stat");
    let steal_ticks = parse_steal(&read(path)?).ok_or_else(|| shape(path))?;
    Ok(Snapshot {
        steal_ticks,
        throttled_ns: throttled_ns("self"),
        tick_ns: NS_PER_S / ticks_per_s,
        ..Snapshot::default()
    })
}

/// Reads what [`snapshot`] reads, and the CPU time of a postmaster and its children. Children that
/// end while being read are left out: their parent has their ticks.
///
/// # Errors
///
/// [`SampleError::NoProcess`] when the postmaster does not exist; else as [`snapshot`].
pub fn server_snapshot(postmaster: u32) -> Result<Snapshot, SampleError> {
    let mut snapshot = snapshot()?;
    snapshot.throttled_ns = throttled_ns(&postmaster.to_string());
    let total_ns = process_clock_ns(postmaster).map_err(|source| SampleError::NoProcess {
        pid: postmaster,
        source,
    })?;
    let path = PathBuf::from(format!("/proc/{postmaster}/stat"));
    let stat = parse_stat(&read(&path)?).ok_or_else(|| shape(&path))?;
    snapshot.processes.insert(postmaster, stat.times(total_ns));
    snapshot.ended_user_ticks = stat.ended_user_ticks;
    snapshot.ended_system_ticks = stat.ended_system_ticks;
    for pid in children(postmaster)? {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        if let (Ok(total_ns), Some(stat)) =
            (process_clock_ns(pid), stat.as_deref().and_then(parse_stat))
        {
            snapshot.processes.insert(pid, stat.times(total_ns));
        }
    }
    Ok(snapshot)
}

fn process_clock_ns(pid: u32) -> Result<u64, Errno> {
    let pid = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
    let time = clock_gettime(clock_getcpuclockid(Pid::from_raw(pid))?)?;
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    Ok(seconds * NS_PER_S + u64::try_from(time.tv_nsec()).unwrap_or(0))
}

/// The children of a process: from the list that the kernel keeps, else by looking at everyone.
fn children(parent: u32) -> Result<Vec<u32>, SampleError> {
    let list = format!("/proc/{parent}/task/{parent}/children");
    if let Ok(text) = fs::read_to_string(list) {
        return Ok(text
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect());
    }
    let path = Path::new("/proc");
    let entries = fs::read_dir(path).map_err(|source| SampleError::Read {
        path: path.into(),
        source,
    })?;
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids
        .filter(|pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
            stat.as_deref()
                .and_then(parse_stat)
                .is_some_and(|stat| stat.parent == parent)
        })
        .collect())
}

fn read(path: &Path) -> Result<String, SampleError> {
    fs::read_to_string(path).map_err(|source| SampleError::Read {
        path: path.into(),
        source,
    })
}

fn shape(path: &Path) -> SampleError {
    SampleError::Shape { path: path.into() }
}

/// The fields of `/proc/<pid>/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
    ended_user_ticks: u64,
    ended_system_ticks: u64,
    start_ticks: u64,
}

impl Stat {
    fn times(&self, total_ns: u64) -> ProcessTimes {
        ProcessTimes {
            total_ns,
            user_ticks: self.user_ticks,
            system_ticks: self.system_ticks,
            start_ticks: self.start_ticks,
        }
    }
}

/// Reads a line of `/proc/<pid>/stat`. The process' name, in brackets, may hold anything, so the
/// fields are counted from the last closing bracket on.
fn parse_stat(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    // proc(5) numbers the fields from 1; the first after the name is number 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(field(4)?).ok()?,
        user_ticks: field(14)?,
        system_ticks: field(15)?,
        ended_user_ticks: field(16)?,
        ended_system_ticks: field(17)?,
        start_ticks: field(22)?,
    })
}

/// The steal ticks over all CPUs: the eighth number of the first line of `/proc/stat`.
fn parse_steal(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

/// Where a process' group of the controller `cpu` keeps its statistics, the likeliest first.
fn throttle_files(cgroup: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let mounts: &[&str] = if controllers.is_empty() {
            &["", "unified"]
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            &["cpu", "cpu,cpuacct"]
        } else {
            continue;
        };
        let v1 = !controllers.is_empty();
        for mount in mounts {
            let root = Path::new("/sys/fs/cgroup").join(mount);
            let file = root.join(path.trim_start_matches('/')).join("cpu.stat");
            // In a container the path may name a folder outside it; then the root is our group.
            let candidates = [file, root.join("cpu.stat")];
            let at = if v1 { 0 } else { files.len() };
            files.splice(at..at, candidates);
        }
    }
    files
}

fn parse_throttled(text: &str) -> Option<u64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_time", nanoseconds) => nanoseconds.trim().parse().ok(),
        ("throttled_usec", microseconds) => Some(microseconds.trim().parse::<u64>().ok()? * 1_000),
        _ => None,
    })
}

fn throttled_ns(process: &str) -> Option<u64> {
    let cgroup = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let files = throttle_files(&cgroup);
    files
        .iter()
        .find_map(|file| parse_throttled(&fs::read_to_string(file).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_even_with_a_name_full_of_brackets() {
        let line = "12 (a) b) c) S 7 12 12 0 -1 4194304 1 2 3 4 100 200 300 400 20 0 1 0 999 0 0";
        let stat = parse_stat(line).expect("valid");
        let expected = Stat {
            parent: 7,
            user_ticks: 100,
            system_ticks: 200,
            ended_user_ticks: 300,
            ended_system_ticks: 400,
            start_ticks: 999,
        };
        assert_eq!(stat, expected);
        assert_eq!(parse_stat("12 (x) S"), None);
    }

    #[test]
    fn steal_is_the_eighth_number() {
        assert_eq!(parse_steal("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), Some(8));
        assert_eq!(parse_steal("cpu0 1\n"), None);
    }

    #[test]
    fn throttling_is_read_from_both_versions_of_control_groups() {
        assert_eq!(
            parse_throttled("nr_periods 1\nthrottled_time 77\n"),
            Some(77)
        );
        assert_eq!(
            parse_throttled("usage_usec 5\nthrottled_usec 3\n"),
            Some(3_000)
        );
        assert_eq!(parse_throttled("usage_usec 5\n"), None);
        let files = throttle_files("4:memory:/m\n1:cpu,cpuacct:/a\n0::/b\n");
        assert_eq!(files[0], Path::new("/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat"));
        assert!(files.contains(&PathBuf::from("/sys/fs/cgroup/b/cpu.stat")));
    }

    #[test]
    fn our_own_process_is_found_with_its_cpu_time() {
        let pid = std::process::id();
        let snapshot = server_snapshot(pid).expect("we exist");
        assert!(snapshot.processes[&pid].total_ns > 0);
        assert!(server_snapshot(u32::MAX).is_err());
    }
}
