//! The open loop: any idle connection sends the next operation that has arrived. If operations wait, the endpoint opens
//! further connections.

use super::Worker;
use crate::Endpoint;

impl<E: Endpoint> Worker<'_, E> {
    /// Open loop: start due operations on idle slots, the oldest first, and request another
    /// connection while more are waiting.
    pub(super) fn launch_due(&mut self, now_ns: u64) {
        let start_ns = self.start_ns;
        let elapsed_ns = now_ns.saturating_sub(start_ns);
        let Some(open_loop) = &mut self.open_loop else {
            return;
        };
        let mut punctual = if open_loop.backlog() > 0 {
            0
        } else {
            self.free
        };
        open_loop.advance(elapsed_ns);
        if elapsed_ns >= open_loop.end_ns {
            return;
        }
        while let Some(&slot) = self.idle.last() {
            if self.must_stop() {
                return;
            }
            let Some(open_loop) = &mut self.open_loop else {
                return;
            };
            let arrival = open_loop.taken;
            let Some(intended_ns) = open_loop.take() else {
                return;
            };
            let number = self.first_number + arrival * self.share.threads as u64;
            let intended_ns = start_ns + intended_ns;
            let late_ns = now_ns.saturating_sub(intended_ns);
            // Which connection is free depends on the server. What an arrival sends must not.
            let script = self.choose(slot, 0, number);
            let limit_ns = self.phase.plan.latency_limit_ns.unwrap_or(u64::MAX);
            if late_ns > limit_ns {
                self.recorder.skip(script);
                continue;
            }
            self.idle.pop();
            // Lag counts only for operations that found a free connection: other delays are not the
            // generator's fault.
            if punctual > 0 {
                punctual -= 1;
                self.recorder.lateness(late_ns);
            }
            self.begin(slot, number, script, intended_ns, now_ns);
        }
        self.grow();
    }

    pub(super) fn grow(&mut self) {
        let depth = self.phase.plan.pipeline_depth;
        let Some(open_loop) = &mut self.open_loop else {
            return;
        };
        let waiting = usize::try_from(open_loop.backlog()).unwrap_or(usize::MAX);
        let wanted = waiting.min(open_loop.most.saturating_sub(self.slots.len()));
        while open_loop.growing < wanted {
            open_loop.growing += depth;
            self.endpoint.grow();
        }
    }

    pub(super) fn grown(&mut self, slots: usize) {
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.growing = open_loop.growing.saturating_sub(slots);
        }
    }
}
