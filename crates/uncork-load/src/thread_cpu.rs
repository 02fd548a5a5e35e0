//! The CPU time of a thread of the generator.

/// The calling thread's CPU time in user mode and in the kernel, in nanoseconds.
#[cfg(target_os = "linux")]
pub(crate) fn thread_cpu() -> (u64, u64) {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeVal;

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

/// The same on systems that do not divide a thread's CPU time: all of it counts as user mode.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_cpu() -> (u64, u64) {
    use nix::time::{ClockId, clock_gettime};

    let spent = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |time| {
        i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec())
    });
    (u64::try_from(spent).unwrap_or(0), 0)
}
