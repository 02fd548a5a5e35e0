//! Starts the measured part at a given time.

use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

use crate::lease::monotonic_ns;
use crate::stop_signal::StopSignal;

/// How long before the start the server's resource use is read: reading takes a few milliseconds.
const LEAD_NS: u64 = 200_000_000;
/// The longest sleep before the stop signal is checked again.
const CHECK_INTERVAL_NS: u64 = 20_000_000;
/// The last moment before the start is spent awake, because a sleep ends up to this much late.
const AWAKE_NS: u64 = 300_000;

/// Wait until shortly before the start, or until the trial stops early.
pub(crate) fn approach(start_at_ns: Option<u64>, stop_signal: &StopSignal<'_>) {
    if let Some(start_at_ns) = start_at_ns {
        sleep_until(start_at_ns.saturating_sub(LEAD_NS), stop_signal);
    }
}

/// Wait for the start; return how late it is. `None` without a start time.
pub(crate) fn wait(start_at_ns: Option<u64>, stop_signal: &StopSignal<'_>) -> Option<u64> {
    let start_at_ns = start_at_ns?;
    sleep_until(start_at_ns.saturating_sub(AWAKE_NS), stop_signal);
    loop {
        let now_ns = monotonic_ns();
        if now_ns >= start_at_ns || stop_signal.is_set() {
            return Some(now_ns.saturating_sub(start_at_ns));
        }
        spin_loop();
    }
}

fn sleep_until(at_ns: u64, stop_signal: &StopSignal<'_>) {
    loop {
        let now_ns = monotonic_ns();
        if now_ns >= at_ns || stop_signal.is_set() || stop_signal.lease_is_over(now_ns) {
            return;
        }
        thread::sleep(Duration::from_nanos(
            (at_ns - now_ns).min(CHECK_INTERVAL_NS),
        ));
    }
}
