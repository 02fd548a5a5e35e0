//! Evaluates the answers on a connection.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::{Awaited, Connection, Context, Found, Program, Read, Reply, Step, Stream, chain};
use crate::{Failure, Recorder};

impl Connection {
    /// Write and read as far as possible without waiting, up to the next step of an operation.
    pub(crate) fn read(&mut self, context: Context<'_>, recorder: &mut Recorder) -> Read {
        if self.stream.is_none() {
            return Read::Drained;
        }
        if !self.outgoing.is_empty() || self.stream.as_ref().is_some_and(Stream::wants_write) {
            self.flush(context);
        }
        if self.write_error.is_some() {
            self.woken(true);
        }
        loop {
            let awaited = self.awaited(context.program);
            let (used, found) = self.reader.read(self.buffer.filled(), awaited);
            self.buffer.consume(used);
            let stepped = match found {
                Found::Nothing { need } => {
                    if self.drained {
                        return Read::Drained;
                    }
                    match self.receive(need) {
                        Ok(()) => continue,
                        Err(failure) => return Read::Lost(failure),
                    }
                }
                Found::Reply(reply) => self.replied(reply, context, recorder),
                Found::Completed { rows, hash } => self.completed(rows, hash, context, recorder),
                Found::Failed(failure) => {
                    self.failed(failure, recorder);
                    None
                }
                Found::Farewell(failure) => return Read::Lost(failure),
                Found::Garbled => {
                    return Read::Lost(Failure::lost("the server does not speak the protocol"));
                }
                Found::CopyIn => {
                    self.refuse_copy(context);
                    None
                }
            };
            if let Some(stepped) = stepped {
                return stepped;
            }
        }
    }

    fn awaited(&self, program: &Program) -> Awaited {
        let Some(expected) = self.expected.front() else {
            return Awaited::default();
        };
        let statement = expected.statement.map(|number| &program.statements[number]);
        Awaited {
            in_pipeline: expected.in_pipeline,
            captured: statement.is_some_and(|it| it.capture.is_some()),
            copies: statement.is_some_and(|it| it.copies),
        }
    }

    /// Handle the end of an answer: its `ReadyForQuery`.
    fn replied(
        &mut self,
        reply: Reply,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Option<Read> {
        self.in_transaction = reply.in_transaction;
        let parsed = self.reader.take_parsed();
        let expected = self.expected.pop_front()?;
        let now_ns = context.now_ns();
        let program = context.program;
        let state = &mut self.slots[expected.slot];
        state.outstanding -= 1;
        let failed = reply.failure.is_some();
        context.messages.step(|| {
            let answer = match &reply.failure {
                Some(failure) => format!("error {}", failure.code),
                None => format!("{} rows", reply.rows),
            };
            format!("client {} receiving {answer}", self.client)
        });
        if let Some(failure) = reply.failure {
            let place = expected
                .statement
                .map_or("transaction", |number| recorder.place(number));
            let at = expected.failed_at();
            state.fail(place, at, failure);
        }
        if let Some(number) = expected.statement {
            if failed {
                recorder.statement_error(number);
                if expected.prepares {
                    self.prepared[number] = parsed;
                }
            } else {
                recorder.statement(number, now_ns - expected.sent_ns, reply.rows);
                if let Some(capture) = &program.statements[number].capture {
                    let captured = self.reader.take_captured();
                    if let Err(problem) = state.capture(capture, &captured, &program.symbols) {
                        let message = format!("{}: {problem}", recorder.place(number));
                        state.fail_script(expected.failed_at(), message);
                    }
                }
            }
            if reply.hash != 0 {
                state.hash = chain(state.hash, number, reply.hash);
            }
        }
        self.after(expected.slot, now_ns, context, recorder)
    }

    /// Handle the end of a statement in a pipeline.
    fn completed(
        &mut self,
        rows: u64,
        hash: u128,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Option<Read> {
        self.reader.take_parsed();
        let expected = self.expected.pop_front()?;
        let now_ns = context.now_ns();
        let state = &mut self.slots[expected.slot];
        state.outstanding -= 1;
        if let Some(number) = expected.statement {
            recorder.statement(number, now_ns - expected.sent_ns, rows);
            if hash != 0 {
                state.hash = chain(state.hash, number, hash);
            }
        }
        self.after(expected.slot, now_ns, context, recorder)
    }

    /// Handle a failed statement in a pipeline: the server skips what follows up to the `Sync`.
    fn failed(&mut self, failure: Box<Failure>, recorder: &mut Recorder) {
        let mut failure = Some(failure);
        // The rest is not even parsed.
        let mut parsed = self.reader.take_parsed();
        while let Some(expected) = self.expected.front().copied()
            && expected.in_pipeline
        {
            self.expected.pop_front();
            let state = &mut self.slots[expected.slot];
            state.outstanding -= 1;
            let Some(number) = expected.statement else {
                continue;
            };
            recorder.statement_error(number);
            let parsed = std::mem::take(&mut parsed);
            if expected.prepares {
                self.prepared[number] = parsed;
            }
            if let Some(failure) = failure.take() {
                state.fail(recorder.place(number), expected.failed_at(), failure);
            }
        }
    }

    /// Continue with an operation if nothing more is outstanding.
    fn after(
        &mut self,
        slot: usize,
        at_ns: u64,
        context: Context<'_>,
        recorder: &mut Recorder,
    ) -> Option<Read> {
        let state = &self.slots[slot];
        if state.outstanding > 0 || state.sleeping || !state.active {
            return None;
        }
        match self.advance(slot, at_ns, context, recorder) {
            Step::Waiting if self.write_error.is_none() => None,
            Step::Waiting => {
                self.woken(true);
                None
            }
            step => Some(Read::Stepped { slot, at_ns, step }),
        }
    }

    fn receive(&mut self, need: usize) -> Result<(), Box<Failure>> {
        let Some(stream) = &mut self.stream else {
            return Err(Failure::lost("the connection is closed"));
        };
        let space = self.buffer.space(need);
        let room = space.len();
        match stream.read(space) {
            Ok(0) => Err(Failure::lost(
                self.cause("the server closed the connection"),
            )),
            Ok(length) => {
                self.buffer.fill(length);
                self.drained = stream.drained(length, room) && !self.closing;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                match &self.write_error {
                    Some(problem) => Err(Failure::lost(problem.clone())),
                    None => Ok(()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(Failure::lost(
                self.cause(&format!("the connection broke: {error}")),
            )),
        }
    }

    /// Return why the connection is gone: the write error if there is one, or else the given
    /// reason.
    fn cause(&mut self, message: &str) -> String {
        self.write_error
            .take()
            .unwrap_or_else(|| message.to_owned())
    }

    /// Answer the server's wait for COPY data. While it waits it ignores `Sync`, so the request's
    /// own `Sync` is lost and another must follow.
    fn refuse_copy(&mut self, context: Context<'_>) {
        let statement = self.expected.front().and_then(|expected| {
            expected
                .statement
                .map(|number| &context.program.statements[number])
        });
        let mut answer = BytesMut::new();
        // This fails only for a text with a zero byte.
        let _ = frontend::copy_fail("uncork has no data for COPY FROM STDIN", &mut answer);
        if statement.is_some_and(|statement| statement.synchronizes) {
            frontend::sync(&mut answer);
        }
        self.outgoing.extend_from_slice(&answer);
        self.flush(context);
    }
}
