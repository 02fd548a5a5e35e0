//! Sends requests on a connection.

use std::io;

use mio::Interest;

use super::{Connection, Context, Expected, Program, Request, SYNC, Slot, Statement, Stream};

impl Connection {
    /// Send the next execution of a statement, or a whole pipelined batch; return whether to wait.
    pub(super) fn send(
        &mut self,
        slot: usize,
        number: usize,
        now_ns: u64,
        program: &Program,
    ) -> bool {
        let statement = &program.statements[number];
        let state = &mut self.slots[slot];
        let waits = !state.piped && !program.ahead;
        let prepares = statement.preparation.is_some() && !self.prepared[number];
        if let (true, Some(preparation)) = (prepares, &statement.preparation) {
            self.outgoing.extend_from_slice(preparation);
            self.prepared[number] = true;
        }
        let mut expected = Expected {
            slot,
            statement: Some(number),
            command: state.at,
            in_pipeline: state.piped || statement.pipelined,
            prepares,
            sent_ns: now_ns,
        };
        if statement.pipelined {
            for execution in 0..statement.times {
                append(&mut self.outgoing, statement, state, execution, false);
                self.expected.push_back(expected);
                expected.prepares = false;
            }
            state.outstanding += statement.times;
            state.at += 1;
            if !state.piped {
                self.sync(slot, now_ns);
            }
            return waits;
        }
        let sync = !state.piped;
        match &statement.request {
            // Usually nothing is buffered before it: send it directly from where it is.
            Request::Fixed(fixed) if waits && self.outgoing.is_empty() => {
                let bytes = fixed.get(state.task.number, state.execution, sync);
                write_or_keep(&mut self.stream, bytes, &mut self.outgoing);
            }
            _ => append(&mut self.outgoing, statement, state, state.execution, sync),
        }
        self.expected.push_back(expected);
        state.outstanding += 1;
        state.execution += 1;
        if state.execution == statement.times {
            state.execution = 0;
            state.at += 1;
        }
        waits
    }

    /// Send a transaction command; return whether to wait.
    pub(super) fn word(
        &mut self,
        slot: usize,
        word: &[u8],
        now_ns: u64,
        program: &Program,
    ) -> bool {
        self.outgoing.extend_from_slice(word);
        self.expect_sync(slot, now_ns);
        !program.ahead
    }

    pub(super) fn sync(&mut self, slot: usize, now_ns: u64) {
        self.outgoing.extend_from_slice(SYNC);
        self.expect_sync(slot, now_ns);
    }

    fn expect_sync(&mut self, slot: usize, sent_ns: u64) {
        self.slots[slot].outstanding += 1;
        self.expected.push_back(Expected {
            slot,
            statement: None,
            command: self.slots[slot].at.saturating_sub(1),
            in_pipeline: false,
            prepares: false,
            sent_ns,
        });
    }

    /// Write the rest of requests, and register for writability if something is left.
    pub(super) fn flush(&mut self, context: Context<'_>) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        while self.written < self.outgoing.len() {
            match stream.write(&self.outgoing[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Reading finds the server's reason, if it sent one.
                    self.write_error = Some(format!("the connection broke: {error}"));
                    self.outgoing.clear();
                    self.written = 0;
                    break;
                }
            }
        }
        if self.written == self.outgoing.len() {
            self.outgoing.clear();
            self.written = 0;
        }
        // Reading the connection reports the error.
        let _ = stream.flush();
        let awaits_writing = !self.outgoing.is_empty() || stream.wants_write();
        if awaits_writing != self.awaits_writing {
            let mut interest = Interest::READABLE;
            if awaits_writing {
                interest |= Interest::WRITABLE;
            }
            if let Err(error) = stream.reregister(context.registry, self.token, interest) {
                self.write_error = Some(format!("the connection cannot be watched: {error}"));
            }
            self.awaits_writing = awaits_writing;
        }
    }

    /// Whether writing failed: read the connection to its end.
    pub(crate) fn is_broken(&self) -> bool {
        self.write_error.is_some()
    }
}

/// Append one execution of a statement.
fn append(
    outgoing: &mut Vec<u8>,
    statement: &Statement,
    state: &Slot,
    execution: usize,
    sync: bool,
) {
    let sync = sync && statement.synchronizes;
    match &statement.request {
        Request::Fixed(fixed) => {
            outgoing.extend_from_slice(fixed.get(state.task.number, execution, sync));
        }
        Request::Template(template) => {
            template.write(&state.variables, outgoing);
            if sync {
                outgoing.extend_from_slice(SYNC);
            }
        }
    }
}

/// Write as much as possible at once, and keep the rest.
fn write_or_keep(stream: &mut Option<Stream>, bytes: &[u8], outgoing: &mut Vec<u8>) {
    // Flushing the rest reports any error.
    let length = stream
        .as_mut()
        .and_then(|stream| stream.write(bytes).ok())
        .unwrap_or(0);
    outgoing.extend_from_slice(&bytes[length..]);
}
