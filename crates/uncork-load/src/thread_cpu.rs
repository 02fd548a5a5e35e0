//! The CPU time of a thread of the generator.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// The calling thread's CPU time in user mode and in the kernel, in nanoseconds.
pub(crate) fn thread_cpu() -> (u64, u64) {
    let nanoseconds = |time: TimeVal| {
        let microseconds = i128::from(time.tv_sec()) * 1_000_000 + i128::from(time.tv_usec());
        u64::try_from(microseconds * 1_000).unwrap_or(0)
    };
    // The call cannot fail for the calling thread.
    getrusage(UsageWho::RUSAGE_THREAD).map_or((0, 0), |usage| {
        (
            nanoseconds(usage.user_time()),
            nanoseconds(usage.system_time()),
        )
    })
}
