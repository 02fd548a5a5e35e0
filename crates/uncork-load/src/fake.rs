//! A driver without a server: declared latencies in virtual time, for known answers in no time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use uncork_model::{DigestMode, Fake};

use crate::digest::chain;
use crate::{
    Completion, Driver, Endpoint, Failure, Interrupt, LoadError, Lost, Reply, Request, Step,
    Traffic,
};

/// The SQLSTATE of declared failures: a serialization failure.
const SQLSTATE: &str = "40001";

/// Answers every statement with one row after its declared latency. Beginning and ending
/// transactions takes no time.
#[derive(Debug)]
pub struct FakeDriver {
    fake: Fake,
    statements: u64,
    digest: DigestMode,
}

impl FakeDriver {
    /// A driver for operations of so many statements.
    #[must_use]
    pub fn new(fake: Fake, statements: usize, digest: DigestMode) -> Self {
        Self {
            fake,
            statements: statements as u64,
            digest,
        }
    }
}

impl Driver for FakeDriver {
    type Endpoint = FakeEndpoint;

    fn open(&self, clients: usize, _interrupt: &Interrupt) -> Result<FakeEndpoint, LoadError> {
        Ok(FakeEndpoint {
            fake: self.fake.clone(),
            statements: self.statements,
            digest: self.digest,
            in_transaction: vec![false; clients],
            now_ns: 0,
            under_way: BinaryHeap::new(),
            traffic: Traffic::default(),
        })
    }
}

/// One thread's imaginary connections, in virtual time that jumps from answer to answer.
#[derive(Debug)]
pub struct FakeEndpoint {
    fake: Fake,
    statements: u64,
    digest: DigestMode,
    in_transaction: Vec<bool>,
    now_ns: u64,
    /// When, on which connection, and what ends; the earliest first.
    under_way: BinaryHeap<Reverse<(u64, usize, u64, Part)>>,
    traffic: Traffic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Begin,
    Statement(usize),
    End,
}

impl FakeEndpoint {
    fn latency_ns(&self, operation: u64, statement: usize) -> u64 {
        let number = u128::from(operation) * u128::from(self.statements) + statement as u128;
        let latencies = &self.fake.latencies_ns;
        let index = number % latencies.len() as u128;
        usize::try_from(index).map_or(1, |index| latencies[index])
    }

    fn reply(&mut self, client: usize, operation: u64, part: Part) -> Result<Reply, Lost> {
        match part {
            Part::Begin => self.in_transaction[client] = true,
            Part::End => self.in_transaction[client] = false,
            Part::Statement(_) if self.fake.lose_at == Some(operation) => {
                return Err(Lost {
                    message: "the fake connection was lost".to_owned(),
                });
            }
            Part::Statement(_) => {}
        }
        let mut reply = Reply {
            in_transaction: self.in_transaction[client],
            ..Reply::default()
        };
        if let Part::Statement(statement) = part {
            reply.rows = 1;
            if self.digest != DigestMode::None {
                reply.hash = chain(u128::from(operation), statement, 1);
            }
            if self
                .fake
                .fail_every
                .is_some_and(|every| operation % every == every - 1)
            {
                reply.rows = 0;
                let message = "a declared failure".to_owned();
                reply.failure = Some(Box::new(Failure {
                    sqlstate: SQLSTATE.to_owned(),
                    message,
                }));
            }
        }
        Ok(reply)
    }
}

impl Endpoint for FakeEndpoint {
    fn clients(&self) -> usize {
        self.in_transaction.len()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn send(&mut self, client: usize, request: Request) -> Result<(), Lost> {
        let (part, latency_ns) = match request.step {
            Step::Begin => (Part::Begin, 0),
            Step::Commit | Step::Rollback => (Part::End, 0),
            Step::Statement(statement) => (
                Part::Statement(statement),
                self.latency_ns(request.operation, statement),
            ),
        };
        let at_ns = self.now_ns.saturating_add(latency_ns);
        self.under_way
            .push(Reverse((at_ns, client, request.operation, part)));
        self.traffic.sent_bytes += 1;
        Ok(())
    }

    fn next(&mut self, until_ns: u64) -> io::Result<Option<Completion>> {
        let earliest = self
            .under_way
            .peek()
            .map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        if earliest > until_ns {
            self.now_ns = self.now_ns.max(until_ns);
            return Ok(None);
        }
        let Some(Reverse((at_ns, client, operation, part))) = self.under_way.pop() else {
            return Ok(None);
        };
        self.now_ns = at_ns;
        self.traffic.received_bytes += 1;
        let reply = self.reply(client, operation, part);
        Ok(Some(Completion {
            client,
            at_ns,
            reply,
        }))
    }

    fn cancel(&mut self, _client: usize) -> bool {
        true
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn connect_ns(&self) -> u64 {
        0
    }

    fn close(self) {}
}
