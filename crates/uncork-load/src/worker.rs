//! One thread's work in one phase: keep every connection busy until the schedule says stop.
//!
//! A client is *idle* (the schedule had nothing more for it) or carries out the *steps* of an
//! operation, one after the other:
//!
//! ```text
//!  [begin] → statement 0 → … → statement n-1 → [commit] → done
//!                 │ error                          │ error
//!                 └──▶ rollback, if inside a transaction ──▶ done
//! ```
//!
//! After an error the rest of the operation is left out; the operation counts as failed. When the
//! trial is cut short, what is under way is given up and counts as failed.

use std::sync::atomic::{AtomicU64, Ordering};

use uncork_model::Outcome;
use uncork_schedule::{Decision, Schedule};

use crate::cut::Cut;
use crate::digest::chain;
use crate::{Endpoint, Lost, Recorder, Reply, Request, Step};

/// The longest wait without looking whether the trial was cut short.
const GLANCE_NS: u64 = 20_000_000;

/// What all threads share in one phase.
#[derive(Debug)]
pub(crate) struct Phase<'a> {
    /// Names of the statements.
    pub(crate) names: &'a [&'a str],
    /// Whether operations are wrapped in a transaction.
    pub(crate) transaction: bool,
    /// The next operation's number, over all phases.
    pub(crate) next_operation: &'a AtomicU64,
    /// The number of this phase's first operation.
    pub(crate) first_operation: u64,
    /// Why to stop early.
    pub(crate) cut: &'a Cut<'a>,
}

/// What one thread did in one phase.
#[derive(Debug)]
pub(crate) struct Work {
    /// What was counted.
    pub(crate) recorder: Recorder,
    /// From the first start to the last answer, or until the trial was cut short.
    pub(crate) elapsed_ns: u64,
}

/// Works until the phase is over.
pub(crate) fn work<E: Endpoint, S: Schedule>(
    phase: &Phase<'_>,
    schedule: &S,
    endpoint: &mut E,
) -> Work {
    let clients = endpoint.clients();
    let mut worker = Worker {
        phase,
        schedule,
        start_ns: endpoint.now_ns(),
        endpoint,
        recorder: Recorder::new(phase.names.len()),
        operations: vec![None; clients],
        busy: 0,
    };
    worker.run();
    let elapsed_ns = worker.endpoint.now_ns() - worker.start_ns;
    worker.give_up();
    Work {
        recorder: worker.recorder,
        elapsed_ns,
    }
}

struct Worker<'a, E, S> {
    phase: &'a Phase<'a>,
    schedule: &'a S,
    endpoint: &'a mut E,
    start_ns: u64,
    recorder: Recorder,
    /// What each client does; `None` is idle.
    operations: Vec<Option<Operation>>,
    busy: usize,
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
struct Operation {
    number: u64,
    step: Step,
    started_ns: u64,
    step_started_ns: u64,
    failed: bool,
    hash: u128,
}

impl<E: Endpoint, S: Schedule> Worker<'_, E, S> {
    fn run(&mut self) {
        for client in 0..self.operations.len() {
            self.start(client);
        }
        let deadline_ns = self.start_ns.saturating_add(self.schedule.deadline_ns());
        let mut now_ns = self.endpoint.now_ns();
        while self.busy > 0 && !self.phase.cut.is_set() {
            if now_ns >= deadline_ns {
                self.phase
                    .cut
                    .set(Outcome::Deadline, "the trial's deadline passed");
                break;
            }
            match self.endpoint.next(deadline_ns.min(now_ns + GLANCE_NS)) {
                Ok(Some(completion)) => {
                    now_ns = completion.at_ns;
                    match completion.reply {
                        Ok(reply) => self.advance(completion.client, now_ns, &reply),
                        Err(lost) => self.lose(completion.client, lost),
                    }
                }
                Ok(None) => now_ns = self.endpoint.now_ns(),
                Err(error) => {
                    let message = format!("waiting for the server failed: {error}");
                    self.phase.cut.set(Outcome::ConnectionLost, message);
                }
            }
        }
    }

    /// Starts a client's next operation, if there is one.
    fn start(&mut self, client: usize) {
        if self.phase.cut.is_set() {
            return;
        }
        let number = self.phase.next_operation.fetch_add(1, Ordering::Relaxed);
        let now_ns = self.endpoint.now_ns();
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        match self
            .schedule
            .decide(number - self.phase.first_operation, elapsed_ns)
        {
            Decision::Start => {}
            Decision::Finished => return,
            Decision::OverDeadline => {
                self.phase
                    .cut
                    .set(Outcome::Deadline, "the trial's deadline passed");
                return;
            }
        }
        let step = if self.phase.transaction {
            Step::Begin
        } else {
            Step::Statement(0)
        };
        self.operations[client] = Some(Operation {
            number,
            step,
            started_ns: now_ns,
            step_started_ns: now_ns,
            failed: false,
            hash: 0,
        });
        self.busy += 1;
        self.recorder.started += 1;
        self.send(
            client,
            Request {
                step,
                operation: number,
            },
        );
    }

    /// Counts a step's answer and goes on to the next step, or to the next operation.
    fn advance(&mut self, client: usize, at_ns: u64, reply: &Reply) {
        let Some(mut operation) = self.operations[client] else {
            return;
        };
        if let Step::Statement(number) = operation.step {
            let measure = &mut self.recorder.statements[number];
            if reply.failure.is_none() {
                measure.success(at_ns - operation.step_started_ns, reply.rows);
                self.recorder.operation.add_rows(reply.rows);
            } else {
                measure.error();
            }
            if reply.hash != 0 {
                operation.hash = chain(operation.hash, number, reply.hash);
            }
        }
        if let Some(failure) = reply.failure.as_deref()
            && !operation.failed
        {
            operation.failed = true;
            self.recorder
                .failure(place(self.phase.names, operation.step), failure);
        }
        let Some(step) = self.next_step(operation, reply.in_transaction) else {
            self.finish(client, operation, at_ns);
            return;
        };
        operation.step = step;
        operation.step_started_ns = at_ns;
        self.operations[client] = Some(operation);
        self.send(
            client,
            Request {
                step,
                operation: operation.number,
            },
        );
    }

    fn next_step(&self, operation: Operation, in_transaction: bool) -> Option<Step> {
        if operation.failed {
            let again = operation.step == Step::Rollback;
            return (in_transaction && !again).then_some(Step::Rollback);
        }
        let next = match operation.step {
            Step::Begin => 0,
            Step::Statement(number) => number + 1,
            Step::Commit | Step::Rollback => return None,
        };
        if next < self.phase.names.len() {
            Some(Step::Statement(next))
        } else {
            self.phase.transaction.then_some(Step::Commit)
        }
    }

    fn finish(&mut self, client: usize, operation: Operation, at_ns: u64) {
        self.operations[client] = None;
        self.busy -= 1;
        self.recorder
            .digest
            .operation(operation.number, operation.hash);
        if operation.failed {
            self.recorder.operation_failed();
        } else {
            self.recorder
                .operation_succeeded(at_ns - operation.started_ns);
        }
        self.start(client);
    }

    fn send(&mut self, client: usize, request: Request) {
        if let Err(lost) = self.endpoint.send(client, request) {
            self.lose(client, lost);
        }
    }

    fn lose(&mut self, client: usize, lost: Lost) {
        self.phase.cut.set(Outcome::ConnectionLost, lost.message);
        self.fail(client);
    }

    /// Gives up what is under way: the server is asked to stop it, so that it does not disturb
    /// what is measured next. A server that does not listen is not asked again.
    fn give_up(&mut self) {
        let mut listens = true;
        for client in 0..self.operations.len() {
            if self.operations[client].is_some() {
                self.fail(client);
                listens = listens && self.endpoint.cancel(client);
            }
        }
    }

    /// Counts a client's operation as failed without an answer.
    fn fail(&mut self, client: usize) {
        let Some(operation) = self.operations[client].take() else {
            return;
        };
        self.busy -= 1;
        if let Step::Statement(number) = operation.step {
            self.recorder.statements[number].error();
        }
        self.recorder.operation_failed();
    }
}

fn place<'a>(names: &[&'a str], step: Step) -> &'a str {
    match step {
        Step::Statement(number) => names[number],
        Step::Begin => "BEGIN",
        Step::Commit => "COMMIT",
        Step::Rollback => "ROLLBACK",
    }
}
