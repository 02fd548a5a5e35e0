//! The driver interface: a driver opens connections and carries out operations on them.
//!
//! An [`Endpoint`] owns one thread's share of the connections *and the clock*. So the fake driver
//! can run in virtual time, and each driver waits in the way that suits its protocol. Within an
//! operation the driver works alone: it sends the statements, follows the script, retries where the
//! plan allows it, and counts each statement in the [`Recorder`].

use std::io;

use uncork_model::Connections;

use crate::{Interrupt, LoadError, Recorder};

/// A way to carry out operations.
pub trait Driver: Sync {
    /// One thread's share of the connections.
    type Endpoint: Endpoint + Send;

    /// Open a share's connections and prepare them for the first operation.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if a connection cannot be opened or prepared.
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

    /// Return the number, over all threads, of this thread's connection `index`. Connections opened
    /// at the start are numbered thread by thread, later ones in turn.
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

/// One thread's share of the connections. Each connection has one or more *slots*, numbered from 0.
/// A slot carries out one operation at a time.
pub trait Endpoint {
    /// How many slots there are, including slots whose connection is closed.
    fn slots(&self) -> usize;

    /// The time in nanoseconds since an origin that all endpoints of a trial share; in virtual
    /// time, since this endpoint was opened.
    fn now_ns(&self) -> u64;

    /// Whether a slot's connection is open.
    fn is_open(&self, _slot: usize) -> bool {
        true
    }

    /// How many additional connections are being opened.
    fn growing(&self) -> usize {
        0
    }

    /// Let all scripts start anew: with values of their own for the warm-up of an open loop, or with
    /// those of the measured part, as if nothing had run before.
    fn restart_scripts(&mut self, _warm_up: bool) {}

    /// How long requests for a connection have waited, added up, because the endpoint was opening
    /// others.
    fn opening_wait_ns(&self) -> u64 {
        0
    }

    /// Report what was counted before there was a recorder, such as the opening of connections.
    fn report(&mut self, _recorder: &mut Recorder) {}

    /// Begin an operation on a free slot. [`Endpoint::next`] reports its end.
    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder);

    /// Wait for the next event, at longest until `until_ns`. Returns `None` then, or earlier.
    ///
    /// # Errors
    ///
    /// If waiting itself fails.
    fn next(&mut self, until_ns: u64, recorder: &mut Recorder) -> io::Result<Option<Event>>;

    /// Open the connection of a slot again in the background, not before `not_before_ns`; an open
    /// one is closed first. [`Endpoint::next`] reports the result for each of its slots.
    fn reopen(&mut self, slot: usize, not_before_ns: u64);

    /// Close the connection of a slot that has nothing left to send in this trial, so that a pooler can give its server
    /// connection to others.
    fn release(&mut self, _slot: usize) {}

    /// Open another connection in the background. [`Endpoint::next`] reports its slots, which are
    /// numbered after the others, or once that it could not be opened.
    fn grow(&mut self);

    /// Ask the server to cancel the operation on a slot; return whether the request could be sent.
    fn cancel(&mut self, slot: usize) -> bool;

    /// Bytes sent and received since the beginning.
    fn traffic(&self) -> Traffic;

    /// Count of connections since the beginning; `most` is how many are open now.
    fn connections(&self) -> Connections;

    /// The process IDs of the connections' backends, as the server reported them; empty if there
    /// are no processes.
    fn backends(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Close all connections, on a best-effort basis. Returns the user and system CPU time of the
    /// endpoint's own helper threads.
    fn close(self) -> (u64, u64);
}

/// An operation to carry out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Task {
    /// The operation's number; chooses the row of parameters.
    pub number: u64,
    /// The script.
    pub script: usize,
    /// When it begins, by the endpoint's clock.
    pub at_ns: u64,
    /// The operation is not retried after this time.
    pub retry_until_ns: u64,
}

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// An operation ended.
    Ended {
        /// The slot, which is free now.
        slot: usize,
        /// When it ended, by the endpoint's clock.
        at_ns: u64,
        /// How it ended.
        end: End,
    },
    /// A connection was lost, and with it the operation under way.
    Lost {
        /// A slot of the connection; each slot has its own event.
        slot: usize,
        /// When it was lost.
        at_ns: u64,
        /// The server's last message, or else the operating system's error.
        failure: Box<Failure>,
    },
    /// A connection is open.
    Opened {
        /// A slot of the connection, which is free now.
        slot: usize,
        /// When it opened.
        at_ns: u64,
    },
    /// A connection could not be opened.
    NotOpened {
        /// A slot of the connection; `None` for an additional connection.
        slot: Option<usize>,
        /// When it failed.
        at_ns: u64,
        /// Why it failed.
        failure: Box<Failure>,
    },
}

/// How an operation ended.
#[derive(Debug, Default)]
pub struct End {
    /// The error, if all attempts failed.
    pub failure: Option<Box<Failure>>,
    /// Number of attempts after the first.
    pub retries: u32,
    /// A hash of the answers, if digests are requested.
    pub hash: u128,
    /// Why the connection ended together with the operation; it reopens without a request.
    pub connection_failure: Option<Box<Failure>>,
}

/// An error, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code of the error: an SQLSTATE, or a word in an HTTP load.
    pub code: String,
    /// The message.
    pub message: String,
    /// Where in the script it happened, if a command of the script failed.
    pub place: Option<FailedAt>,
}

/// The command of a script that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAt {
    /// Its number in the script, from 0.
    pub command: usize,
    /// The number of its statement over all scripts; `None` if it sends none.
    pub statement: Option<usize>,
}

impl Failure {
    /// A connection that was lost without a message from the server.
    #[must_use]
    pub fn lost(message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code: "08006".to_owned(),
            message: message.into(),
            place: None,
        })
    }

    /// The message, with the SQLSTATE if there is one.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { code, message, .. } = self;
        // An SQLSTATE is five digits and capitals. HTTP failures have words, which their messages
        // repeat.
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

/// Bytes that crossed the sockets, after encryption if there is any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl Traffic {
    /// Add the traffic of another connection.
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
