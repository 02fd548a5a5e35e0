//! Silences in the middle of an answer.

use super::{Link, Shared, Wire};
use crate::http::stall::{SILENCE_NS, STALL_NS};

impl Link {
    /// Something was received: looks at how long nothing was.
    pub(super) fn hear(&mut self, now_ns: u64, shared: &mut Shared<'_>) {
        let silent_ns = now_ns.saturating_sub(std::mem::replace(&mut self.heard_ns, now_ns));
        if !self.midway || silent_ns < SILENCE_NS {
            return;
        }
        if let Some(hastened) = self.lot.take() {
            let stalls = &mut shared.recorder.answers().stalls;
            stalls.ended(hastened, silent_ns < STALL_NS.start);
        }
        if STALL_NS.contains(&silent_ns) {
            shared.lots.stalled();
            match &self.wire {
                Some(Wire::One(one)) => {
                    one.midway().into_iter().for_each(|lane| {
                        self.lanes[lane].stalled = true;
                    });
                }
                Some(Wire::Two(two)) => two.midway().for_each(|lane| {
                    self.lanes[lane].stalled = true;
                }),
                None => {}
            }
        }
    }

    /// Whether an answer has begun that is not whole.
    pub(super) fn is_midway(&self) -> bool {
        match &self.wire {
            Some(Wire::One(one)) => one.is_midway() || !self.pending.is_empty(),
            Some(Wire::Two(two)) => two.is_midway(),
            None => false,
        }
    }

    /// Since when nothing has come though an answer has begun, if no lot was drawn for it yet.
    pub(crate) fn silent_from_ns(&self) -> Option<u64> {
        (self.midway && self.lot.is_none()).then_some(self.heard_ns)
    }

    /// The silence takes part in the trial: it is hastened or not.
    pub(crate) fn draw(&mut self, hastens: bool) {
        self.lot = Some(hastens);
        if let (true, Some(stream)) = (hastens, &self.stream) {
            stream.acknowledge();
        }
    }
}
