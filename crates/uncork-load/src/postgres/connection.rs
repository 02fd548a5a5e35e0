//! One connection: what is sent on it, and what its answers mean for the operations under way.
//!
//! Requests are answered in order. The queue `expected` records what each answer belongs to; inside
//! a pipeline an answer ends with the statement's completion, otherwise with `ReadyForQuery`.
//!
//! Readiness is edge-triggered: a connection is read until a read comes back short. That shows that
//! nothing is left, and saves the system call that would report so. Interest in writing is
//! registered only while a request was not sent completely; otherwise every read by the server
//! would wake us.

mod answers;
mod lines;
mod sending;

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use bytes::BytesMut;
use mio::{Interest, Registry, Token};
use postgres_protocol::message::frontend;
use uncork_model::DigestMode;
use uncork_script::Session;

use super::buffer::Buffer;
use super::frame::{Awaited, Found, Reply, ReplyReader};
use super::program::{Instruction, Program, Statement};
use super::request::{Request, SYNC};
use super::slot::{Slot, Step};
use crate::digest::chain;
use crate::socket::Stream;
use crate::{FailedAt, Failure, Messages, Recorder, Task, Traffic};
use lines::{Attempt, error_line};

/// SQLSTATEs after which an operation may be retried: serialization failure and deadlock.
const RETRYABLE: [&str; 2] = ["40001", "40P01"];

/// What all connections of a thread share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) program: &'a Program,
    pub(crate) messages: &'a Messages,
    pub(crate) registry: &'a Registry,
    pub(crate) origin: Instant,
}

impl Context<'_> {
    pub(crate) fn now_ns(&self) -> u64 {
        // Five centuries fit.
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// One connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is about another thing: the socket's two directions, its end, the session"
)]
pub(crate) struct Connection {
    stream: Option<Stream>,
    token: Token,
    /// The client's number over all threads, from 0.
    client: usize,
    /// The server's process ID and the secret key for cancel requests.
    pub(crate) key: (i32, i32),
    pub(crate) slots: Vec<Slot>,
    expected: VecDeque<Expected>,
    buffer: Buffer,
    reader: ReplyReader,
    /// Bytes that could not be written yet, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    awaits_writing: bool,
    /// The last read came back short.
    drained: bool,
    /// The other side has closed: read what is left to the end.
    closing: bool,
    /// Why writing failed, in case the server sends no last message.
    write_error: Option<String>,
    in_transaction: bool,
    /// Which statements are prepared on the server.
    prepared: Vec<bool>,
    /// Traffic of its earlier sockets.
    past: Traffic,
}

/// An expected answer.
#[derive(Debug, Clone, Copy)]
struct Expected {
    slot: usize,
    /// The statement's number; `None` is a `Sync` or a transaction command.
    statement: Option<usize>,
    /// The number of its command in the script.
    command: usize,
    in_pipeline: bool,
    /// The request also prepares the statement.
    prepares: bool,
    sent_ns: u64,
}

impl Expected {
    fn failed_at(&self) -> FailedAt {
        FailedAt {
            command: self.command,
            statement: self.statement,
        }
    }
}

/// The result of reading.
#[derive(Debug)]
pub(crate) enum Read {
    /// Nothing more for now.
    Drained,
    /// An operation advanced.
    Stepped {
        /// Its slot.
        slot: usize,
        /// When it advanced.
        at_ns: u64,
        /// How it advanced.
        step: Step,
    },
    /// The connection was lost.
    Lost(Box<Failure>),
}

impl Connection {
    /// A connection that is not open yet.
    pub(crate) fn new(
        number: usize,
        client: usize,
        sessions: Vec<Session>,
        digest: DigestMode,
    ) -> Self {
        Self {
            stream: None,
            token: Token(number),
            client,
            key: (0, 0),
            slots: sessions.into_iter().map(Slot::new).collect(),
            expected: VecDeque::new(),
            buffer: Buffer::default(),
            reader: ReplyReader::new(digest),
            outgoing: Vec::new(),
            written: 0,
            awaits_writing: false,
            drained: true,
            closing: false,
            write_error: None,
            in_transaction: false,
            prepared: Vec::new(),
            past: Traffic::default(),
        }
    }

    /// Take over an open stream, with the bytes received from it already. `prepared` says whether
    /// all statements are prepared on it.
    pub(crate) fn open(
        &mut self,
        mut stream: Stream,
        received: &[u8],
        key: (i32, i32),
        prepared: bool,
        context: Context<'_>,
    ) -> io::Result<()> {
        stream.register(context.registry, self.token, Interest::READABLE)?;
        self.stream = Some(stream);
        self.buffer.space(received.len())[..received.len()].copy_from_slice(received);
        self.buffer.fill(received.len());
        self.key = key;
        self.prepared = vec![prepared; context.program.statements.len()];
        self.drained = true;
        Ok(())
    }

    /// Bytes that crossed its sockets.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.past;
        if let Some(stream) = &self.stream {
            traffic.add(stream.traffic());
        }
        traffic
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Clean up a lost connection. Statements under way count as errors.
    pub(crate) fn lose(&mut self, recorder: &mut Recorder) {
        for expected in &self.expected {
            if let Some(statement) = expected.statement {
                recorder.statement_error(statement);
            }
        }
        self.close();
    }

    /// Close the connection and drop what was expected from it.
    pub(crate) fn close(&mut self) {
        self.hang_up();
        self.expected.clear();
        for slot in &mut self.slots {
            slot.rewind();
            slot.active = false;
        }
        self.buffer = Buffer::default();
        self.reader.reset();
        self.outgoing.clear();
        self.written = 0;
        self.awaits_writing = false;
        self.closing = false;
        self.write_error = None;
        self.in_transaction = false;
    }

    /// Send `Terminate`. Errors do not matter: the server also notices the closed socket.
    fn hang_up(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            let mut message = BytesMut::new();
            frontend::terminate(&mut message);
            let _ = stream.write(&message);
            self.past.add(stream.traffic());
        }
    }

    /// Let the scripts start with other variables and random numbers. Nothing is under way.
    pub(crate) fn restart(&mut self, sessions: Vec<Session>) {
        for (slot, variables) in self.slots.iter_mut().zip(sessions) {
            slot.variables = variables;
        }
    }

    /// The socket is readable or writable again.
    pub(crate) fn woken(&mut self, closing: bool) {
        self.drained = false;
        self.closing |= closing;
    }

    // ---- operations ----

    /// Begin an operation.
    pub(crate) fn begin(
        &mut self,
        slot: usize,
        task: Task,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Step {
        let state = &mut self.slots[slot];
        state.take(task);
        if let Some(recorded) = &context.program.recorded {
            recorded.set(task.number, &mut state.variables);
        }
        let client = self.client;
        context.messages.step(|| {
            let name = context.program.scripts[task.script].name();
            format!("client {client} executing script \"{name}\"")
        });
        if context.program.max_tries != 1 {
            state.variables.save();
        }
        self.advance(slot, task.at_ns, context, recorder)
    }

    /// Continue after a sleep.
    pub(crate) fn wake(
        &mut self,
        slot: usize,
        now_ns: u64,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Step {
        self.slots[slot].sleeping = false;
        self.advance(slot, now_ns, context, recorder)
    }

    /// Follow the script until it has to wait.
    fn advance(
        &mut self,
        slot: usize,
        now_ns: u64,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Step {
        let program = context.program;
        loop {
            let state = &mut self.slots[slot];
            if state.failure.is_some() {
                if state.outstanding > 0 {
                    return self.wait(context, recorder);
                }
                match self.recover(slot, now_ns, context, recorder) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            let routine = &program.scripts[state.task.script];
            let at = state.at;
            let Some(instruction) = routine.code.get(at) else {
                if state.piped {
                    let message = routine.located(at, &"the script ends inside a pipeline");
                    state.fail_script(command(at), message);
                    continue;
                }
                if state.outstanding > 0 {
                    return self.wait(context, recorder);
                }
                return state.end();
            };
            if context.messages.steps() {
                self.tell_step(slot, instruction, context);
            }
            let state = &mut self.slots[slot];
            if let Instruction::Send(number) = instruction {
                if self.send(slot, *number, now_ns, program) {
                    return self.wait(context, recorder);
                }
                continue;
            }
            state.at += 1;
            match instruction {
                Instruction::Send(_) => {}
                Instruction::Begin => {
                    if self.word(slot, &program.begin, now_ns, program) {
                        return self.wait(context, recorder);
                    }
                }
                Instruction::Commit => {
                    if self.word(slot, &program.commit, now_ns, program) {
                        return self.wait(context, recorder);
                    }
                }
                Instruction::Set(variable, expression) => {
                    if let Err(error) = state.variables.assign(*variable, expression) {
                        state.fail_script(command(at), routine.located(at, &error));
                    }
                }
                Instruction::Sleep(sleep) => match state.variables.sleep_ns(sleep) {
                    Ok(for_ns) => {
                        state.sleeping = true;
                        self.flush(context);
                        return Step::Sleeping { for_ns };
                    }
                    Err(error) => state.fail_script(command(at), routine.located(at, &error)),
                },
                Instruction::Branch(condition, otherwise) => {
                    match state.variables.truth(condition) {
                        Ok(true) => {}
                        Ok(false) => state.at = *otherwise,
                        Err(error) => {
                            state.fail_script(command(at), routine.located(at, &error));
                        }
                    }
                }
                Instruction::Jump(target) => state.at = *target,
                Instruction::StartPipeline => state.piped = true,
                Instruction::SyncPipeline => self.sync(slot, now_ns),
                Instruction::EndPipeline => {
                    state.piped = false;
                    self.sync(slot, now_ns);
                    return self.wait(context, recorder);
                }
            }
        }
    }

    /// After a failure, with nothing outstanding: leave the pipeline and the transaction, and retry
    /// if allowed; `None` continues with the script.
    fn recover(
        &mut self,
        slot: usize,
        now_ns: u64,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Option<Step> {
        let program = context.program;
        let state = &mut self.slots[slot];
        if state.piped {
            state.piped = false;
            self.sync(slot, now_ns);
            return Some(self.wait(context, recorder));
        }
        if self.in_transaction && !state.rolled_back {
            state.rolled_back = true;
            self.word(slot, &program.rollback, now_ns, program);
            return Some(self.wait(context, recorder));
        }
        let failure = state.failure.as_ref()?;
        let may_retry = RETRYABLE.contains(&failure.code.as_str())
            && (program.max_tries == 0 || state.retries + 1 < program.max_tries)
            && now_ns < state.task.retry_until_ns;
        context.messages.error(|| {
            let routine = &program.scripts[state.task.script];
            let end = Attempt {
                number: state.retries + 1,
                most: program.max_tries,
                repeats: may_retry,
            };
            error_line(self.client, state.task.script, routine, failure, end)
        });
        if !may_retry {
            return Some(state.end());
        }
        recorder.retry(state.task.script, &failure.code);
        state.retries += 1;
        state.rewind();
        state.variables.restore();
        None
    }

    /// Write a line about the command that is carried out next.
    fn tell_step(&self, slot: usize, instruction: &Instruction, context: Context<'_>) {
        let variables = &self.slots[slot].variables;
        context.messages.step(|| {
            let what = lines::step_text(instruction, variables, context.program);
            format!("client {} {what}", self.client)
        });
    }

    /// Send what is to be sent; the operation waits for an answer.
    fn wait(&mut self, context: Context<'_>, recorder: &mut Recorder) -> Step {
        recorder.round_trip();
        self.flush(context);
        Step::Waiting
    }
}

/// A failure of a command that sends no statement.
fn command(at: usize) -> FailedAt {
    FailedAt {
        command: at,
        statement: None,
    }
}
