//! The arrivals of an open loop: which are due, which were started, and how many wait.

use std::iter::Peekable;

use uncork_model::{LoadPlan, RecordedPlan, Stop};
use uncork_schedule::Arrivals;

use crate::Share;

/// The arrivals of an open loop.
pub(crate) struct OpenLoop {
    /// Arrivals that were not started yet.
    next: Peekable<Arrivals>,
    /// Arrivals that are not due yet.
    coming: Peekable<Arrivals>,
    /// How many arrivals were taken, to be started or skipped.
    pub(crate) taken: u64,
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
    /// One thread's arrivals of a phase that ends by `stop`.
    pub(crate) fn new(arrivals: Arrivals, share: Share, plan: &LoadPlan, stop: Stop) -> Self {
        let (last, end_ns) = limits(share, plan, stop);
        Self {
            next: arrivals.clone().peekable(),
            coming: arrivals.peekable(),
            taken: 0,
            due: 0,
            last,
            end_ns,
            growing: 0,
            most: share.of(plan.most_clients()) * plan.pipeline_depth,
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

/// The number of a thread's arrivals in a phase, and the phase's end from its beginning.
pub(crate) fn limits(share: Share, plan: &LoadPlan, stop: Stop) -> (u64, u64) {
    let of = |count: u64| {
        let (thread, threads) = (share.thread as u64, share.threads as u64);
        count / threads + u64::from(thread < count % threads)
    };
    match stop {
        Stop::DurationNs(duration_ns) => (u64::MAX, duration_ns),
        // The threads of a replay have arrivals of their own, to the last.
        _ if plan.recorded.as_ref().is_some_and(RecordedPlan::is_replay) => (u64::MAX, u64::MAX),
        Stop::Operations(count) => (of(count), u64::MAX),
        Stop::OperationsEach(count) => (of(count * plan.clients as u64), u64::MAX),
    }
}
