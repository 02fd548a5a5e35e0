//! One connection, from opening it to its end.
//!
//! ```text
//! connect            TLS handshake         settings received (HTTP/2)
//!  Closed ────────▶ Connecting ──────▶ Agreeing ──────▶ Greeting ──────▶ Open ──▶ Closed
//!                       └──── without TLS ──────────────────┴──── HTTP/1.1 ──┘
//! ```
//!
//! Readiness is edge-triggered: a connection is read until a read comes back short. That shows that
//! nothing is left, and saves the system call that would report so.

mod expiry;
mod http3;
mod login;
mod opening;
mod sending;
mod silence;

use std::collections::VecDeque;
use std::io;

use mio::{Interest, Registry, Token};

use super::State;
use super::fault::{Fault, Kind};
use super::http1::Http1;
use super::http2::Http2;
use super::http3::Http3;
use super::request::{Program, ScratchBuffer};
use super::session::Session;
use super::slot::{Answering, Slot, SlotState};
use super::stall_probe::StallProbe;
use crate::socket::Stream;
use crate::{Event, Recorder, Task, Traffic};

pub(crate) use login::LoginProgress;

/// The most bytes that may wait to be written. A server that keeps requesting replies without
/// reading them exceeds it.
const MOST_UNWRITTEN: usize = 64 << 20;

/// The stages of opening a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Closed,
    Connecting,
    Agreeing,
    Greeting,
    Open,
}

/// The protocol that the connection speaks.
#[derive(Debug)]
enum Protocol {
    Http1(Http1),
    Http2(Box<Http2>),
    Http3(Box<Http3>),
}

/// One connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is about another thing: the socket's two directions, its end, the worker"
)]
pub(crate) struct Connection {
    token: Token,
    /// Its number over all threads, from 0.
    pub(crate) client: usize,
    /// The number that selects the client's own values. Unlike `client` it never changes.
    identity: usize,
    /// Its place among the connections that the worker knows; none before an additional one is
    /// open.
    pub(crate) place: Option<usize>,
    pub(crate) stage: Stage,
    stream: Option<Stream>,
    protocol: Option<Protocol>,
    pub(crate) slots: Vec<Slot>,
    /// Slots whose requests are to be sent, the oldest first.
    waiting: VecDeque<usize>,
    /// Received bytes that could not be parsed yet.
    pending: Vec<u8>,
    /// Bytes that could not be written yet, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    watches_writing: bool,
    /// The last read came back short.
    drained: bool,
    /// The other side has closed: read what is left to the end.
    closing: bool,
    /// The worker knows that the connection is closed, and waits for the event that it is open.
    pub(crate) worker_waits: bool,
    /// Whether it is scheduled to be opened.
    pub(crate) planned: bool,
    /// Whether it is in the endpoint's list of connections with something to write.
    pub(crate) dirty: bool,
    /// When opening began, and when the TLS handshake began.
    pub(crate) begun_ns: u64,
    agreeing_ns: u64,
    /// Index of the host address that is tried.
    pub(crate) address: usize,
    answered: u64,
    /// How many requests were sent since it was opened.
    requested: u64,
    /// When something was last received.
    received_ns: u64,
    /// Whether an answer is incomplete.
    midway: bool,
    /// Whether the current silence was shortened, once it takes part in the stall probe.
    probed: Option<bool>,
    /// Traffic of its earlier sockets.
    past: Traffic,
    /// What the client keeps between its requests, also when the socket is another one.
    session: Option<Box<Session>>,
}

/// What all connections of a thread share.
pub(crate) struct Context<'a> {
    pub(crate) state: &'a State,
    pub(crate) registry: &'a Registry,
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) happened: &'a mut VecDeque<Event>,
    pub(crate) scratch: &'a mut ScratchBuffer,
    pub(crate) stall_probe: &'a mut StallProbe,
    /// The buffer that sockets are read into.
    pub(crate) read_buffer: &'a mut Vec<u8>,
}

/// The result of working on a connection.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Nothing more for now.
    Nothing,
    /// There may be more to read.
    More,
    /// It is open: total duration, and the part spent on the TLS handshake.
    Opened {
        connect_ns: u64,
        tls_ns: Option<u64>,
    },
    /// It could not be opened.
    NotOpened(Fault),
    /// It is over.
    Ended(Ended),
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Whether requests were under way; otherwise the server closed it in order.
    pub(crate) broke: bool,
    pub(crate) message: String,
    pub(crate) goaway: bool,
    /// How many answers it carried.
    pub(crate) answered: u64,
}

impl Connection {
    /// A connection that is not open yet.
    pub(crate) fn new(
        token: Token,
        place: Option<usize>,
        client: usize,
        depth: usize,
        program: &Program,
    ) -> Self {
        Self {
            token,
            client,
            identity: client,
            place,
            stage: Stage::Closed,
            stream: None,
            protocol: None,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            waiting: VecDeque::new(),
            pending: Vec::new(),
            outgoing: Vec::new(),
            written: 0,
            watches_writing: false,
            drained: true,
            closing: false,
            worker_waits: false,
            planned: false,
            dirty: false,
            begun_ns: 0,
            agreeing_ns: 0,
            address: 0,
            answered: 0,
            requested: 0,
            received_ns: 0,
            midway: false,
            probed: None,
            past: Traffic::default(),
            session: program.session(),
        }
    }

    /// Whether there may be something to read.
    pub(crate) fn wants_reading(&self) -> bool {
        !self.drained
    }

    /// Whether it is being opened.
    pub(crate) fn is_opening(&self) -> bool {
        !matches!(self.stage, Stage::Open | Stage::Closed)
    }

    /// Whether requests wait to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bytes that crossed its sockets.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.past;
        if let Some(stream) = &self.stream {
            traffic.add(stream.traffic());
        }
        if let Some(Protocol::Http3(http3)) = &self.protocol {
            traffic.add(http3.traffic());
        }
        traffic
    }

    fn first_slot(&self) -> usize {
        self.place.unwrap_or(0) * self.slots.len()
    }

    /// Something happened on the socket.
    pub(crate) fn woken(&mut self, closing: bool) {
        self.drained = false;
        self.closing |= closing;
    }

    // ---- requests ----

    /// Begin an operation on a slot.
    pub(crate) fn begin(&mut self, slot: usize, task: Task, context: &mut Context<'_>) {
        self.slots[slot].take(task);
        self.waiting.push_back(slot);
        self.send(context);
    }

    /// Write as much as the socket accepts.
    pub(crate) fn write(&mut self, context: &Context<'_>) -> Result<(), Fault> {
        if let Some(Protocol::Http3(http3)) = &mut self.protocol {
            let sent = http3.transmit(context.registry, self.token);
            return sent.map_err(|error| broken(&error));
        }
        // Until it is connected, being writable is the sign that it is.
        if self.stage == Stage::Connecting {
            return Ok(());
        }
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        while self.written < self.outgoing.len() {
            match stream.write(&self.outgoing[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server's last message may still be unread: reading finds the end.
                Err(_) => {
                    self.written = self.outgoing.len();
                    self.closing = true;
                    self.drained = false;
                }
            }
        }
        if self.written == self.outgoing.len() {
            self.outgoing.clear();
            self.written = 0;
        } else if self.outgoing.len() - self.written > MOST_UNWRITTEN {
            let message = "the server keeps sending frames that require a reply, but does not read the replies";
            return Err(Fault::new(Kind::Garbage, message));
        }
        self.watch(context)
    }

    /// Register for writability as long as there is something to write.
    fn watch(&mut self, context: &Context<'_>) -> Result<(), Fault> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let _ = stream.flush();
        let writes = !self.outgoing.is_empty() || stream.wants_write();
        // For a single operation an additional system call costs more than one additional wake-up.
        if writes == self.watches_writing || (!writes && context.state.connect_each) {
            return Ok(());
        }
        let mut interest = Interest::READABLE;
        if writes {
            interest |= Interest::WRITABLE;
        }
        self.watches_writing = writes;
        let watched = stream.reregister(context.registry, self.token, interest);
        watched.map_err(|error| unreachable(context.state, &error))
    }

    fn fail(&mut self, slot: usize, fault: Fault, context: &mut Context<'_>) {
        use super::fault::Sink;
        let now_ns = context.state.now_ns();
        let (_, mut sink) = self.sink(now_ns, context);
        sink.failed(slot, fault);
    }

    // ---- answers ----

    /// Write and read as far as possible without waiting, up to the first event.
    pub(crate) fn work(&mut self, context: &mut Context<'_>) -> Progress {
        if self.stage == Stage::Closed {
            return Progress::Nothing;
        }
        let came = match self.stage {
            _ if self.transmits() => self.work_http3(context),
            Stage::Connecting | Stage::Agreeing => self.open(context),
            _ => self.read(context),
        };
        match came {
            Ok(came) => came,
            Err(fault) if self.stage == Stage::Open => {
                Progress::Ended(self.break_off(&fault, context))
            }
            Err(fault) => Progress::NotOpened(fault),
        }
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<Progress, Fault> {
        if !self.outgoing.is_empty() || self.stream.as_ref().is_some_and(Stream::wants_write) {
            self.write(context)?;
        }
        if self.drained {
            return Ok(Progress::Nothing);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(Progress::Nothing);
        };
        let held = self.pending.len();
        if context.read_buffer.len() < 2 * held {
            context.read_buffer.resize(2 * held, 0);
        }
        let read_buffer = std::mem::take(context.read_buffer);
        let mut read_buffer = read_buffer;
        read_buffer[..held].copy_from_slice(&self.pending);
        let scratch = read_buffer.len() - held;
        let result = stream.read(&mut read_buffer[held..]);
        if let Ok(length) = result {
            self.drained = !self.closing && stream.drained(length, scratch);
        }
        let came = match result {
            Ok(0) => Err(Fault::new(
                Kind::Closed,
                "the server closed the connection without an answer",
            )),
            Ok(length) => self.understand(&read_buffer[..held + length], context),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(Progress::Nothing)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Progress::More),
            Err(error) => Err(broken(&error)),
        };
        *context.read_buffer = read_buffer;
        came
    }

    /// Process received bytes.
    fn understand(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Result<Progress, Fault> {
        let now_ns = context.state.now_ns();
        self.note_received(now_ns, context);
        let used = {
            let mut outgoing = std::mem::take(&mut self.outgoing);
            let (protocol, mut sink) = self.sink(now_ns, context);
            let used = match protocol {
                Some(Protocol::Http1(http1)) => http1.receive(bytes, &mut sink),
                Some(Protocol::Http2(http2)) => http2.receive(bytes, &mut sink, &mut outgoing),
                Some(Protocol::Http3(_)) | None => Ok(bytes.len()),
            };
            self.outgoing = outgoing;
            used?
        };
        self.pending.clear();
        self.pending.extend_from_slice(&bytes[used..]);
        self.midway = self.is_midway();
        if self.stage == Stage::Greeting {
            if matches!(&self.protocol, Some(Protocol::Http2(http2)) if http2.greeted()) {
                let opened = self.opened(now_ns);
                self.write(context)?;
                return Ok(opened);
            }
            return Ok(if self.drained {
                Progress::Nothing
            } else {
                Progress::More
            });
        }
        let over = match &self.protocol {
            Some(Protocol::Http1(http1)) => http1.is_over(),
            Some(Protocol::Http2(http2)) => http2.is_leaving() && http2.is_idle(),
            Some(Protocol::Http3(_)) | None => false,
        };
        if over {
            let fault = Fault::new(Kind::Closed, "");
            return Ok(Progress::Ended(self.break_off(&fault, context)));
        }
        if !self.waiting.is_empty() {
            self.send(context);
        }
        if !self.outgoing.is_empty() {
            self.write(context)?;
        }
        Ok(if self.drained {
            Progress::Nothing
        } else {
            Progress::More
        })
    }

    fn sink<'a>(
        &'a mut self,
        now_ns: u64,
        context: &'a mut Context<'_>,
    ) -> (Option<&'a mut Protocol>, Answering<'a>) {
        let first_slot = self.first_slot();
        let sink = Answering {
            program: &context.state.program,
            slots: &mut self.slots,
            recorder: context.recorder,
            happened: context.happened,
            again: &mut self.waiting,
            first_slot,
            client: self.client,
            identity: self.identity,
            now_ns,
            answered: &mut self.answered,
            session: &mut self.session,
        };
        (self.protocol.as_mut(), sink)
    }

    /// End the connection, and decide what happens to its requests.
    fn break_off(&mut self, fault: &Fault, context: &mut Context<'_>) -> Ended {
        let now_ns = context.state.now_ns();
        let partial = !self.pending.is_empty();
        let (protocol, mut sink) = self.sink(now_ns, context);
        let (failed, takes_no_more) = match protocol {
            Some(Protocol::Http1(http1)) => {
                let takes_no_more = http1.takes_no_more();
                (http1.finish(fault, partial, &mut sink), takes_no_more)
            }
            Some(Protocol::Http2(http2)) => {
                let takes_no_more = http2.takes_no_more();
                (http2.finish(fault, &mut sink), takes_no_more)
            }
            Some(Protocol::Http3(http3)) => {
                let takes_no_more = http3.takes_no_more();
                (http3.finish(fault, &mut sink), takes_no_more)
            }
            None => (false, false),
        };
        let broke = failed || !matches!(fault.kind, Kind::Closed | Kind::Reset);
        let message = if broke {
            fault.message.clone()
        } else {
            let how = match (&self.protocol, takes_no_more) {
                (_, false) => "while it was idle",
                (Some(Protocol::Http2(_) | Protocol::Http3(_)), true) => "with GOAWAY",
                (_, true) => "with \"Connection: close\"",
            };
            format!(
                "the server closed a connection after {} requests, {how}",
                self.answered
            )
        };
        self.ended(broke, message)
    }

    fn ended(&mut self, broke: bool, message: String) -> Ended {
        let goaway = match &self.protocol {
            Some(Protocol::Http2(http2)) => http2.takes_no_more(),
            Some(Protocol::Http3(http3)) => http3.takes_no_more(),
            _ => false,
        };
        let answered = self.answered;
        self.close();
        Ended {
            broke,
            message,
            goaway,
            answered,
        }
    }

    /// Close the socket. Waiting requests keep waiting.
    pub(crate) fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.past.add(stream.traffic());
        }
        if let Some(Protocol::Http3(mut http3)) = self.protocol.take() {
            http3.close();
            self.past.add(http3.traffic());
        }
        self.protocol = None;
        self.stage = Stage::Closed;
        self.pending.clear();
        self.outgoing.clear();
        self.written = 0;
        self.agreeing_ns = 0;
        self.closing = false;
        self.drained = true;
        self.midway = false;
        self.probed = None;
    }

    /// Drop waiting requests and all others.
    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
        for slot in &mut self.slots {
            slot.state = SlotState::Free;
        }
    }
}

fn unreachable(state: &State, error: &io::Error) -> Fault {
    let kind = match Kind::of(error) {
        Kind::Reset => Kind::Refused,
        kind => kind,
    };
    let hint = match kind {
        Kind::Refused if state.speaks_http3() => {
            "; is a server of HTTP/3 listening there, on UDP? Leave out --h3 to use TCP"
        }
        Kind::Refused => "; is a server listening there?",
        Kind::NoPort => {
            "; all local ports are in use or wait to be reused: keep connections alive, or send \
             to several addresses"
        }
        Kind::NoFile => "; raise the limit of open files (ulimit -n)",
        _ => "",
    };
    Fault::new(
        kind,
        format!("cannot connect to {}: {error}{hint}", state.place()),
    )
}

/// Format nanoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "a timeout is far below 2^53 ns")]
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn broken(error: &io::Error) -> Fault {
    let kind = Kind::of(error);
    Fault::new(kind, format!("the connection broke: {error}"))
}

/// Describe why a connection could not be opened.
pub(crate) fn not_connected(state: &State, error: &io::Error) -> Fault {
    unreachable(state, error)
}
