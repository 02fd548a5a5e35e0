//! A replay: recorded operations that each belong to a client, which sends its own in their order.

use std::collections::VecDeque;

use uncork_model::{ArrivalPlan, LoadPlan};
use uncork_schedule::Pattern;

use super::{State, Worker};
use crate::{Endpoint, Share};

/// An operation that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    number: u64,
    /// Its intended start, by the endpoint's clock.
    intended_ns: u64,
}

/// One thread's operations of a replay. A client whose operation takes longer than recorded sends the next ones late:
/// they wait in its queue.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// The number of each operation, and the slot of its client, by intended start.
    operations: Vec<(u64, usize)>,
    /// How many of them were queued.
    taken: usize,
    /// The operations that are due, by slot.
    queues: Vec<VecDeque<Due>>,
    queued: u64,
}

impl Replay {
    /// Return one thread's operations and their arrivals; `None` unless operations have clients.
    pub(crate) fn of(plan: &LoadPlan, share: Share) -> Option<(Self, Pattern)> {
        let recorded = plan.recorded.as_ref().filter(|it| it.is_replay())?;
        let Some(ArrivalPlan::Trace { offsets_ns }) = &plan.arrivals else {
            return None;
        };
        let first = share.client(0);
        let own = first..first + share.count();
        let mut arrivals = Vec::new();
        let mut replay = Self {
            queues: vec![VecDeque::new(); share.count()],
            ..Self::default()
        };
        let both = (0_u64..).zip(recorded.clients.iter().zip(offsets_ns));
        for (number, (client, &at_ns)) in both.filter(|(_, (client, _))| own.contains(client)) {
            replay.operations.push((number, client - first));
            arrivals.push(at_ns);
        }
        Some((replay, Pattern::Trace(arrivals.into())))
    }

    /// Queue the next operation, and return its slot.
    fn queue(&mut self, intended_ns: u64) -> usize {
        let (number, slot) = self.operations[self.taken];
        self.taken += 1;
        self.queued += 1;
        self.queues[slot].push_back(Due {
            number,
            intended_ns,
        });
        slot
    }

    /// Return how many operations wait for a slot.
    fn waits(&self, slot: usize) -> usize {
        self.queues[slot].len()
    }

    /// Return how many operations wait.
    fn queued(&self) -> u64 {
        self.queued
    }

    /// Take the operation of a slot that waits longest.
    fn next(&mut self, slot: usize) -> Option<Due> {
        let due = self.queues[slot].pop_front()?;
        self.queued -= 1;
        Some(due)
    }
}

impl<E: Endpoint> Worker<'_, E> {
    /// Replay: queue the operations that are due for their clients, and start those of idle ones.
    pub(super) fn replay_due(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.advance(elapsed_ns);
        }
        while !self.must_stop()
            && let Some(open_loop) = &mut self.open_loop
            && let Some(at_ns) = open_loop.take()
            && let Some(replay) = &mut self.replay
        {
            let slot = replay.queue(self.start_ns.saturating_add(at_ns));
            if replay.waits(slot) == 1 && matches!(self.slots[slot].state, State::Idle) {
                self.recorder.lateness(elapsed_ns.saturating_sub(at_ns));
                self.replay_next(slot, now_ns);
            }
        }
    }

    /// Replay: start the next operation that waits for an idle client, unless the load is over.
    pub(super) fn replay_next(&mut self, slot: usize, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        let is_over = self
            .open_loop
            .as_ref()
            .is_none_or(|open_loop| elapsed_ns >= open_loop.end_ns);
        while !is_over && !self.must_stop() {
            let Some(Due {
                number,
                intended_ns,
            }) = self.replay.as_mut().and_then(|replay| replay.next(slot))
            else {
                return;
            };
            let script = self.choose(slot, 0, number);
            let limit_ns = self.phase.plan.latency_limit_ns.unwrap_or(u64::MAX);
            if now_ns.saturating_sub(intended_ns) > limit_ns {
                self.recorder.skip(script);
                continue;
            }
            self.begin(slot, number, script, intended_ns, now_ns);
            return;
        }
    }

    /// Replay: the number of operations that wait for their clients.
    pub(super) fn queued(&self) -> u64 {
        self.replay.as_ref().map_or(0, Replay::queued)
    }
}
