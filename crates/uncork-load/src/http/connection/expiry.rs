//! Requests that take too long.

use super::{Connection, Context, Ended, Protocol, seconds};
use crate::http::fault::{Fault, Kind};
use crate::http::slot::{Slot, SlotState};

impl Connection {
    /// Fail the requests that began before `before_ns`, by the worker's clock.
    pub(crate) fn expire(&mut self, before_ns: u64, context: &mut Context<'_>) -> Option<Ended> {
        let late = |slot: &Slot| slot.state != SlotState::Free && slot.task.at_ns <= before_ns;
        if !self.slots.iter().any(late) {
            return None;
        }
        let seconds = seconds(context.state.plan.request_timeout_ns.unwrap_or(0));
        let fault = Fault::new(
            Kind::TimedOut,
            format!("a request had no complete answer after {seconds} s (--timeout)"),
        );
        let slots: Vec<usize> = (0..self.slots.len())
            .filter(|&slot| late(&self.slots[slot]))
            .collect();
        let mut breaks = false;
        for slot in slots {
            if self.slots[slot].state == SlotState::Waiting {
                self.waiting.retain(|&waiting| waiting != slot);
                context.recorder.answers().unprocessed += 1;
            } else if let Some(Protocol::Http2(http2)) = &mut self.protocol {
                http2.cancel(slot, &mut self.outgoing);
            } else if let Some(Protocol::Http3(http3)) = &mut self.protocol {
                http3.cancel(slot);
            } else {
                breaks = true;
                continue;
            }
            self.fail(slot, fault.clone(), context);
        }
        if !breaks {
            self.dirty = true;
            return None;
        }
        // In HTTP/1.1 the only way to cancel an answer is to close the connection.
        for slot in 0..self.slots.len() {
            if self.slots[slot].state == SlotState::Sent {
                let fault = if late(&self.slots[slot]) {
                    fault.clone()
                } else {
                    let message = "the connection was closed because a request took too long";
                    Fault::new(Kind::Abandoned, message)
                };
                self.fail(slot, fault, context);
            }
        }
        self.protocol = None;
        Some(self.ended(true, fault.message))
    }
}
