//! Stops a trial before its stop rule does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use uncork_model::Outcome;

use crate::{Failure, Lease};

/// A load in which nothing succeeds ends after this time, if at least [`HOPELESS_FAILURES`]
/// operations have failed. A server that is only slow to start has succeeded once by then.
const HOPELESS_NS: u64 = 1_000_000_000;
const HOPELESS_FAILURES: u64 = 100;
/// Failures that may end without a change to the load or the server: conflicts between
/// transactions, and answers of an overloaded server.
const TRANSIENT: [&str; 8] = [
    "40001",
    "40P01",
    "55P03",
    "57014",
    "timed out",
    "abandoned",
    "status 429",
    "status 503",
];
/// The failure of every request to a server that speaks another protocol.
pub(crate) const OTHER_PROTOCOL: &str = "other protocol";

/// A request from outside to stop at once. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Request the stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether, and why, all threads of a trial should stop early. The first cause counts.
#[derive(Debug)]
pub(crate) struct StopSignal<'a> {
    interrupt: &'a Interrupt,
    cause: OnceLock<(Outcome, String)>,
    /// Whether the trial ends if nothing succeeds.
    gives_up: bool,
    succeeded: AtomicBool,
    failed: AtomicU64,
    /// The lease and its term, if the trial needs one.
    lease: Option<(&'a Lease, u64)>,
}

impl<'a> StopSignal<'a> {
    pub(crate) fn new(
        interrupt: &'a Interrupt,
        gives_up: bool,
        lease: Option<(&'a Lease, u64)>,
    ) -> Self {
        Self {
            interrupt,
            lease,
            cause: OnceLock::new(),
            gives_up,
            succeeded: AtomicBool::new(false),
            failed: AtomicU64::new(0),
        }
    }

    /// An operation succeeded: the trial will not be given up.
    pub(crate) fn succeeded(&self) {
        // Writing only once keeps the cache line shared between the threads.
        if !self.succeeded.load(Ordering::Relaxed) {
            self.succeeded.store(true, Ordering::Relaxed);
        }
    }

    /// An operation failed, so long after the phase began. Gives up if nothing has succeeded so far.
    pub(crate) fn failed(&self, failure: &Failure, elapsed_ns: u64) {
        if !self.gives_up || self.succeeded.load(Ordering::Relaxed) {
            return;
        }
        if TRANSIENT.contains(&failure.code.as_str()) {
            return;
        }
        let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        if failure.code == OTHER_PROTOCOL
            || (failed >= HOPELESS_FAILURES && elapsed_ns >= HOPELESS_NS)
        {
            self.set(Outcome::NothingSucceeded, failure.text());
        }
    }

    /// Whether there is a lease.
    pub(crate) fn needs_lease(&self) -> bool {
        self.lease.is_some()
    }

    /// Stop if the lease is over at this time of the machine's monotonic clock; return whether it is.
    pub(crate) fn lease_is_over(&self, monotonic_ns: u64) -> bool {
        let Some((lease, term_ns)) = self.lease else {
            return false;
        };
        let over = lease.is_over(term_ns, monotonic_ns);
        if over {
            let seconds = Duration::from_nanos(term_ns).as_secs_f64();
            let message = format!("the lease was not renewed for {seconds} s");
            self.set(Outcome::LeaseEnded, message);
        }
        over
    }

    pub(crate) fn set(&self, outcome: Outcome, message: impl Into<String>) {
        // A later cause is a consequence of the first.
        let _ = self.cause.set((outcome, message.into()));
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }

    pub(crate) fn is_set(&self) -> bool {
        self.interrupted() || self.cause.get().is_some()
    }

    pub(crate) fn cause(&self) -> Option<&(Outcome, String)> {
        self.cause.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER_NS: u64 = HOPELESS_NS + 1;

    fn failure(code: &str) -> Failure {
        Failure {
            code: code.to_owned(),
            message: "no".to_owned(),
            place: None,
        }
    }

    fn after(gives_up: bool, code: &str, failures: u64, elapsed_ns: u64) -> bool {
        let interrupt = Interrupt::default();
        let signal = StopSignal::new(&interrupt, gives_up, None);
        for _ in 0..failures {
            signal.failed(&failure(code), elapsed_ns);
        }
        signal.is_set()
    }

    #[test]
    fn a_trial_is_given_up_once_enough_has_failed_for_long_enough() {
        assert!(after(true, "42P01", HOPELESS_FAILURES, LATER_NS));
        assert!(!after(true, "42P01", HOPELESS_FAILURES - 1, LATER_NS));
        assert!(!after(
            true,
            "42P01",
            10 * HOPELESS_FAILURES,
            HOPELESS_NS - 1
        ));
        assert!(!after(false, "42P01", HOPELESS_FAILURES, LATER_NS));
    }

    #[test]
    fn another_protocol_ends_a_trial_at_once_and_transient_failures_never_do() {
        assert!(after(true, OTHER_PROTOCOL, 1, 0));
        for code in TRANSIENT {
            assert!(!after(true, code, 10 * HOPELESS_FAILURES, LATER_NS));
        }
    }

    #[test]
    fn one_success_keeps_a_trial_going() {
        let interrupt = Interrupt::default();
        let signal = StopSignal::new(&interrupt, true, None);
        signal.succeeded();
        for _ in 0..2 * HOPELESS_FAILURES {
            signal.failed(&failure("42P01"), LATER_NS);
        }
        assert!(!signal.is_set());
    }

    #[test]
    fn the_cause_names_the_failure() {
        let interrupt = Interrupt::default();
        let signal = StopSignal::new(&interrupt, true, None);
        signal.failed(&failure(OTHER_PROTOCOL), 0);
        let cause = Some((Outcome::NothingSucceeded, "no".to_owned()));
        assert_eq!(signal.cause().cloned(), cause);
    }
}
