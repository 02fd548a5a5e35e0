//! One thread's connections and their event loop.
//!
//! A connection that ended reopens as soon as an operation needs it, and that operation waits for
//! it, as a user would. Only a connection that cannot be opened is reported to the worker, which
//! pauses before it retries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use mio::Token;
use uncork_model::Connections;

use super::connection::{Connection, Context, Ended, Progress, Stage, not_connected};
use super::fault::{Fault, Kind};
use super::request::ScratchBuffer;
use super::stall_probe::{SILENCE_NS, StallProbe};
use super::{State, quic};
use crate::recorder::Shape;
use crate::socket::Poller;
use crate::{Endpoint, Event, Failure, LoadError, Recorder, Share, Task, Traffic};

/// Bytes per read.
const READ_BYTES: usize = 128 * 1024;
/// How many connections a thread opens at once at the start; more would overflow the server's
/// accept queue.
const OPENS_AT_ONCE: usize = 100;
/// How many reads happen between two looks at the clock, so that a server that sends without end cannot keep us from
/// it.
const READS_AT_ONCE: usize = 64;
/// One thread's connections to an HTTP server.
#[derive(Debug)]
pub struct HttpEndpoint {
    state: Arc<State>,
    poller: Poller,
    share: Share,
    connections: Vec<Connection>,
    /// The connections that the worker knows, in the order of their slots. Additional connections are appended as they
    /// open, which need not be in the order in which they were begun.
    by_place: Vec<usize>,
    /// Additional connections that could not be opened.
    spare: Vec<usize>,
    /// Connections that may have something to read.
    ready: VecDeque<usize>,
    /// Connections that have something to write.
    dirty: Vec<usize>,
    happened: VecDeque<Event>,
    /// Connections to open, and when, the earliest first.
    planned: BinaryHeap<Reverse<(u64, usize)>>,
    /// When requests are next checked for timeouts.
    expires_ns: u64,
    counts: Connections,
    /// When opening connections are next checked for timeouts.
    opening_check_ns: u64,
    /// Counts from opening the connections, until there is a recorder to report them to.
    unreported: Option<Box<Recorder>>,
    scratch: ScratchBuffer,
    stall_probe: StallProbe,
    read_buffer: Vec<u8>,
    timers: Timers,
}

macro_rules! context {
    ($self:ident, $recorder:expr) => {
        Context {
            state: &$self.state,
            registry: $self.poller.registry(),
            recorder: $recorder,
            happened: &mut $self.happened,
            scratch: &mut $self.scratch,
            stall_probe: &mut $self.stall_probe,
            read_buffer: &mut $self.read_buffer,
        }
    };
}

mod login;
mod timeouts;
mod timers;

use timeouts::OPENING_CHECK_NS;
use timers::Timers;

impl HttpEndpoint {
    /// Open all connections of a share.
    pub(super) fn open(state: Arc<State>, share: Share) -> Result<Self, LoadError> {
        let system = |source| LoadError::System {
            action: "watch its sockets",
            source,
        };
        let poller = Poller::new(share.count()).map_err(system)?;
        let depth = state.depth;
        let stall_probe = StallProbe::new(state.seed ^ share.thread as u64);
        let mut endpoint = Self {
            poller,
            share,
            connections: (0..share.count())
                .map(|number| {
                    let client = share.client(number);
                    Connection::new(Token(number), Some(number), client, depth, &state.program)
                })
                .collect(),
            read_buffer: vec![
                0;
                if state.speaks_http3() {
                    quic::READ_BYTES
                } else {
                    READ_BYTES
                }
            ],
            state,
            by_place: (0..share.count()).collect(),
            spare: Vec::new(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            happened: VecDeque::new(),
            planned: BinaryHeap::new(),
            expires_ns: u64::MAX,
            counts: Connections::default(),
            opening_check_ns: u64::MAX,
            unreported: None,
            scratch: ScratchBuffer::default(),
            stall_probe,
            timers: Timers::default(),
        };
        endpoint.open_all()?;
        Ok(endpoint)
    }

    fn open_all(&mut self) -> Result<(), LoadError> {
        let mut recorder = Recorder::new(&Shape::default(), false, 0);
        let system = |source| LoadError::System {
            action: "watch its sockets",
            source,
        };
        let (mut begun, mut open) = (0, 0);
        while open < self.connections.len() {
            while begun < self.connections.len() && begun - open < OPENS_AT_ONCE {
                self.connections[begun].worker_waits = true;
                self.connect(begun, &mut recorder);
                begun += 1;
            }
            let until_ns = self.now_ns() + 20_000_000;
            while let Some(event) = self.next(until_ns, &mut recorder).map_err(system)? {
                match event {
                    Event::Opened { slot, .. } if slot.is_multiple_of(self.state.depth) => {
                        open += 1;
                    }
                    Event::NotOpened { failure, .. } => {
                        return Err(crate::ConnectError::Http {
                            kind: failure.code,
                            message: failure.message,
                        }
                        .into());
                    }
                    _ => {}
                }
                if begun - open < OPENS_AT_ONCE / 2 {
                    break;
                }
            }
            self.state.look_around("connections were opened")?;
        }
        // The worker assumes that all slots are open from the beginning.
        self.happened.clear();
        self.unreported = Some(Box::new(recorder));
        Ok(())
    }

    // ---- connections ----

    fn connect(&mut self, connection: usize, recorder: &mut Recorder) {
        let now_ns = self.now_ns();
        let addresses = self.state.addresses();
        let Some(&address) =
            addresses.get(self.connections[connection].address % addresses.len().max(1))
        else {
            return;
        };
        let registry = self.poller.registry();
        match self.connections[connection].connect(address, now_ns, &self.state, registry) {
            Ok(()) => {
                self.opening_check_ns = self.opening_check_ns.min(now_ns + OPENING_CHECK_NS);
                if self.connections[connection].transmits() {
                    self.mark_dirty(connection);
                }
            }
            Err(error) => {
                let fault = not_connected(&self.state, &error);
                self.not_opened(connection, &fault, recorder);
            }
        }
    }

    fn opened(&mut self, connection: usize, times: (u64, Option<u64>), recorder: &mut Recorder) {
        let (connect_ns, tls_ns) = times;
        self.counts.opened += 1;
        self.counts.sum_ns += connect_ns;
        self.counts.max_ns = self.counts.max_ns.max(connect_ns);
        self.counts.most += 1;
        recorder.connected(connect_ns);
        if let Some(tls_ns) = tls_ns {
            recorder.answers().agreed(tls_ns);
        }
        self.ready.push_back(connection);
        if self.connections[connection].logs_in() {
            self.mark_dirty(connection);
            let mut context = context!(self, recorder);
            self.connections[connection].send(&mut context);
            self.follow_login(connection, recorder);
        } else {
            self.usable(connection, recorder);
        }
    }

    fn not_opened(&mut self, connection: usize, fault: &Fault, recorder: &mut Recorder) {
        if self.connections[connection].logs_in() && self.connections[connection].restart_login() {
            self.counts.most -= 1;
        }
        self.connections[connection].close();
        // Try the host's next address.
        self.connections[connection].address += 1;
        if self.connections[connection].place.is_none() {
            self.spare.push(connection);
            self.happened.push_back(Event::NotOpened {
                slot: None,
                at_ns: self.now_ns(),
                failure: Box::new(fault.failure()),
            });
            return;
        }
        let worker_waits = std::mem::replace(&mut self.connections[connection].worker_waits, true);
        let at_ns = self.now_ns();
        if !worker_waits {
            // The worker assumes that it is open: report it as lost only now.
            recorder.not_opened(&fault.failure());
            let waiting = self.connections[connection].slots.iter();
            let waiting = waiting.filter(|slot| slot.state == super::slot::SlotState::Waiting);
            recorder.answers().unprocessed += waiting.count() as u64;
            self.connections[connection].forget();
        }
        for slot in self.slots_of(connection) {
            let failure = Box::new(fault.failure());
            self.happened.push_back(if worker_waits {
                let slot = Some(slot);
                Event::NotOpened {
                    slot,
                    at_ns,
                    failure,
                }
            } else {
                Event::Lost {
                    slot,
                    at_ns,
                    failure,
                }
            });
        }
    }

    /// Handle the end of a connection. It reopens when it is needed.
    fn ended(&mut self, connection: usize, ended: &Ended, recorder: &mut Recorder) {
        self.counts.most -= 1;
        if ended.broke {
            self.counts.lost += 1;
        } else if !self.state.connect_each {
            recorder.answers().closed(ended.answered, ended.goaway);
        }
        self.ready.retain(|&ready| ready != connection);
        if self.connections[connection].logs_in() {
            // The login may continue on another connection.
            if self.connections[connection].has_waiting() {
                self.connect(connection, recorder);
            }
        } else if self.state.stops && !self.state.connect_each {
            self.end_load(connection, &ended.message);
        } else if self.connections[connection].has_waiting() {
            self.connect(connection, recorder);
        }
    }

    /// Report to the worker that a connection and with it the load is over: with the last operation
    /// that ended on it, or else for each of its slots.
    fn end_load(&mut self, connection: usize, message: &str) {
        let slots = self.slots_of(connection);
        let failure = Box::new(Failure {
            code: Kind::Closed.word(),
            message: message.to_owned(),
            place: None,
        });
        let last = self
            .happened
            .iter_mut()
            .rev()
            .find_map(|event| match event {
                Event::Ended { slot, end, .. } if slots.contains(slot) => Some(end),
                _ => None,
            });
        if let Some(end) = last {
            end.connection_failure = Some(failure);
            return;
        }
        let at_ns = self.now_ns();
        self.connections[connection].worker_waits = true;
        self.connections[connection].forget();
        for slot in slots {
            let failure = failure.clone();
            self.happened.push_back(Event::Lost {
                slot,
                at_ns,
                failure,
            });
        }
    }

    fn slots_of(&self, connection: usize) -> std::ops::Range<usize> {
        let (place, depth) = (
            self.connections[connection].place.unwrap_or(0),
            self.state.depth,
        );
        place * depth..(place + 1) * depth
    }

    // ---- the loop ----

    fn mark_dirty(&mut self, connection: usize) {
        if !std::mem::replace(&mut self.connections[connection].dirty, true) {
            self.dirty.push(connection);
        }
    }

    /// Write what operations have left to be written.
    fn write_dirty(&mut self, recorder: &mut Recorder) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for connection in dirty.drain(..) {
            self.connections[connection].dirty = false;
            let context = context!(self, recorder);
            if self.connections[connection].write(&context).is_err()
                || self.connections[connection].wants_reading()
            {
                self.ready.push_back(connection);
            }
            self.plan_timer(connection);
        }
        self.dirty = dirty;
    }

    /// Read from ready connections, up to the first event, and at most for a while.
    fn read_ready(&mut self, recorder: &mut Recorder) {
        for _ in 0..READS_AT_ONCE {
            if !self.happened.is_empty() {
                return;
            }
            let Some(connection) = self.ready.pop_front() else {
                return;
            };
            let logs_in = self.connections[connection].logs_in();
            let mut context = context!(self, recorder);
            match self.connections[connection].work(&mut context) {
                Progress::Nothing if logs_in => self.follow_login(connection, recorder),
                Progress::Nothing => {}
                Progress::More => {
                    self.ready.push_back(connection);
                    if logs_in {
                        self.follow_login(connection, recorder);
                    }
                }
                Progress::Opened { connect_ns, tls_ns } => {
                    self.opened(connection, (connect_ns, tls_ns), recorder);
                }
                Progress::NotOpened(fault) => self.not_opened(connection, &fault, recorder),
                Progress::Ended(ended) => {
                    self.ended(connection, &ended, recorder);
                    if logs_in {
                        self.follow_login(connection, recorder);
                    }
                }
            }
            if self.connections[connection].transmits() {
                self.mark_dirty(connection);
            }
            if self.stall_probe.wants() && self.connections[connection].silent_from_ns().is_some() {
                self.stall_probe.watched = Some(connection);
            }
        }
    }

    /// Check whether the watched connection has been silent in the middle of an answer for long
    /// enough to take part in the stall probe; return when to check again.
    fn watch_silence(&mut self, now_ns: u64) -> u64 {
        let Some(connection) = self.stall_probe.watched else {
            return u64::MAX;
        };
        let from_ns = self.connections[connection].silent_from_ns();
        if let Some(due_ns) = from_ns.map(|at_ns| at_ns + SILENCE_NS) {
            if now_ns < due_ns {
                return due_ns;
            }
            let hastens = self.stall_probe.draw();
            self.connections[connection].draw(hastens);
        }
        self.stall_probe.watched = None;
        u64::MAX
    }

    /// Open the connections that are due.
    fn open_planned(&mut self, now_ns: u64, recorder: &mut Recorder) {
        while let Some(Reverse((at_ns, connection))) = self.planned.peek().copied()
            && at_ns <= now_ns
        {
            self.planned.pop();
            self.connections[connection].planned = false;
            if self.connections[connection].stage == Stage::Closed {
                self.connect(connection, recorder);
            }
        }
    }
}

impl Endpoint for HttpEndpoint {
    fn slots(&self) -> usize {
        self.by_place.len() * self.state.depth
    }

    fn now_ns(&self) -> u64 {
        self.state.now_ns()
    }

    fn report(&mut self, recorder: &mut Recorder) {
        if let Some(unreported) = self.unreported.take() {
            recorder.take_over_connections(&unreported);
        }
    }

    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder) {
        let (place, local_slot) = (slot / self.state.depth, slot % self.state.depth);
        let connection = self.by_place[place];
        let mut context = context!(self, recorder);
        self.connections[connection].begin(local_slot, task, &mut context);
        if self.connections[connection].stage == Stage::Closed {
            // The worker does not know yet that this connection is closed; it will ask to reopen
            // it.
            if !self.connections[connection].worker_waits {
                self.connect(connection, recorder);
            }
        } else {
            self.mark_dirty(connection);
        }
    }

    fn next(&mut self, until_ns: u64, recorder: &mut Recorder) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.happened.pop_front() {
                return Ok(Some(event));
            }
            if !self.dirty.is_empty() {
                self.write_dirty(recorder);
            }
            self.read_ready(recorder);
            if !self.happened.is_empty() {
                continue;
            }
            if !self.dirty.is_empty() {
                self.write_dirty(recorder);
            }
            let now_ns = self.now_ns();
            self.open_planned(now_ns, recorder);
            self.check_opening(now_ns, recorder);
            self.expire(now_ns, recorder);
            self.fire_timers(now_ns);
            if !self.happened.is_empty() || !self.dirty.is_empty() {
                continue;
            }
            if now_ns >= until_ns {
                return Ok(None);
            }
            if !self.ready.is_empty() {
                continue;
            }
            let silence_ns = self.watch_silence(now_ns);
            let planned_ns = self
                .planned
                .peek()
                .map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
            let wake_ns = planned_ns
                .min(self.expires_ns)
                .min(self.opening_check_ns)
                .min(silence_ns)
                .min(self.timers.next_ns())
                .min(until_ns);
            let wake_ns = wake_ns.max(now_ns + 1);
            self.poller.wait(wake_ns, now_ns, |connection, closed| {
                self.connections[connection].woken(closed);
                self.ready.push_back(connection);
            })?;
        }
    }

    fn reopen(&mut self, slot: usize, not_before_ns: u64) {
        let connection = self.by_place[slot / self.state.depth];
        // Each slot of a connection requests it; one request is enough.
        if std::mem::replace(&mut self.connections[connection].planned, true) {
            return;
        }
        if self.connections[connection].stage != Stage::Closed {
            if self.connections[connection].stage == Stage::Open {
                self.counts.most -= 1;
            }
            self.connections[connection].close();
        }
        self.connections[connection].forget();
        self.connections[connection].worker_waits = true;
        self.planned.push(Reverse((not_before_ns, connection)));
    }

    fn growing(&self) -> usize {
        self.connections.len() - self.by_place.len() - self.spare.len()
    }

    fn grow(&mut self) {
        let connection = self.spare.pop().unwrap_or_else(|| {
            let connection = self.connections.len();
            let client = self.share.client(connection);
            self.connections.push(Connection::new(
                Token(connection),
                None,
                client,
                self.state.depth,
                &self.state.program,
            ));
            connection
        });
        self.connections[connection].worker_waits = true;
        self.connections[connection].planned = true;
        self.planned.push(Reverse((0, connection)));
    }

    fn cancel(&mut self, _slot: usize) -> bool {
        // Closing the connection cancels the request.
        true
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for connection in &self.connections {
            traffic.add(connection.traffic());
        }
        traffic
    }

    fn connections(&self) -> Connections {
        self.counts
    }

    fn close(mut self) -> (u64, u64) {
        // UDP has no end of a connection, so an HTTP/3 connection has to send its close.
        self.connections.iter_mut().for_each(Connection::close);
        (0, 0)
    }
}
