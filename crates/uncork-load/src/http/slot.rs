//! One request under way on a connection, and the evaluation of its answer.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use super::capture::capture_headers;
use super::check::{Gathered, check_body, check_head};
use super::fault::{Fault, Head, Kind, Sink};
use super::redaction::without_values;
use super::request::Program;
use super::session::{Login, Session};
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
    /// The number that selects the client's own values.
    pub(crate) identity: usize,
    /// How many answers the connection has carried.
    pub(crate) answered: &'a mut u64,
    /// What the client keeps between its requests.
    pub(crate) session: &'a mut Option<Box<Session>>,
}

impl Answering<'_> {
    fn ended(&mut self, slot: usize, mut fault: Option<Fault>) {
        let state = &mut self.slots[slot];
        if state.task.script >= self.program.first_login {
            self.logged_in(slot, fault);
            return;
        }
        if let Some(fault) = &mut fault
            && self
                .recorder
                .answers()
                .is_first(state.task.script, &fault.kind.word())
        {
            // Only the first message of each kind is shown.
            let (environment, session) = (&self.program.environment, self.session.as_deref());
            fault.message = without_values(&fault.message, environment, session);
            if state.nth > 0 {
                let place = format!(" (request {} of connection {})", state.nth, self.client + 1);
                fault.message.push_str(&place);
            }
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

    /// A step of the login ended; the endpoint continues with the next one.
    fn logged_in(&mut self, slot: usize, fault: Option<Fault>) {
        let state = &mut self.slots[slot];
        let step = state.task.script - self.program.first_login;
        let latency_ns = self.now_ns.saturating_sub(state.task.at_ns);
        let latency_ns = fault.is_none().then_some(latency_ns);
        self.recorder.answers().logged_in(step, latency_ns);
        state.state = SlotState::Free;
        state.rewind();
        let session = self.session.get_or_insert_default();
        session.login = match fault {
            None if state.task.script + 1 == self.program.requests.len() => Login::Done,
            None => Login::Next(step + 1),
            Some(fault) => {
                let name = &self.program.requests[state.task.script].name;
                let message = format!("login step \"{name}\": {}", fault.message);
                let environment = &self.program.environment;
                let message = without_values(&message, environment, Some(session));
                Login::Failed(Fault::new(fault.kind, message))
            }
        };
    }

    fn count_body(&mut self, slot: usize) {
        let state = &self.slots[slot];
        let (script, bytes) = (state.task.script, state.body_bytes);
        if !self.is_login(slot) {
            let answers = self.recorder.answers();
            answers.body_bytes += bytes;
            answers.received(script, bytes);
        }
    }

    /// Whether a slot carries out a step of the login.
    fn is_login(&self, slot: usize) -> bool {
        self.slots[slot].task.script >= self.program.first_login
    }
}

impl Sink for Answering<'_> {
    fn head(&mut self, slot: usize, head: &Head) {
        let login = self.is_login(slot);
        let state = &mut self.slots[slot];
        if !login {
            let first_byte_ns = self.now_ns.saturating_sub(state.task.at_ns);
            let answers = self.recorder.answers();
            answers.head(
                head.status,
                first_byte_ns,
                head.wire_bytes,
                head.plain_bytes,
            );
            answers.received(state.task.script, head.wire_bytes as u64);
        }
        let request = &self.program.requests[state.task.script];
        let bodiless = request.head_only || matches!(head.status, 204 | 304);
        state.said_bytes = head.length.filter(|_| !bodiless);
        let expected = &request.expected;
        state.fault = check_head(expected, head);
        state.gathered = Gathered::of(expected);
        if let Some(session) = self.session {
            if self.program.cookies {
                keep_cookies(session, head);
            }
            if state.fault.is_none() {
                state.fault = capture_headers(expected, head, session);
            }
        }
    }

    fn body(&mut self, slot: usize, bytes: &[u8]) {
        let state = &mut self.slots[slot];
        state.body_bytes += bytes.len() as u64;
        state.gathered.add(bytes);
    }

    fn end(&mut self, slot: usize) {
        *self.answered += 1;
        self.count_body(slot);
        let state = &mut self.slots[slot];
        let expected = &self.program.requests[state.task.script].expected;
        let gathered = std::mem::take(&mut state.gathered);
        let mut fault = state.fault.take().or_else(|| state.wrong_length());
        if fault.is_none() {
            let (number, session) = (state.task.number, self.session.as_deref());
            let operation = self.program.operation(number, self.identity, session);
            match check_body(expected, state.body_bytes, gathered, operation) {
                Ok(values) => {
                    for (place, value) in values {
                        if let Some(session) = self.session {
                            session.capture(place, &value);
                        }
                    }
                }
                Err(found) => fault = Some(found),
            }
        }
        self.ended(slot, fault);
    }

    fn failed(&mut self, slot: usize, fault: Fault) {
        self.count_body(slot);
        self.ended(slot, Some(fault));
    }

    fn unprocessed(&mut self, slot: usize, kind: Kind) {
        let state = &mut self.slots[slot];
        state.rewind();
        if state.again < MOST_AGAIN {
            state.again += 1;
            state.state = SlotState::Waiting;
            if state.task.script < self.program.first_login {
                self.recorder.retry(state.task.script, &kind.word());
            }
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

fn keep_cookies(session: &mut Session, head: &Head) {
    let fields = head.fields.iter();
    let cookies = fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie"));
    for (_, value) in cookies {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0));
        session.set_cookie(value, now_s);
    }
}
