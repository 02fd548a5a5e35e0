//! What a driver is: it opens connections and carries out operations on them.
//!
//! An [`Endpoint`] holds one thread's share of the connections *and the clock*, so that the fake
//! driver can live in virtual time, and a driver may wait in whatever way suits its protocol.
//! Inside an operation the driver is on its own: it sends the statements, follows the script,
//! tries again where that is allowed, and counts each statement in the [`Recorder`].

use std::io;

use uncork_model::Connections;

use crate::{Interrupt, LoadError, Recorder};

/// A way to carry out operations.
pub trait Driver: Sync {
    /// One thread's share of the connections.
    type Endpoint: Endpoint + Send;

    /// Opens a share's connections and makes them ready for the first operation.
    ///
    /// # Errors
    ///
    /// [`LoadError`] says why one of them could not be opened or prepared.
    fn open(&self, share: Share, interrupt: &Interrupt) -> Result<Self::Endpoint, LoadError>;
}

/// Which connections belong to one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The thread's number.
    pub thread: usize,
    /// How many threads there are.
    pub threads: usize,
    /// How many connections all threads have at the start.
    pub clients: usize,
}

impl Share {
    /// How many connections this thread has at the start.
    #[must_use]
    pub fn count(self) -> usize {
        self.of(self.clients)
    }

    /// This thread's part of `all`.
    #[must_use]
    pub fn of(self, all: usize) -> usize {
        all / self.threads + usize::from(self.thread < all % self.threads)
    }

    /// The number, over all threads, of this thread's connection `index`: those of the start come
    /// thread by thread, those opened later by turns.
    #[must_use]
    pub fn client(self, index: usize) -> usize {
        let (each, rest) = (self.clients / self.threads, self.clients % self.threads);
        if index < self.count() {
            self.thread * each + self.thread.min(rest) + index
        } else {
            self.clients + (index - self.count()) * self.threads + self.thread
        }
    }
}

/// One thread's share of the connections. Each has one or more *slots*: places for an operation
/// under way, numbered from 0. A slot carries out one operation at a time.
pub trait Endpoint {
    /// How many slots there are, counting those whose connection is closed.
    fn slots(&self) -> usize;

    /// The time in nanoseconds since an origin that all endpoints of a trial share, or, in virtual
    /// time, since this endpoint was opened.
    fn now_ns(&self) -> u64;

    /// Tells what was counted before there was anybody to tell, such as opening the connections.
    fn report(&mut self, _recorder: &mut Recorder) {}

    /// Begins an operation on a free slot. [`Endpoint::next`] tells its end.
    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder);

    /// Waits for anything to happen, at longest until `until_ns` (`None` then, or earlier).
    ///
    /// # Errors
    ///
    /// When waiting itself fails.
    fn next(&mut self, until_ns: u64, recorder: &mut Recorder) -> io::Result<Option<Event>>;

    /// Opens the connection of a slot again in the background, not before a moment; an open one
    /// is closed first. [`Endpoint::next`] tells, for each of its slots, what came of it.
    fn reopen(&mut self, slot: usize, not_before_ns: u64);

    /// Opens another connection in the background. [`Endpoint::next`] tells of its slots, which
    /// are numbered behind the others, or once that it could not be opened.
    fn grow(&mut self);

    /// Asks the server to give up the operation under way; says whether it could be asked.
    fn cancel(&mut self, slot: usize) -> bool;

    /// What was sent and received since the beginning.
    fn traffic(&self) -> Traffic;

    /// What happened to connections since the beginning; `most` is how many are open now.
    fn connections(&self) -> Connections;

    /// The process ids of the connections' backends, as the server gave them; none if there are
    /// no processes.
    fn backends(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Takes leave of the server. Best effort. Returns the CPU time, user and system, of the
    /// endpoint's own helping threads.
    fn close(self) -> (u64, u64);
}

/// What to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Task {
    /// The operation's number; chooses the row of parameters.
    pub number: u64,
    /// The script.
    pub script: usize,
    /// When it begins, by the endpoint's clock.
    pub at_ns: u64,
    /// From when on it is not tried again.
    pub retry_until_ns: u64,
}

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// An operation ended.
    Ended {
        /// On which slot, which is free now.
        slot: usize,
        /// When, by the endpoint's clock.
        at_ns: u64,
        /// How.
        end: End,
    },
    /// A connection is gone, and the operation under way with it.
    Lost {
        /// A slot of the connection; each is told.
        slot: usize,
        /// When.
        at_ns: u64,
        /// The server's last words, else what the operating system says.
        failure: Box<Failure>,
    },
    /// A connection is open.
    Opened {
        /// A slot of it, which is free now.
        slot: usize,
        /// When.
        at_ns: u64,
    },
    /// A connection could not be opened.
    NotOpened {
        /// A slot of it; none for an additional one.
        slot: Option<usize>,
        /// When.
        at_ns: u64,
        /// Why.
        failure: Box<Failure>,
    },
}

/// How an operation ended.
#[derive(Debug, Default)]
pub struct End {
    /// The error, if it failed for good.
    pub failure: Option<Box<Failure>>,
    /// How often it was tried after the first time.
    pub retries: u32,
    /// A hash of the answers, where digests are asked for.
    pub hash: u128,
    /// The connection ended with the operation, and why; it is opened again by itself.
    pub connection_failure: Option<Box<Failure>>,
}

/// An error, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code for the error: an SQLSTATE, or in an HTTP load a word.
    pub code: String,
    /// The message.
    pub message: String,
}

impl Failure {
    /// A connection that is gone without the server's word.
    #[must_use]
    pub fn lost(message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code: "08006".to_owned(),
            message: message.into(),
        })
    }

    /// The message, with the code where the message does not say as much.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { code, message } = self;
        // An SQLSTATE is five digits and capitals; the words of HTTP's failures are in the message.
        let is_sqlstate = code.len() == 5
            && code
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        if is_sqlstate {
            format!("{message} (SQLSTATE {code})")
        } else {
            message.clone()
        }
    }
}

/// Bytes that crossed the sockets: encrypted ones, if there is encryption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl Traffic {
    /// Adds what crossed others.
    pub(crate) fn add(&mut self, other: Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_numbered_once_over_all_threads() {
        for (threads, clients, later) in [(1, 3, 2), (2, 5, 4), (3, 3, 3), (4, 10, 7)] {
            let mut numbers = Vec::new();
            for thread in 0..threads {
                let share = Share {
                    thread,
                    threads,
                    clients,
                };
                let last = share.count() + share.of(later);
                numbers.extend((0..last).map(|index| share.client(index)));
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..clients + later).collect::<Vec<_>>());
        }
    }
}
