//! What all threads of a process share in one phase, and how operations are numbered.

use std::sync::atomic::{AtomicU64, Ordering};

use uncork_model::{LoadPlan, Stop};

use crate::board::Board;
use crate::stop_signal::StopSignal;
use crate::{Messages, Share};

/// What all threads share in one phase.
pub(crate) struct Phase<'a> {
    pub(crate) plan: &'a LoadPlan,
    /// Weights of the scripts.
    pub(crate) weights: &'a [u32],
    /// The next operation's number among those of this process, over all phases.
    pub(crate) next_operation: &'a AtomicU64,
    /// What is added to the numbers of an open loop's arrivals: a warm-up has numbers of its own.
    pub(crate) numbers_from: u64,
    /// The number of this phase's first operation among those of this process.
    pub(crate) first_operation: u64,
    /// Why to stop early.
    pub(crate) stop_signal: &'a StopSignal<'a>,
    /// Where intervals are published; `None` in the warm-up.
    pub(crate) board: Option<&'a Board>,
    /// Receives lines about connections that are lost or cannot be opened.
    pub(crate) messages: &'a Messages,
    pub(crate) stop: Stop,
}

impl Phase<'_> {
    /// How many operations of this phase have begun, or more: a client that finds none left counts too.
    pub(crate) fn begun(&self) -> u64 {
        self.next_operation.load(Ordering::Relaxed) - self.first_operation
    }

    /// The number of a thread's first arrival in an open loop. Its other arrivals follow in steps of
    /// the number of threads of all parts, so that what an arrival sends depends on no other thread.
    /// A skipped arrival keeps its number.
    pub(crate) fn first_number(&self, share: Share) -> u64 {
        self.numbers_from + self.first_round(share) * share.threads as u64 + share.thread as u64
    }

    /// How many rounds of one operation of each thread have gone before.
    fn first_round(&self, share: Share) -> u64 {
        match self.plan.warmup_operations {
            0 => self
                .first_operation
                .div_ceil(self.plan.effective_threads() as u64),
            warmup => warmup.div_ceil(share.threads as u64),
        }
    }

    /// Let the next phase's operations have numbers after those of `arrivals` of a thread.
    pub(crate) fn number_after(&self, share: Share, arrivals: u64) {
        let local = (self.first_round(share) + arrivals) * self.plan.effective_threads() as u64;
        self.next_operation.fetch_max(local, Ordering::Relaxed);
    }

    /// As in pgbench: operations are not retried once they are late, or when time is up.
    pub(crate) fn retry_until_ns(&self, start_ns: u64, intended_ns: u64) -> u64 {
        let plan = self.plan;
        let limit_ns = plan
            .latency_limit_ns
            .map_or(u64::MAX, |limit_ns| intended_ns.saturating_add(limit_ns));
        match self.stop {
            Stop::DurationNs(duration_ns) => limit_ns.min(start_ns + duration_ns),
            Stop::Operations(_) | Stop::OperationsEach(_) => limit_ns,
        }
    }

    /// A client's number of operations, divided among its slots.
    pub(crate) fn slot_share(&self, slot: usize, count: u64) -> u64 {
        let depth = self.plan.pipeline_depth as u64;
        let local_slot = slot as u64 % depth;
        count / depth + u64::from(local_slot < count % depth)
    }
}
