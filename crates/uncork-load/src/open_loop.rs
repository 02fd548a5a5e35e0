//! The arrivals of an open loop: which are due, which were started, and how many wait.

use std::iter::Peekable;

use uncork_schedule::Arrivals;

/// The arrivals of an open loop.
pub(crate) struct OpenLoop {
    /// Arrivals that were not started yet.
    next: Peekable<Arrivals>,
    /// Arrivals that are not due yet.
    coming: Peekable<Arrivals>,
    /// How many arrivals were started.
    taken: u64,
    /// How many arrivals are due.
    pub(crate) due: u64,
    /// The number of arrivals that belong to the phase.
    last: u64,
    /// The end of the phase, from its beginning; arrivals from then on do not belong to it.
    pub(crate) end_ns: u64,
    /// Connections that are being opened to serve the backlog.
    pub(crate) growing: usize,
    pub(crate) most: usize,
}

impl OpenLoop {
    /// Use the first `last` arrivals before `end_ns`, on at most `most` slots.
    pub(crate) fn new(arrivals: Arrivals, last: u64, end_ns: u64, most: usize) -> Self {
        Self {
            next: arrivals.clone().peekable(),
            coming: arrivals.peekable(),
            taken: 0,
            due: 0,
            last,
            end_ns,
            growing: 0,
            most,
        }
    }

    /// Count the arrivals that are due.
    pub(crate) fn advance(&mut self, elapsed_ns: u64) {
        while self.due < self.last
            && self
                .coming
                .next_if(|&at_ns| at_ns <= elapsed_ns && at_ns < self.end_ns)
                .is_some()
        {
            self.due += 1;
        }
    }

    pub(crate) fn backlog(&self) -> u64 {
        self.due - self.taken
    }

    /// Return when the next arrival is due; `None` after the last.
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        let end_ns = self.end_ns;
        (self.due < self.last)
            .then(|| self.coming.peek().copied())
            .flatten()
            .filter(|&at_ns| at_ns < end_ns)
    }

    /// Take the oldest arrival that is due.
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.backlog() == 0 {
            return None;
        }
        self.taken += 1;
        self.next.next()
    }
}
