//! Takes snapshots.

use std::fs;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::clock;
use crate::groups::Group;
use crate::host::Host;
use crate::parse::{Stat, parse_machine, parse_stat};
use crate::{ProcessTimes, Snapshot};

/// Why a snapshot could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A file of `/proc` cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of `/proc` has an unknown form.
    #[error("cannot understand {path}")]
    Shape {
        /// The file.
        path: PathBuf,
    },
    /// The process to watch does not exist.
    #[error("there is no process {pid} to watch: {source}")]
    NoProcess {
        /// The process ID.
        pid: u32,
        /// The reason.
        source: Errno,
    },
}

/// Read the host's steal and our own throttling, without a watched process.
///
/// # Errors
///
/// [`SampleError`] if `/proc/stat` cannot be read.
pub fn snapshot() -> Result<Snapshot, SampleError> {
    of_group(&Host::here(), std::process::id())
}

/// Read the same as [`snapshot`], and the CPU time of a postmaster and its children. Children that
/// end meanwhile are skipped: their parent has their ticks.
///
/// # Errors
///
/// [`SampleError::NoProcess`] if the postmaster does not exist; otherwise like [`snapshot`].
pub fn server_snapshot(postmaster: u32) -> Result<Snapshot, SampleError> {
    let host = Host::here();
    let no_process = |source| SampleError::NoProcess {
        pid: postmaster,
        source,
    };
    let clock = clock::process_clock(postmaster).map_err(no_process)?;
    let total_ns = clock::read(clock).map_err(no_process)?;
    let mut snapshot = of_group(&host, postmaster)?;
    let path = format!("proc/{postmaster}/stat");
    let stat = parse_stat(&read(&host, &path)?).ok_or_else(|| shape(&host, &path))?;
    snapshot
        .processes
        .insert(postmaster, times(&stat, total_ns));
    snapshot.ended_user_ticks = stat.ended_user_ticks;
    snapshot.ended_system_ticks = stat.ended_system_ticks;
    for pid in children(&host, postmaster)? {
        let stat = host.read(&format!("proc/{pid}/stat")).ok();
        let total_ns = clock::process_clock(pid).and_then(clock::read);
        if let (Ok(total_ns), Some(stat)) = (total_ns, stat.as_deref().and_then(parse_stat)) {
            snapshot.processes.insert(pid, times(&stat, total_ns));
        }
    }
    Ok(snapshot)
}

/// Return whether a process has ended, even if its parent has not waited for it yet. Unknown is
/// not ended.
#[must_use]
pub fn has_ended(pid: u32) -> bool {
    match Host::here().read(&format!("proc/{pid}/stat")) {
        // The name before the state may contain parentheses itself.
        Ok(stat) => stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Return how long a process was runnable and waited for a processor, since it began; `None` if the
/// kernel does not report it (`CONFIG_SCHED_INFO`), or the process is gone.
#[must_use]
pub fn waited_ns(pid: i32) -> Option<u64> {
    waited(&format!("proc/{pid}/schedstat"))
}

/// Return the same for the calling thread.
#[must_use]
pub fn thread_waited_ns() -> Option<u64> {
    waited("proc/thread-self/schedstat")
}

/// Parse the second field of `schedstat`: time on a run queue, in nanoseconds.
fn waited(below: &str) -> Option<u64> {
    let text = Host::here().read(below).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

fn of_group(host: &Host, pid: u32) -> Result<Snapshot, SampleError> {
    let path = "proc/stat";
    let machine = parse_machine(&read(host, path)?).ok_or_else(|| shape(host, path))?;
    Ok(Snapshot {
        steal_ticks: machine.steal,
        throttled_ns: Group::of(host, pid, "").throttled_ns(),
        tick_ns: clock::tick_ns(),
        ..Snapshot::default()
    })
}

/// Return the children of a process, begun by any of its threads: from the kernel's lists, or else
/// by looking at all processes.
pub(crate) fn children(host: &Host, parent: u32) -> Result<Vec<u32>, SampleError> {
    if let Some(found) = listed_children(host, parent) {
        return Ok(found);
    }
    let path = host.path("proc");
    let entries = fs::read_dir(&path).map_err(|source| SampleError::Read { path, source })?;
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids
        .filter(|pid: &u32| {
            let stat = host.read(&format!("proc/{pid}/stat")).ok();
            stat.as_deref()
                .and_then(parse_stat)
                .is_some_and(|stat| stat.parent == parent)
        })
        .collect())
}

fn listed_children(host: &Host, parent: u32) -> Option<Vec<u32>> {
    let tasks = fs::read_dir(host.path(&format!("proc/{parent}/task"))).ok()?;
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let task = task.file_name().into_string().ok()?;
        match host.read(&format!("proc/{parent}/task/{task}/children")) {
            Ok(text) => found.extend(
                text.split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            ),
            // A thread may end meanwhile; a kernel without such lists does not even have the first
            // thread's.
            Err(_) if task != parent.to_string() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

fn read(host: &Host, below: &str) -> Result<String, SampleError> {
    host.read(below).map_err(|source| SampleError::Read {
        path: host.path(below),
        source,
    })
}

fn shape(host: &Host, below: &str) -> SampleError {
    SampleError::Shape {
        path: host.path(below),
    }
}

fn times(stat: &Stat, total_ns: u64) -> ProcessTimes {
    ProcessTimes {
        total_ns,
        user_ticks: stat.user_ticks,
        system_ticks: stat.system_ticks,
        start_ticks: stat.start_ticks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_is_found_with_its_cpu_time() {
        let pid = std::process::id();
        let snapshot = server_snapshot(pid).expect("we exist");
        assert!(snapshot.processes[&pid].total_ns > 0);
        assert!(server_snapshot(u32::MAX).is_err());
    }

    #[test]
    fn a_process_has_ended_before_its_parent_waits_for_it() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        let pid = child.id();
        assert!(!has_ended(pid));
        drop(child.stdin.take());
        while !has_ended(pid) {
            std::thread::yield_now();
        }
        child.wait().expect("ends");
        assert!(has_ended(pid));
    }
}
