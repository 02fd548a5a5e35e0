//! A timer for systems whose kernel has none that wakes a poll: a thread sleeps instead.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::UnixStream as PolledStream;
use mio::{Interest, Registry, Token};

/// A thread that wakes a poll. It ends with the timer.
#[derive(Debug)]
pub(crate) struct Timer {
    due: Sender<Instant>,
    /// Gets a byte from the thread at each time. (A poll has one waker only, and it is in use.)
    wakes: PolledStream,
    /// The time it is armed for; 0 if it is not.
    armed_ns: u64,
}

impl Timer {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let (wakes, sender) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        let mut wakes = PolledStream::from_std(wakes);
        registry.register(&mut wakes, token, Interest::READABLE)?;
        let (due, times) = channel();
        thread::Builder::new()
            .name("timer".to_owned())
            .spawn(move || sleep(&times, sender))?;
        Ok(Self {
            due,
            wakes,
            armed_ns: 0,
        })
    }

    /// Arm the timer for `at_ns`, unless it already is.
    pub(crate) fn arm(&mut self, at_ns: u64, now_ns: u64) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        let wait = Duration::from_nanos(at_ns.saturating_sub(now_ns));
        self.due
            .send(Instant::now() + wait)
            .map_err(|_| io::Error::other("the thread of the timer has ended"))?;
        self.armed_ns = at_ns;
        Ok(())
    }

    /// Note that the timer has fired.
    pub(crate) fn fired(&mut self) {
        // Without a byte to read, nothing has to be taken.
        let _ = self.wakes.read(&mut [0; 16]);
        self.armed_ns = 0;
    }
}

/// Wake the poll at each time that is still the newest one when it comes.
fn sleep(times: &Receiver<Instant>, mut sender: UnixStream) {
    while let Ok(mut due) = times.recv() {
        loop {
            match times.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(newer) => due = newer,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        if sender.write_all(&[1]).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use mio::{Events, Poll};

    use super::*;

    #[test]
    fn it_wakes_a_poll_at_the_newest_time() {
        let mut poll = Poll::new().expect("available");
        let mut timer = Timer::new(poll.registry(), Token(7)).expect("starts");
        let begun = Instant::now();
        timer.arm(60_000_000_000, 0).expect("armed");
        timer.arm(20_000_000, 0).expect("armed");
        let mut events = Events::with_capacity(4);
        poll.poll(&mut events, Some(Duration::from_secs(30)))
            .expect("polled");
        let tokens: Vec<Token> = events.iter().map(mio::event::Event::token).collect();
        assert_eq!(tokens, [Token(7)]);
        assert!(begun.elapsed() >= Duration::from_millis(20));
        timer.fired();
        timer.arm(1_000_000, 0).expect("armed again");
        poll.poll(&mut events, Some(Duration::from_secs(30)))
            .expect("polled");
        assert_eq!(events.iter().count(), 1);
    }
}
