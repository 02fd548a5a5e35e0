//! One thread's connections and their event loop.
//!
//! A connection that ends is opened again by itself as soon as an operation needs it, and that
//! operation waits for it: what a user would wait. Only a connection that cannot be opened is
//! handed to the worker, which leaves it alone for a while.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use mio::Token;
use uncork_model::Connections;

use super::State;
use super::fault::{Fault, Kind};
use super::link::{Came, Ended, Link, Shared, Stage, not_connected, seconds};
use super::request::Room;
use super::stall::{Lots, SILENCE_NS};
use crate::recorder::Shape;
use crate::socket::Poller;
use crate::{Endpoint, Event, Failure, LoadError, Recorder, Share, Task, Traffic};

/// How much is read at once.
const READ_BYTES: usize = 128 * 1024;
/// How many connections a thread opens at once at the start: more would overflow the queue in which
/// a server finds them.
const OPENS_AT_ONCE: usize = 100;
/// How often sockets are read before it is looked at the time again: a server that sends without end
/// must not keep us from it.
const READS_AT_ONCE: usize = 64;
/// How often connections that are being opened are looked at.
const LOOK_NS: u64 = 20_000_000;

/// One thread's connections to an HTTP server.
#[derive(Debug)]
pub struct HttpEndpoint {
    state: Arc<State>,
    poller: Poller,
    share: Share,
    links: Vec<Link>,
    /// The links that the worker knows, in the order of their slots. Additional ones join it as they
    /// open, which need not be in the order in which they were begun.
    placed: Vec<usize>,
    /// Additional links that could not be opened.
    spare: Vec<usize>,
    /// Links that may have something to read.
    ready: VecDeque<usize>,
    /// Links that have something to write.
    dirty: Vec<usize>,
    happened: VecDeque<Event>,
    /// Links that are to be opened, and when, the earliest first.
    planned: BinaryHeap<Reverse<(u64, usize)>>,
    /// When requests are next looked at for those that take too long.
    expires_ns: u64,
    connections: Connections,
    /// When connections are next looked at for those that take too long to open.
    looks_ns: u64,
    /// What was counted at the opening, until there is somebody to tell.
    untold: Option<Box<Recorder>>,
    room: Room,
    lots: Lots,
    scratch: Vec<u8>,
}

macro_rules! shared {
    ($self:ident, $recorder:expr) => {
        Shared {
            state: &$self.state,
            registry: $self.poller.registry(),
            recorder: $recorder,
            happened: &mut $self.happened,
            room: &mut $self.room,
            lots: &mut $self.lots,
            scratch: &mut $self.scratch,
        }
    };
}

impl HttpEndpoint {
    /// Opens all connections of a share.
    pub(super) fn open(state: Arc<State>, share: Share) -> Result<Self, LoadError> {
        let system = |source| LoadError::System {
            action: "watch its sockets",
            source,
        };
        let poller = Poller::new(share.count()).map_err(system)?;
        let depth = state.depth;
        let lots = Lots::new(state.seed ^ share.thread as u64);
        let mut endpoint = Self {
            state,
            poller,
            share,
            links: (0..share.count())
                .map(|number| Link::new(Token(number), Some(number), share.client(number), depth))
                .collect(),
            placed: (0..share.count()).collect(),
            spare: Vec::new(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            happened: VecDeque::new(),
            planned: BinaryHeap::new(),
            expires_ns: u64::MAX,
            connections: Connections::default(),
            looks_ns: u64::MAX,
            untold: None,
            room: Room::default(),
            lots,
            scratch: vec![0; READ_BYTES],
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
        while open < self.links.len() {
            while begun < self.links.len() && begun - open < OPENS_AT_ONCE {
                self.links[begun].awaited = true;
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
        // The worker takes all slots as open from the beginning.
        self.happened.clear();
        self.untold = Some(Box::new(recorder));
        Ok(())
    }

    // ---- connections ----

    fn connect(&mut self, link: usize, recorder: &mut Recorder) {
        let now_ns = self.now_ns();
        let addresses = self.state.addresses();
        let Some(&address) = addresses.get(self.links[link].address % addresses.len().max(1))
        else {
            return;
        };
        match self.links[link].connect(address, now_ns, self.poller.registry()) {
            Ok(()) => self.looks_ns = self.looks_ns.min(now_ns + LOOK_NS),
            Err(error) => {
                let fault = not_connected(&self.state, &error);
                self.not_opened(link, &fault, recorder);
            }
        }
    }

    fn opened(&mut self, link: usize, times: (u64, Option<u64>), recorder: &mut Recorder) {
        let (connect_ns, tls_ns) = times;
        self.connections.opened += 1;
        self.connections.sum_ns += connect_ns;
        self.connections.max_ns = self.connections.max_ns.max(connect_ns);
        self.connections.most += 1;
        recorder.connected(connect_ns);
        if let Some(tls_ns) = tls_ns {
            recorder.answers().agreed(tls_ns);
        }
        if self.links[link].place.is_none() {
            let place = self.placed.len();
            self.links[link].place = Some(place);
            // It is known by the place it has got, which need not be the one it set out for.
            self.links[link].client = self.share.client(place);
            self.placed.push(link);
        }
        if std::mem::take(&mut self.links[link].awaited) {
            let at_ns = self.now_ns();
            for slot in self.slots_of(link) {
                self.happened.push_back(Event::Opened { slot, at_ns });
            }
        }
        let mut shared = shared!(self, recorder);
        self.links[link].send(&mut shared);
        self.soil(link);
        self.ready.push_back(link);
    }

    fn not_opened(&mut self, link: usize, fault: &Fault, recorder: &mut Recorder) {
        self.links[link].close();
        // The host may have another address.
        self.links[link].address += 1;
        if self.links[link].place.is_none() {
            self.spare.push(link);
            self.happened.push_back(Event::NotOpened {
                slot: None,
                at_ns: self.now_ns(),
                failure: Box::new(fault.failure()),
            });
            return;
        }
        let awaited = std::mem::replace(&mut self.links[link].awaited, true);
        let at_ns = self.now_ns();
        if !awaited {
            // The worker believes that it is open: to it, it is lost only now.
            recorder.not_opened(&fault.failure());
            let waiting = self.links[link].lanes.iter();
            let waiting = waiting.filter(|lane| lane.state == super::lane::LaneState::Waiting);
            recorder.answers().unprocessed += waiting.count() as u64;
            self.links[link].forget();
        }
        for slot in self.slots_of(link) {
            let failure = Box::new(fault.failure());
            self.happened.push_back(if awaited {
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

    /// A connection is over. It is opened again when it is needed.
    fn ended(&mut self, link: usize, ended: &Ended, recorder: &mut Recorder) {
        self.connections.most -= 1;
        if ended.broke {
            self.connections.lost += 1;
        } else if !self.state.connect_each {
            recorder.answers().closed(ended.answered, ended.goaway);
        }
        self.ready.retain(|&ready| ready != link);
        if self.state.stops && !self.state.connect_each {
            self.take_leave(link, &ended.message);
        } else if self.links[link].has_waiting() {
            self.connect(link, recorder);
        }
    }

    /// Tells the worker that a connection is over and the load with it: with the last operation
    /// that ended on it, else with each of its slots.
    fn take_leave(&mut self, link: usize, message: &str) {
        let slots = self.slots_of(link);
        let failure = Box::new(Failure {
            code: Kind::Closed.word(),
            message: message.to_owned(),
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
            end.farewell = Some(failure);
            return;
        }
        let at_ns = self.now_ns();
        self.links[link].awaited = true;
        self.links[link].forget();
        for slot in slots {
            let failure = failure.clone();
            self.happened.push_back(Event::Lost {
                slot,
                at_ns,
                failure,
            });
        }
    }

    fn slots_of(&self, link: usize) -> std::ops::Range<usize> {
        let (place, depth) = (self.links[link].place.unwrap_or(0), self.state.depth);
        place * depth..(place + 1) * depth
    }

    // ---- the loop ----

    fn soil(&mut self, link: usize) {
        if !std::mem::replace(&mut self.links[link].dirty, true) {
            self.dirty.push(link);
        }
    }

    /// Writes what operations have left to be written.
    fn write_dirty(&mut self, recorder: &mut Recorder) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for link in dirty.drain(..) {
            self.links[link].dirty = false;
            let shared = shared!(self, recorder);
            if self.links[link].write(&shared).is_err() || self.links[link].wants_reading() {
                self.ready.push_back(link);
            }
        }
        self.dirty = dirty;
    }

    /// Reads what there is to read, up to the first thing that happens, and for a while only.
    fn read_ready(&mut self, recorder: &mut Recorder) {
        for _ in 0..READS_AT_ONCE {
            if !self.happened.is_empty() {
                return;
            }
            let Some(link) = self.ready.pop_front() else {
                return;
            };
            let mut shared = shared!(self, recorder);
            match self.links[link].work(&mut shared) {
                Came::Nothing => {}
                Came::More => self.ready.push_back(link),
                Came::Opened { connect_ns, tls_ns } => {
                    self.opened(link, (connect_ns, tls_ns), recorder);
                }
                Came::NotOpened(fault) => self.not_opened(link, &fault, recorder),
                Came::Ended(ended) => self.ended(link, &ended, recorder),
            }
            if self.lots.wants() && self.links[link].silent_from_ns().is_some() {
                self.lots.watched = Some(link);
            }
        }
    }

    /// Sees whether the connection that is watched has been silent in the middle of an answer for
    /// long enough to draw a lot for it; returns when to look again.
    fn watch_silence(&mut self, now_ns: u64) -> u64 {
        let Some(link) = self.lots.watched else {
            return u64::MAX;
        };
        let from_ns = self.links[link].silent_from_ns();
        if let Some(due_ns) = from_ns.map(|at_ns| at_ns + SILENCE_NS) {
            if now_ns < due_ns {
                return due_ns;
            }
            let hastens = self.lots.draw();
            self.links[link].draw(hastens);
        }
        self.lots.watched = None;
        u64::MAX
    }

    /// Opens what is to be opened by now.
    fn open_planned(&mut self, now_ns: u64, recorder: &mut Recorder) {
        while let Some(Reverse((at_ns, link))) = self.planned.peek().copied()
            && at_ns <= now_ns
        {
            self.planned.pop();
            self.links[link].planned = false;
            if self.links[link].stage == Stage::Closed {
                self.connect(link, recorder);
            }
        }
    }

    /// Gives up connections that take too long to open.
    fn look(&mut self, now_ns: u64, recorder: &mut Recorder) {
        if now_ns < self.looks_ns {
            return;
        }
        let patience_ns = self.state.plan.connect_timeout_ns;
        for link in 0..self.links.len() {
            let it = &self.links[link];
            if it.is_opening() && now_ns.saturating_sub(it.begun_ns) >= patience_ns {
                let (place, seconds) = (self.state.place(), seconds(patience_ns));
                let message = format!("{place} did not let us in within {seconds} s");
                let fault = Fault::new(Kind::ConnectTimeout, message);
                self.not_opened(link, &fault, recorder);
            }
        }
        let opening = self.links.iter().any(Link::is_opening);
        self.looks_ns = if opening { now_ns + LOOK_NS } else { u64::MAX };
    }

    /// Gives up requests that take too long.
    fn expire(&mut self, now_ns: u64, recorder: &mut Recorder) {
        let Some(timeout_ns) = self.state.plan.request_timeout_ns else {
            return;
        };
        if self.expires_ns == u64::MAX {
            self.expires_ns = now_ns.saturating_add(timeout_ns);
        }
        if now_ns < self.expires_ns {
            return;
        }
        let before_ns = now_ns.saturating_sub(timeout_ns);
        for link in 0..self.links.len() {
            let mut shared = shared!(self, recorder);
            let ended = self.links[link].expire(before_ns, &mut shared);
            if std::mem::take(&mut self.links[link].dirty) {
                self.soil(link);
            }
            if let Some(ended) = ended {
                self.ended(link, &ended, recorder);
            }
        }
        let under_way = self.links.iter().flat_map(|link| &link.lanes);
        let under_way = under_way.filter(|lane| lane.state != super::lane::LaneState::Free);
        let oldest_ns = under_way
            .map(|lane| lane.task.at_ns)
            .min()
            .unwrap_or(now_ns);
        // Not more often than makes sense.
        self.expires_ns = oldest_ns.saturating_add(timeout_ns).max(now_ns + 1_000_000);
    }
}

impl Endpoint for HttpEndpoint {
    fn slots(&self) -> usize {
        self.placed.len() * self.state.depth
    }

    fn now_ns(&self) -> u64 {
        self.state.now_ns()
    }

    fn report(&mut self, recorder: &mut Recorder) {
        if let Some(untold) = self.untold.take() {
            recorder.take_over_connections(&untold);
        }
    }

    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder) {
        let (place, lane) = (slot / self.state.depth, slot % self.state.depth);
        let link = self.placed[place];
        let mut shared = shared!(self, recorder);
        self.links[link].begin(lane, task, &mut shared);
        if self.links[link].stage == Stage::Closed {
            // One that the worker is about to learn of as closed is opened at its word.
            if !self.links[link].awaited {
                self.connect(link, recorder);
            }
        } else {
            self.soil(link);
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
            let now_ns = self.now_ns();
            self.open_planned(now_ns, recorder);
            self.look(now_ns, recorder);
            self.expire(now_ns, recorder);
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
                .min(self.looks_ns)
                .min(silence_ns)
                .min(until_ns);
            let wake_ns = wake_ns.max(now_ns + 1);
            self.poller.wait(wake_ns, now_ns, |link, closed| {
                self.links[link].woken(closed);
                self.ready.push_back(link);
            })?;
        }
    }

    fn reopen(&mut self, slot: usize, not_before_ns: u64) {
        let link = self.placed[slot / self.state.depth];
        // Each slot of a connection asks for it; one request is enough.
        if std::mem::replace(&mut self.links[link].planned, true) {
            return;
        }
        if self.links[link].stage != Stage::Closed {
            if self.links[link].stage == Stage::Open {
                self.connections.most -= 1;
            }
            self.links[link].close();
        }
        self.links[link].forget();
        self.links[link].awaited = true;
        self.planned.push(Reverse((not_before_ns, link)));
    }

    fn grow(&mut self) {
        let link = self.spare.pop().unwrap_or_else(|| {
            let link = self.links.len();
            let client = self.share.client(link);
            self.links
                .push(Link::new(Token(link), None, client, self.state.depth));
            link
        });
        self.links[link].awaited = true;
        self.links[link].planned = true;
        self.planned.push(Reverse((0, link)));
    }

    fn cancel(&mut self, _slot: usize) -> bool {
        // Closing the connection says it.
        true
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for link in &self.links {
            traffic.add(link.traffic());
        }
        traffic
    }

    fn connections(&self) -> Connections {
        self.connections
    }

    fn close(self) -> (u64, u64) {
        (0, 0)
    }
}
