//! Binds threads and backends to processors.
//!
//! With one client, generator and backend take turns: while one works the other waits. The kernel's
//! placement decides what waking the other costs (measured on a virtual machine with two
//! processors: 15 µs per look-up on one, 50 µs on two), and it may differ from trial to trial.
//! Sharing one processor makes trials comparable and costs nothing, since the two never work at the
//! same time.

use std::io;

use nix::unistd::Pid;

use crate::LoadError;

/// Bind the calling thread to a processor, if one is requested.
pub(crate) fn pin_thread(cpu: Option<usize>) -> Result<(), LoadError> {
    cpu.map_or(Ok(()), |cpu| pin(Pid::from_raw(0), cpu, "a thread"))
}

/// Bind backends of a server on this machine to a processor, if one is requested.
pub(crate) fn pin_backends(pids: &[i32], cpu: Option<usize>) -> Result<(), LoadError> {
    let Some(cpu) = cpu else { return Ok(()) };
    pids.iter()
        .try_for_each(|pid| pin(Pid::from_raw(*pid), cpu, "a backend"))
}

fn pin(pid: Pid, cpu: usize, what: &'static str) -> Result<(), LoadError> {
    bind(pid, cpu).map_err(|source| LoadError::Pin { what, cpu, source })
}

#[cfg(target_os = "linux")]
fn bind(pid: Pid, cpu: usize) -> io::Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu)
        .and_then(|()| nix::sched::sched_setaffinity(pid, &set))
        .map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn bind(_pid: Pid, _cpu: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use nix::sched::{CpuSet, sched_getaffinity};

    use super::*;

    #[test]
    fn a_thread_is_bound_to_the_processor_asked_for_and_only_then() {
        std::thread::spawn(|| {
            let free = sched_getaffinity(Pid::from_raw(0)).expect("readable");
            pin_thread(None).expect("nothing to do");
            assert_eq!(sched_getaffinity(Pid::from_raw(0)).expect("readable"), free);
            let cpu = (0..CpuSet::count())
                .find(|cpu| free.is_set(*cpu).unwrap_or(false))
                .expect("there is a processor");
            pin_thread(Some(cpu)).expect("allowed");
            let bound = sched_getaffinity(Pid::from_raw(0)).expect("readable");
            let held = |cpu: &usize| bound.is_set(*cpu).unwrap_or(false);
            assert_eq!((0..CpuSet::count()).filter(held).collect::<Vec<_>>(), [cpu]);
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_processor_that_does_not_exist_is_an_error() {
        let error = pin_thread(Some(CpuSet::count() - 1)).expect_err("there are not so many");
        assert!(
            error
                .to_string()
                .starts_with("cannot bind a thread to processor")
        );
    }
}
