//! Silences in the middle of an answer.

use super::{Connection, Context, Protocol};
use crate::http::stall_probe::{SILENCE_NS, STALL_NS};

impl Connection {
    /// Note that something was received, and evaluate the silence before it.
    pub(super) fn note_received(&mut self, now_ns: u64, context: &mut Context<'_>) {
        let silent_ns = now_ns.saturating_sub(std::mem::replace(&mut self.received_ns, now_ns));
        if !self.midway || silent_ns < SILENCE_NS {
            return;
        }
        if let Some(hastened) = self.probed.take() {
            let stalls = &mut context.recorder.answers().stalls;
            stalls.ended(hastened, silent_ns < STALL_NS.start);
        }
        if STALL_NS.contains(&silent_ns) {
            context.stall_probe.stalled();
            match &self.protocol {
                Some(Protocol::Http1(http1)) => {
                    http1.midway().into_iter().for_each(|slot| {
                        self.slots[slot].stalled = true;
                    });
                }
                Some(Protocol::Http2(http2)) => http2.midway().for_each(|slot| {
                    self.slots[slot].stalled = true;
                }),
                Some(Protocol::Http3(_)) | None => {}
            }
        }
    }

    /// Whether an answer is incomplete.
    pub(super) fn is_midway(&self) -> bool {
        match &self.protocol {
            Some(Protocol::Http1(http1)) => http1.is_midway() || !self.pending.is_empty(),
            Some(Protocol::Http2(http2)) => http2.is_midway(),
            Some(Protocol::Http3(_)) | None => false,
        }
    }

    /// Since when an incomplete answer has been silent, if this silence is not part of the stall
    /// probe yet.
    pub(crate) fn silent_from_ns(&self) -> Option<u64> {
        (self.midway && self.probed.is_none()).then_some(self.received_ns)
    }

    /// Make the silence part of the stall probe: shorten it, or leave it as a control.
    pub(crate) fn draw(&mut self, hastens: bool) {
        self.probed = Some(hastens);
        if let (true, Some(stream)) = (hastens, &self.stream) {
            stream.acknowledge();
        }
    }
}
