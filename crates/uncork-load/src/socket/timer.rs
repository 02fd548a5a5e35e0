//! A timer with microsecond resolution: the poll itself counts in milliseconds.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A kernel timer that wakes a poll. It stays armed until it fires or is armed again, which costs a
/// system call.
#[derive(Debug)]
pub(crate) struct Timer {
    file: TimerFd,
    /// The time it is armed for; 0 if it is not.
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

    /// Arm the timer for `at_ns`, unless it already is.
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

    /// Note that the timer has fired.
    pub(crate) fn fired(&mut self) {
        self.armed_ns = 0;
    }
}
