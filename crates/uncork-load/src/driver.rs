//! What a driver is: it opens connections and carries out requests on them.
//!
//! An [`Endpoint`] holds one thread's share of the connections *and the clock*, so that the fake
//! driver can live in virtual time, and a driver may wait in whatever way suits its protocol.

use std::io;

use crate::{Interrupt, LoadError};

/// A way to carry out operations.
pub trait Driver: Sync {
    /// One thread's share of the connections.
    type Endpoint: Endpoint + Send;

    /// Opens `clients` connections and makes them ready for the first request.
    ///
    /// # Errors
    ///
    /// [`LoadError`] says why one of them could not be opened or prepared.
    fn open(&self, clients: usize, interrupt: &Interrupt) -> Result<Self::Endpoint, LoadError>;
}

/// One thread's share of the connections. At most one request is under way on each.
pub trait Endpoint {
    /// How many connections there are; they are numbered from 0.
    fn clients(&self) -> usize;

    /// The time in nanoseconds since an origin that all endpoints of a trial share, or, in virtual
    /// time, since this endpoint was opened.
    fn now_ns(&self) -> u64;

    /// Begins a request.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the connection is gone.
    fn send(&mut self, client: usize, request: Request) -> Result<(), Lost>;

    /// Waits for any request to end, at longest until `until_ns` (roughly; `None` then, or
    /// earlier).
    ///
    /// # Errors
    ///
    /// When waiting itself fails.
    fn next(&mut self, until_ns: u64) -> io::Result<Option<Completion>>;

    /// Asks the server to give up the request that is under way; says whether it could be asked.
    fn cancel(&mut self, client: usize) -> bool;

    /// What was sent and received since the beginning.
    fn traffic(&self) -> Traffic;

    /// The longest time one connection took to open.
    fn connect_ns(&self) -> u64;

    /// The process ids of the connections' backends, as the server gave them; none if there are
    /// no processes.
    fn backends(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Takes leave of the server. Best effort.
    fn close(self);
}

/// What to do: a step of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Which part of the operation.
    pub step: Step,
    /// The operation's number; chooses the row of parameters.
    pub operation: u64,
}

/// A part of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begin a transaction.
    Begin,
    /// Carry out the plan's statement of this number.
    Statement(usize),
    /// Commit the transaction.
    Commit,
    /// Roll back the transaction.
    Rollback,
}

/// A request that ended, or will never end.
#[derive(Debug)]
pub struct Completion {
    /// On which connection.
    pub client: usize,
    /// When, by the endpoint's clock.
    pub at_ns: u64,
    /// The answer.
    pub reply: Result<Reply, Lost>,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub struct Reply {
    /// Rows returned or changed, as the server counts them.
    pub rows: u64,
    /// The error, if it failed.
    pub failure: Option<Box<Failure>>,
    /// Whether the session is inside a transaction, intact or failed.
    pub in_transaction: bool,
    /// A hash of the answer, where digests are asked for.
    pub hash: u128,
}

/// An error the server answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The server's code for the error.
    pub sqlstate: String,
    /// The server's message.
    pub message: String,
}

/// A connection is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The server's last words, else what the operating system says.
    pub message: String,
}

/// Bytes that crossed the connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}
