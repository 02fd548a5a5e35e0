//! Waking up at a moment, to the microsecond: the poll itself counts in milliseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer of the kernel that wakes a poll. Once armed it stays so until it has fired or is armed
/// anew, which costs a system call.
#[derive(Debug)]
pub(crate) struct Timer {
    file: TimerFd,
    /// The moment it is armed for; 0 when it is not.
    armed_ns: u64,
}

impl Timer {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let file = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        registry.register(
            &mut SourceFd(&file.as_fd().as_raw_fd()),
            token,
            Interest::READABLE,
        )?;
        Ok(Self { file, armed_ns: 0 })
    }

    /// Arms the timer for `at_ns`, unless it is.
    pub(crate) fn arm(&mut self, at_ns: u64, now_ns: u64) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        // Zero would disarm it.
        let wait = Duration::from_nanos(at_ns.saturating_sub(now_ns).max(1));
        self.file.set(
            Expiration::OneShot(TimeSpec::from_duration(wait)),
            TimerSetTimeFlags::empty(),
        )?;
        self.armed_ns = at_ns;
        Ok(())
    }

    /// Takes note that the timer has fired.
    pub(crate) fn fired(&mut self) {
        self.armed_ns = 0;
    }
}
