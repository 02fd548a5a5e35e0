//! What tests see of answers.

use super::fault::{Fault, Head, Kind, Sink};

/// Something that was told of a request, by its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Saw {
    Head(usize, u16),
    Body(usize, Vec<u8>),
    End(usize),
    Failed(usize, Kind),
    Unprocessed(usize, Kind),
}

/// All that was told; parts of a body that follow one another are one.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) all: Vec<Saw>,
}

impl Sink for Gathered {
    fn head(&mut self, lane: usize, head: &Head) {
        self.all.push(Saw::Head(lane, head.status));
    }

    fn body(&mut self, lane: usize, bytes: &[u8]) {
        match self.all.last_mut() {
            Some(Saw::Body(its, body)) if *its == lane => body.extend_from_slice(bytes),
            _ => self.all.push(Saw::Body(lane, bytes.to_vec())),
        }
    }

    fn end(&mut self, lane: usize) {
        self.all.push(Saw::End(lane));
    }

    fn failed(&mut self, lane: usize, fault: Fault) {
        self.all.push(Saw::Failed(lane, fault.kind));
    }

    fn unprocessed(&mut self, lane: usize, kind: Kind) {
        self.all.push(Saw::Unprocessed(lane, kind));
    }
}
