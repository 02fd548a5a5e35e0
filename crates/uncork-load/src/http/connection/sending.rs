//! Encoding requests, as soon as the connection accepts them.

use super::{Connection, Context, Protocol, Stage};
use crate::http::fault::{Fault, Kind};
use crate::http::slot::SlotState;

impl Connection {
    /// Encode waiting requests, as far as the connection accepts them.
    pub(crate) fn send(&mut self, context: &mut Context<'_>) {
        if self.stage != Stage::Open {
            return;
        }
        let program = &context.state.program;
        while let Some(&slot) = self.waiting.front() {
            let task = self.slots[slot].task;
            let request = &program.requests[task.script];
            let session = self.session.as_deref();
            if let Some(name) = program.missing(request, session) {
                let fault = no_value(name);
                self.waiting.pop_front();
                self.slots[slot].nth = 0;
                context.recorder.answers().unprocessed += 1;
                self.fail(slot, fault, context);
                continue;
            }
            let operation = program.operation(task.number, self.identity, session);
            let begin = self.outgoing.len();
            let mut bytes = 0;
            if let Some(Protocol::Http3(http3)) = &mut self.protocol
                && !http3.has_room()
            {
                return;
            }
            match &mut self.protocol {
                Some(Protocol::Http1(http1)) if !http1.takes_no_more() => {
                    let out = &mut self.outgoing;
                    request.write_http1(operation, context.scratch, out);
                    http1.sent(slot, request.head_only);
                }
                Some(Protocol::Http2(http2)) if http2.has_room() => {
                    request.fill(operation, context.scratch);
                    let headers = request.headers(context.scratch);
                    http2.send(slot, headers, &context.scratch.body, &mut self.outgoing);
                }
                Some(Protocol::Http3(http3)) => {
                    request.fill(operation, context.scratch);
                    let headers = request.headers(context.scratch);
                    bytes = http3.send(slot, headers, &context.scratch.body);
                }
                _ => return,
            }
            if task.script < program.first_login {
                bytes += self.outgoing.len() - begin;
                context.recorder.answers().sent(task.script, bytes);
            }
            self.waiting.pop_front();
            self.requested += 1;
            self.slots[slot].nth = self.requested;
            self.slots[slot].state = SlotState::Sent;
        }
    }
}

fn no_value(name: &str) -> Fault {
    let message = format!(
        "not sent: no answer has given this client a value for {{{name}}} yet; send the request that \
         captures it before (a login step, or requests in order), or give it a default"
    );
    Fault::new(Kind::NoValue, message)
}
