//! A driver without a server: declared latencies in virtual time, so that tests know the results in
//! advance.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use uncork_model::{Connections, DigestMode, Fake};

use crate::digest::chain;
use crate::recorder::Shape;
use crate::{
    Driver, End, Endpoint, Event, Failure, Interrupt, LoadError, Recorder, Share, Task, Traffic,
};

/// The SQLSTATE of declared failures: a serialization failure.
const SQLSTATE: &str = "40001";

/// Answers every statement with one row after its declared latency. Transaction control and opening
/// connections take no time.
#[derive(Debug)]
pub struct FakeDriver {
    fake: Fake,
    /// The numbers of each script's statements.
    scripts: Vec<Vec<usize>>,
    digest: DigestMode,
    depth: usize,
}

impl FakeDriver {
    /// A driver for the scripts of a plan.
    #[must_use]
    pub fn new(fake: Fake, shape: &Shape, digest: DigestMode, depth: usize) -> Self {
        let statements = |script| {
            let numbered = shape.statements.iter().enumerate();
            let own = numbered.filter(move |(_, facts)| facts.script == script);
            own.map(|(number, _)| number).collect()
        };
        Self {
            fake,
            scripts: (0..shape.scripts.len()).map(statements).collect(),
            digest,
            depth,
        }
    }
}

impl Driver for FakeDriver {
    type Endpoint = FakeEndpoint;

    fn open(&self, share: Share, _interrupt: &Interrupt) -> Result<FakeEndpoint, LoadError> {
        let slots = share.count() * self.depth;
        Ok(FakeEndpoint {
            fake: self.fake.clone(),
            scripts: self.scripts.clone(),
            digest: self.digest,
            depth: self.depth,
            slots: vec![None; slots],
            now_ns: 0,
            under_way: BinaryHeap::new(),
            happened: VecDeque::new(),
            traffic: Traffic::default(),
            connections: Connections {
                opened: share.count() as u64,
                most: share.count() as u64,
                ..Connections::default()
            },
        })
    }
}

/// One thread's imaginary connections, in virtual time that jumps from answer to answer.
#[derive(Debug)]
pub struct FakeEndpoint {
    fake: Fake,
    scripts: Vec<Vec<usize>>,
    digest: DigestMode,
    depth: usize,
    /// What each slot does.
    slots: Vec<Option<Operation>>,
    now_ns: u64,
    /// When a statement ends, and on which slot; the earliest first.
    under_way: BinaryHeap<Reverse<(u64, usize)>>,
    happened: VecDeque<Event>,
    traffic: Traffic,
    connections: Connections,
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
struct Operation {
    task: Task,
    /// Which of the script's statements.
    at: usize,
    sent_ns: u64,
    hash: u128,
}

impl FakeEndpoint {
    /// Send a slot's next statement, or ends its operation.
    fn go_on(&mut self, slot: usize, mut operation: Operation) {
        let statements = self.scripts[operation.task.script].len() as u64;
        if operation.at as u64 == statements {
            self.end(slot, operation, None);
            return;
        }
        let number =
            u128::from(operation.task.number) * u128::from(statements) + operation.at as u128;
        let latencies = &self.fake.latencies_ns;
        let index = usize::try_from(number % latencies.len() as u128).unwrap_or(0);
        operation.sent_ns = self.now_ns;
        self.under_way.push(Reverse((
            self.now_ns.saturating_add(latencies[index]),
            slot,
        )));
        self.traffic.sent_bytes += 1;
        self.slots[slot] = Some(operation);
    }

    fn end(&mut self, slot: usize, operation: Operation, failure: Option<Box<Failure>>) {
        self.slots[slot] = None;
        let end = End {
            connection_failure: None,
            failure,
            retries: 0,
            hash: operation.hash,
        };
        let at_ns = self.now_ns;
        self.happened.push_back(Event::Ended { slot, at_ns, end });
    }

    /// A statement is answered.
    fn answer(&mut self, slot: usize, recorder: &mut Recorder) {
        let Some(mut operation) = self.slots[slot] else {
            return;
        };
        self.traffic.received_bytes += 1;
        let operation_number = operation.task.number;
        let statement = self.scripts[operation.task.script][operation.at];
        if self.fake.lose_at == Some(operation_number) {
            recorder.statement_error(statement);
            self.lose(slot);
            return;
        }
        let fails = |every: u64| operation_number % every == every - 1;
        if self.fake.fail_every.is_some_and(fails) {
            recorder.statement_error(statement);
            let failure = Failure {
                code: SQLSTATE.to_owned(),
                message: format!("{}: a declared failure", recorder.place(statement)),
                place: None,
            };
            self.end(slot, operation, Some(Box::new(failure)));
            return;
        }
        recorder.statement(statement, self.now_ns - operation.sent_ns, 1);
        recorder.round_trip();
        if self.digest != DigestMode::None {
            let hash = chain(u128::from(operation_number), statement, 1);
            operation.hash = chain(operation.hash, statement, hash);
        }
        operation.at += 1;
        self.go_on(slot, operation);
    }

    fn lose(&mut self, slot: usize) {
        self.connections.lost += 1;
        let first = slot - slot % self.depth;
        for slot in first..first + self.depth {
            self.slots[slot] = None;
            self.happened.push_back(Event::Lost {
                slot,
                at_ns: self.now_ns,
                failure: Failure::lost("the fake connection was lost"),
            });
        }
    }
}

impl Endpoint for FakeEndpoint {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn begin(&mut self, slot: usize, task: Task, _recorder: &mut Recorder) {
        let operation = Operation {
            task,
            at: 0,
            sent_ns: self.now_ns,
            hash: 0,
        };
        self.go_on(slot, operation);
    }

    fn next(&mut self, until_ns: u64, recorder: &mut Recorder) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.happened.pop_front() {
                return Ok(Some(event));
            }
            match self.under_way.peek() {
                Some(&Reverse((at_ns, slot))) if at_ns <= until_ns => {
                    self.under_way.pop();
                    self.now_ns = at_ns;
                    self.answer(slot, recorder);
                }
                _ => {
                    self.now_ns = self.now_ns.max(until_ns);
                    return Ok(None);
                }
            }
        }
    }

    fn reopen(&mut self, slot: usize, not_before_ns: u64) {
        self.happened.push_back(Event::Opened {
            slot,
            at_ns: self.now_ns.max(not_before_ns),
        });
    }

    fn grow(&mut self) {
        self.connections.opened += 1;
        self.connections.most += 1;
        for _ in 0..self.depth {
            self.happened.push_back(Event::Opened {
                slot: self.slots.len(),
                at_ns: self.now_ns,
            });
            self.slots.push(None);
        }
    }

    fn cancel(&mut self, _slot: usize) -> bool {
        true
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn connections(&self) -> Connections {
        self.connections
    }

    fn close(self) -> (u64, u64) {
        (0, 0)
    }
}
