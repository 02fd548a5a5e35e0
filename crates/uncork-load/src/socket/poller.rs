//! Waits for the sockets of one thread, and wakes it at a moment.

use std::io;
use std::time::Duration;

use mio::{Events, Poll, Registry, Token, Waker};

use super::Timer;

/// The timer's token. Sockets are numbered from 0.
const TIMER: Token = Token(usize::MAX - 2);
/// The waker's token.
const WAKER: Token = Token(usize::MAX - 1);
/// The poll's own clock counts in milliseconds, and rounds up.
const COARSE_NS: u64 = 1_000_000;

/// A poll of sockets that wakes to the microsecond.
#[derive(Debug)]
pub(crate) struct Poller {
    poll: Poll,
    events: Events,
    timer: Timer,
}

impl Poller {
    /// Create a poller for about `sockets` sockets.
    pub(crate) fn new(sockets: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Self {
            timer: Timer::new(poll.registry(), TIMER)?,
            events: Events::with_capacity(sockets.clamp(64, 1024)),
            poll,
        })
    }

    /// Where sockets register, each with its number as token.
    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Create a handle by which other threads interrupt [`Poller::wait`]. At most one may exist.
    pub(crate) fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), WAKER)
    }

    /// Wait until something happens, at longest until `until_ns`, which must be later than `now_ns`.
    /// Calls `ready` for each ready socket, with its number and whether its peer has closed it.
    pub(crate) fn wait(
        &mut self,
        until_ns: u64,
        now_ns: u64,
        mut ready: impl FnMut(usize, bool),
    ) -> io::Result<()> {
        let wait_ns = until_ns - now_ns;
        let timeout_ns = if wait_ns > 10 * COARSE_NS {
            // Arming the timer costs a system call, and most often something happens first. If
            // nothing does, the next call waits the rest with the timer.
            wait_ns - 2 * COARSE_NS
        } else {
            self.timer.arm(until_ns, now_ns)?;
            wait_ns + COARSE_NS
        };
        let timeout = Duration::from_nanos(timeout_ns);
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        for event in &self.events {
            match event.token() {
                TIMER => self.timer.fired(),
                WAKER => {}
                Token(number) => ready(number, event.is_read_closed() || event.is_error()),
            }
        }
        Ok(())
    }
}
