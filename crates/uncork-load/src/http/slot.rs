//! One request under way on a connection, and the evaluation of its answer.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::check::{Gathered, check_body, check_head};
use super::fault::{Fault, Head, Kind, Sink};
use super::request::Program;
use crate::{End, Event, Recorder, Task};

/// How often a request is sent again that the server has not processed.
const MOST_AGAIN: u32 = 5;

/// A place for one request at a time.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) state: SlotState,
    pub(crate) task: Task,
    /// The request's number on its connection, from 1; 0 until it was sent.
    pub(crate) nth: u64,
    /// How often it was sent again.
    again: u32,
    /// Whether its answer stalled for as long as an acknowledgement is delayed.
    pub(crate) stalled: bool,
    body_bytes: u64,
    /// The declared length of the body.
    said_bytes: Option<u64>,
    gathered: Gathered,
    /// What is wrong with the answer.
    fault: Option<Fault>,
}

/// The states of a slot.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// No request.
    #[default]
    Free,
    /// Its request is to be sent when the connection accepts it.
    Waiting,
    /// Its request was sent.
    Sent,
}

impl Slot {
    /// Begin an operation.
    pub(crate) fn take(&mut self, task: Task) {
        self.state = SlotState::Waiting;
        self.task = task;
        self.nth = 0;
        self.again = 0;
    }

    /// HTTP/2: report a body whose length differs from the declared one.
    fn wrong_length(&self) -> Option<Fault> {
        let (said, found) = (self.said_bytes?, self.body_bytes);
        let kind = match found.cmp(&said) {
            Ordering::Less => Kind::Truncated,
            Ordering::Greater => Kind::Garbage,
            Ordering::Equal => return None,
        };
        let message = format!("an answer has {found} bytes, though its content-length is {said}");
        Some(Fault::new(kind, message))
    }

    fn rewind(&mut self) {
        self.stalled = false;
        self.body_bytes = 0;
        self.gathered = Gathered::Nothing;
        self.fault = None;
    }
}

/// Passes what is read from a connection on to its slots and to the recorder.
pub(crate) struct Answering<'a> {
    pub(crate) program: &'a Program,
    pub(crate) slots: &'a mut [Slot],
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) happened: &'a mut VecDeque<Event>,
    /// Slots whose requests are to be sent again.
    pub(crate) again: &'a mut VecDeque<usize>,
    /// The number of the connection's first slot.
    pub(crate) first_slot: usize,
    /// When the bytes arrived.
    pub(crate) now_ns: u64,
    /// The connection's number over all threads, from 0.
    pub(crate) client: usize,
    /// How many answers the connection has carried.
    pub(crate) answered: &'a mut u64,
}

impl Answering<'_> {
    fn ended(&mut self, slot: usize, mut fault: Option<Fault>) {
        let state = &mut self.slots[slot];
        if let Some(fault) = &mut fault
            && state.nth > 0
            && self.recorder.first_error.is_none()
        {
            // Only the first error is shown, so only it needs the place.
            let place = format!(" (request {} of connection {})", state.nth, self.client + 1);
            fault.message.push_str(&place);
        }
        state.state = SlotState::Free;
        let retries = state.again;
        if state.stalled {
            self.recorder.answers().stalls.answers += 1;
        }
        state.rewind();
        self.happened.push_back(Event::Ended {
            slot: self.first_slot + slot,
            at_ns: self.now_ns,
            end: End {
                failure: fault.map(|fault| Box::new(fault.failure())),
                retries,
                ..End::default()
            },
        });
    }
}

impl Sink for Answering<'_> {
    fn head(&mut self, slot: usize, head: &Head) {
        let state = &mut self.slots[slot];
        let first_byte_ns = self.now_ns.saturating_sub(state.task.at_ns);
        let answers = self.recorder.answers();
        answers.head(
            head.status,
            first_byte_ns,
            head.wire_bytes,
            head.plain_bytes,
        );
        let request = &self.program.requests[state.task.script];
        let bodiless = request.head_only || matches!(head.status, 204 | 304);
        state.said_bytes = head.length.filter(|_| !bodiless);
        let checks = &request.checks;
        state.fault = check_head(checks, head);
        state.gathered = Gathered::for_checks(checks);
    }

    fn body(&mut self, slot: usize, bytes: &[u8]) {
        let state = &mut self.slots[slot];
        state.body_bytes += bytes.len() as u64;
        state.gathered.add(bytes);
    }

    fn end(&mut self, slot: usize) {
        let state = &mut self.slots[slot];
        *self.answered += 1;
        self.recorder.answers().body_bytes += state.body_bytes;
        let checks = &self.program.requests[state.task.script].checks;
        let gathered = std::mem::take(&mut state.gathered);
        let fault = state.fault.take().or_else(|| state.wrong_length());
        let fault = fault.or_else(|| check_body(checks, state.body_bytes, gathered));
        self.ended(slot, fault);
    }

    fn failed(&mut self, slot: usize, fault: Fault) {
        self.recorder.answers().body_bytes += self.slots[slot].body_bytes;
        self.ended(slot, Some(fault));
    }

    fn unprocessed(&mut self, slot: usize, kind: Kind) {
        let state = &mut self.slots[slot];
        state.rewind();
        if state.again < MOST_AGAIN {
            state.again += 1;
            state.state = SlotState::Waiting;
            self.recorder.retry(state.task.script, &kind.word());
            self.again.push_back(slot);
            return;
        }
        self.recorder.answers().unprocessed += 1;
        let message = format!(
            "the server refused the request unprocessed {} times ({})",
            MOST_AGAIN + 1,
            kind.word()
        );
        self.ended(slot, Some(Fault::new(kind, message)));
    }
}
