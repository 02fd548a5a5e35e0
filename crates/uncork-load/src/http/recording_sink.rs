//! Records for tests what a sink receives.

use super::fault::{Fault, Head, Kind, Sink};

/// A call of the sink, with the slot of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SinkCall {
    Head(usize, u16),
    Body(usize, Vec<u8>),
    End(usize),
    Failed(usize, Kind),
    Unprocessed(usize, Kind),
}

/// All calls; consecutive parts of a body are joined.
#[derive(Debug, Default)]
pub(super) struct RecordingSink {
    pub(super) all: Vec<SinkCall>,
}

impl Sink for RecordingSink {
    fn head(&mut self, slot: usize, head: &Head) {
        self.all.push(SinkCall::Head(slot, head.status));
    }

    fn body(&mut self, slot: usize, bytes: &[u8]) {
        match self.all.last_mut() {
            Some(SinkCall::Body(its, body)) if *its == slot => body.extend_from_slice(bytes),
            _ => self.all.push(SinkCall::Body(slot, bytes.to_vec())),
        }
    }

    fn end(&mut self, slot: usize) {
        self.all.push(SinkCall::End(slot));
    }

    fn failed(&mut self, slot: usize, fault: Fault) {
        self.all.push(SinkCall::Failed(slot, fault.kind));
    }

    fn unprocessed(&mut self, slot: usize, kind: Kind) {
        self.all.push(SinkCall::Unprocessed(slot, kind));
    }
}
