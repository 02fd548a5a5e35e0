//! What a worker does when something happened: an operation ended, or a connection was lost or opened.

use uncork_model::{OnLost, Outcome};

use super::{
    FIRST_PAUSE_NS, LONGEST_PAUSE_NS, NO_CONNECTION_LIMIT_NS, Operation, Slot, State, Worker,
};
use crate::{End, Endpoint, Event, Failure};

/// SQLSTATEs after which pgbench's client does not abort: serialization failure and deadlock.
const CONFLICTS: [&str; 2] = ["40001", "40P01"];

impl<E: Endpoint> Worker<'_, E> {
    /// Process an event; return when it happened.
    pub(super) fn handle(&mut self, event: Event) -> u64 {
        match event {
            Event::Ended { slot, at_ns, end } => {
                self.finish(slot, at_ns, &end);
                at_ns
            }
            Event::Lost {
                slot,
                at_ns,
                failure,
            } => {
                self.lose(slot, at_ns, &failure);
                at_ns
            }
            Event::Opened { slot, at_ns } => {
                self.opened(slot, at_ns);
                at_ns
            }
            Event::NotOpened {
                slot,
                at_ns,
                failure,
            } => {
                self.not_opened(slot, at_ns, &failure);
                at_ns
            }
        }
    }

    fn finish(&mut self, slot: usize, at_ns: u64, end: &End) {
        let State::Busy(operation) = self.slots[slot].state else {
            return;
        };
        self.free(slot);
        self.recorder.digest.operation(operation.number, end.hash);
        self.recorder.retried += u64::from(end.retries > 0);
        self.count(slot, operation, at_ns, end.failure.as_deref(), end.retries);
        self.slots[slot].pause_ns = 0;
        if let Some(connection_failure) = &end.connection_failure
            && self.phase.plan.on_lost == OnLost::Stop
        {
            self.stop_early(Outcome::ConnectionLost, connection_failure.text());
            return;
        }
        if self.phase.plan.connect_each {
            self.close(slot, at_ns);
        } else {
            self.available(slot, at_ns);
        }
    }

    fn count(
        &mut self,
        slot: usize,
        operation: Operation,
        at_ns: u64,
        failure: Option<&Failure>,
        retries: u32,
    ) {
        let latency_ns = at_ns.saturating_sub(operation.intended_ns);
        if let Some(failure) = failure {
            self.recorder.failure(operation.script, Some(failure));
            if !CONFLICTS.contains(&failure.code.as_str()) {
                self.abort(slot, failure);
            }
            let elapsed_ns = at_ns.saturating_sub(self.start_ns);
            self.phase.stop_signal.failed(failure, elapsed_ns);
        } else {
            self.phase.stop_signal.succeeded();
            let service_ns = at_ns.saturating_sub(operation.started_ns);
            self.recorder
                .success(operation.script, latency_ns, service_ns);
            if let Some(limit_ns) = self.phase.plan.latency_limit_ns {
                self.recorder.late += u64::from(latency_ns > limit_ns);
            }
        }
        let client = self.client(slot);
        if let Some(log) = &mut self.log {
            let at_ns = at_ns.saturating_sub(self.start_ns);
            let lag_ns = operation.started_ns - operation.intended_ns;
            let end = crate::log::Ended {
                at_ns,
                latency_ns,
                lag_ns,
                retries,
                failure,
            };
            log.operation(client, self.slots[slot].begun, operation.script, &end);
        }
    }

    fn lose(&mut self, slot: usize, at_ns: u64, failure: &Failure) {
        if slot.is_multiple_of(self.phase.plan.pipeline_depth) {
            self.recorder.lost += 1;
            let client = self.client(slot);
            self.phase.messages.error(|| {
                let error = failure.text();
                format!("client {client} lost its connection: {error}")
            });
        }
        let state = self.slots[slot].state;
        let stops = self.phase.plan.on_lost == OnLost::Stop;
        if let State::Busy(operation) = state {
            self.free(slot);
            if stops {
                // The trial stops early because of it: how the operation would have ended is
                // unknown.
                self.recorder.failure(operation.script, None);
            } else {
                self.count(slot, operation, at_ns, Some(failure), 0);
            }
        }
        if stops {
            self.stop_early(Outcome::ConnectionLost, failure.text());
            return;
        }
        self.abort(slot, failure);
        if self.slots[slot].is_closed() {
            // It was lost at the end of the phase before, which did not open it again.
            self.endpoint.reopen(slot, at_ns);
            return;
        }
        let pause_ns = self.slots[slot].pause_ns;
        self.close(slot, at_ns + pause_ns);
    }

    fn opened(&mut self, slot: usize, at_ns: u64) {
        if slot == self.slots.len() {
            // A new connection counted as being opened, not as closed.
            self.slots.push(Slot::default());
            self.grown(1);
        } else if matches!(self.slots[slot].state, State::Closed) {
            self.closed -= 1;
        } else {
            // A connection that opened just before the phase began was counted among the open ones.
            return;
        }
        self.slots[slot].state = State::Idle;
        self.recorder.most = self.recorder.most.max(self.endpoint.connections().most);
        self.available(slot, at_ns);
    }

    fn not_opened(&mut self, slot: Option<usize>, at_ns: u64, failure: &Failure) {
        let plan = self.phase.plan;
        self.phase.messages.error(|| {
            let who = slot.map_or_else(
                || "an additional client".to_owned(),
                |slot| format!("client {}", self.client(slot)),
            );
            format!("{who} could not open a connection: {}", failure.text())
        });
        let Some(slot) = slot else {
            // The server accepts no further connection, so the load continues with the open ones.
            self.recorder.not_opened(failure);
            self.grown(plan.pipeline_depth);
            if let Some(open_loop) = &mut self.open_loop {
                open_loop.most = self.slots.len();
            }
            return;
        };
        if slot.is_multiple_of(plan.pipeline_depth) {
            self.recorder.not_opened(failure);
        }
        self.abort(slot, failure);
        if plan.accepting_pid.is_some_and(uncork_sample::has_ended) {
            self.stop_early(Outcome::ConnectionLost, failure.text());
            return;
        }
        if self.is_served() {
            self.without_ns = at_ns;
        } else if at_ns.saturating_sub(self.without_ns) >= NO_CONNECTION_LIMIT_NS {
            let limit_s = NO_CONNECTION_LIMIT_NS / 1_000_000_000;
            let message = format!("no connection for {limit_s} s: {}", failure.message);
            self.stop_early(Outcome::ConnectionLost, message);
            return;
        }
        let pause_ns = (self.slots[slot].pause_ns * 2).clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
        self.slots[slot].pause_ns = pause_ns;
        self.endpoint.reopen(slot, at_ns + pause_ns);
    }

    /// Whether a connection is open that sends something now, or may do so later. In a closed loop, a slot that
    /// is open and does nothing has sent all of its operations.
    fn is_served(&self) -> bool {
        let may_send = self.open_loop.is_some() || self.replay.is_some();
        self.busy > 0 || (may_send && self.closed < self.slots.len())
    }

    /// The number, over all threads, of a slot's client.
    fn client(&self, slot: usize) -> usize {
        self.share.client(slot / self.phase.plan.pipeline_depth)
    }

    /// End the trial because a client aborted, if the plan requires it.
    fn abort(&self, slot: usize, failure: &Failure) {
        if self.phase.plan.exit_on_abort {
            let message = format!("client {} aborted: {}", self.client(slot), failure.text());
            self.stop_early(Outcome::ClientAborted, message);
        }
    }
}
