//! Processor clocks: exact to the nanosecond, one call each, and readable for any process.

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

pub(crate) const NS_PER_S: u64 = 1_000_000_000;
/// `USER_HZ` if the system does not report it; it is 100 on every current Linux.
const DEFAULT_TICKS_PER_S: u64 = 100;

/// The length of a clock tick, in nanoseconds.
pub(crate) fn tick_ns() -> u64 {
    let ticks_per_s = sysconf(SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .unwrap_or(DEFAULT_TICKS_PER_S);
    NS_PER_S / ticks_per_s
}

/// Return the CPU time of a process, all its threads together.
#[cfg(target_os = "linux")]
pub(crate) fn process_clock(pid: u32) -> Result<ClockId, Errno> {
    let pid = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
    nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid))
}

/// Other systems have no such clocks: processes are not observed there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn process_clock(_pid: u32) -> Result<ClockId, Errno> {
    Err(Errno::ENOTSUP)
}

pub(crate) fn read(clock: ClockId) -> Result<u64, Errno> {
    let time = clock_gettime(clock)?;
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    Ok(seconds * NS_PER_S + u64::try_from(time.tv_nsec()).unwrap_or(0))
}

/// Return the CPU time of the calling thread.
pub(crate) fn thread_ns() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}
