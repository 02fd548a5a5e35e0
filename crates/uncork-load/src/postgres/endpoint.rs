//! One thread's connections and their event loop. It waits for answers, for scripts that sleep, for
//! connections that are being opened, and for the worker's next arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use mio::Waker;
use uncork_model::Connections;

use super::State;
use super::connect::cancel;
use super::connection::{Connection, Context, Read};
use super::login::Session;
use super::opener::Opener;
use super::slot::Step;
use crate::socket::Poller;
use crate::{Endpoint, Event, Failure, LoadError, Recorder, Share, Task, Traffic};

/// The tag of a request for an additional connection.
const NEW: usize = usize::MAX;
/// How many connections a thread opens at once in the background.
const OPENERS: usize = 2;

/// One thread's connections to a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresEndpoint {
    driver: Arc<State>,
    share: Share,
    poller: Poller,
    /// Wakes the poller when a connection was opened in the background.
    waker: Arc<Waker>,
    /// Started when the first connection is opened during the load.
    opener: Option<Opener>,
    connections: Vec<Connection>,
    /// Connections that may have something to read.
    ready: VecDeque<usize>,
    happened: VecDeque<Event>,
    /// Scheduled actions, the earliest first.
    timed: BinaryHeap<Reverse<(u64, Timed)>>,
    counts: Connections,
    /// Additional connections that were requested and have no result yet.
    growing: usize,
    /// Whether scripts draw the values of the warm-up of an open loop.
    warm_up: bool,
}

/// An action at a scheduled time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    /// A script's sleep ends.
    Wake {
        connection: usize,
        local_slot: usize,
    },
    /// A connection is opened again.
    Reopen { connection: usize },
}

impl PostgresEndpoint {
    pub(super) fn new(
        driver: Arc<State>,
        share: Share,
        sessions: Vec<Session>,
    ) -> Result<Self, LoadError> {
        let system = |source| LoadError::System {
            action: "watch its sockets",
            source,
        };
        let poller = Poller::new(sessions.len()).map_err(system)?;
        let waker = poller.waker().map_err(system)?;
        let mut endpoint = Self {
            driver,
            share,
            poller,
            waker: Arc::new(waker),
            opener: None,
            connections: Vec::with_capacity(sessions.len()),
            ready: VecDeque::with_capacity(sessions.len()),
            happened: VecDeque::new(),
            timed: BinaryHeap::new(),
            counts: Connections::default(),
            growing: 0,
            warm_up: false,
        };
        for session in sessions {
            endpoint.add(session).map_err(system)?;
        }
        Ok(endpoint)
    }

    /// Add a connection for an open session.
    fn add(&mut self, session: Session) -> io::Result<()> {
        let number = self.connections.len();
        let client = self.share.client(number);
        let sessions = self.driver.script_sessions(client, self.warm_up);
        self.connections.push(Connection::new(
            number,
            client,
            sessions,
            self.driver.digest,
        ));
        self.open_connection(number, session)
    }

    fn open_connection(&mut self, number: usize, session: Session) -> io::Result<()> {
        let Session {
            stream,
            received,
            key,
            connect_ns,
        } = session;
        let context = Context {
            program: &self.driver.program,
            messages: &self.driver.messages,
            registry: self.poller.registry(),
            origin: self.driver.origin,
        };
        let prepared = self.driver.prepares_ahead;
        let stream = stream.into_stream()?;
        self.connections[number].open(stream, &received, key, prepared, context)?;
        self.counts.opened += 1;
        self.counts.sum_ns += connect_ns;
        self.counts.max_ns = self.counts.max_ns.max(connect_ns);
        self.counts.most += 1;
        Ok(())
    }

    fn depth(&self) -> usize {
        self.driver.depth
    }

    fn slot(&self, connection: usize, local_slot: usize) -> usize {
        connection * self.depth() + local_slot
    }

    /// Turn a step of an operation into events.
    fn stepped(&mut self, connection: usize, local_slot: usize, at_ns: u64, step: Step) {
        match step {
            Step::Waiting => {}
            Step::Sleeping { for_ns } => {
                let timed = Timed::Wake {
                    connection,
                    local_slot,
                };
                self.timed
                    .push(Reverse((at_ns.saturating_add(for_ns), timed)));
            }
            Step::Ended(end) => {
                let slot = self.slot(connection, local_slot);
                self.happened.push_back(Event::Ended { slot, at_ns, end });
            }
        }
        if self.connections[connection].is_broken() {
            self.ready.push_back(connection);
        }
    }

    fn lose(&mut self, connection: usize, failure: &Failure, recorder: &mut Recorder) {
        self.connections[connection].lose(recorder);
        self.counts.lost += 1;
        self.counts.most -= 1;
        self.forget(connection);
        let at_ns = self.now_ns();
        for local_slot in 0..self.depth() {
            self.happened.push_back(Event::Lost {
                slot: self.slot(connection, local_slot),
                at_ns,
                failure: Box::new(failure.clone()),
            });
        }
    }

    /// Drop what was scheduled for the operations of a closed connection.
    fn forget(&mut self, connection: usize) {
        self.timed.retain(|Reverse((_, timed))| match timed {
            Timed::Wake { connection: of, .. } => *of != connection,
            Timed::Reopen { .. } => true,
        });
    }

    /// Read from ready connections, up to the first event.
    fn read_ready(&mut self, recorder: &mut Recorder) {
        while self.happened.is_empty()
            && let Some(&number) = self.ready.front()
        {
            let context = Context {
                program: &self.driver.program,
                messages: &self.driver.messages,
                registry: self.poller.registry(),
                origin: self.driver.origin,
            };
            match self.connections[number].read(context, recorder) {
                Read::Drained => {
                    self.ready.pop_front();
                }
                Read::Stepped {
                    slot: local_slot,
                    at_ns,
                    step,
                } => self.stepped(number, local_slot, at_ns, step),
                Read::Lost(failure) => {
                    self.ready.retain(|&ready| ready != number);
                    self.lose(number, &failure, recorder);
                }
            }
        }
    }

    /// Carry out what is due by now.
    fn run_timed(&mut self, now_ns: u64, recorder: &mut Recorder) {
        while let Some(Reverse((at_ns, timed))) = self.timed.peek().copied()
            && at_ns <= now_ns
        {
            self.timed.pop();
            match timed {
                Timed::Wake {
                    connection,
                    local_slot,
                } => {
                    let context = Context {
                        program: &self.driver.program,
                        messages: &self.driver.messages,
                        registry: self.poller.registry(),
                        origin: self.driver.origin,
                    };
                    let step =
                        self.connections[connection].wake(local_slot, now_ns, context, recorder);
                    self.stepped(connection, local_slot, now_ns, step);
                }
                Timed::Reopen { connection } => self.request(connection, now_ns),
            }
        }
    }

    /// Request a connection from the opener.
    fn request(&mut self, tag: usize, now_ns: u64) {
        if self.opener.is_none() {
            let driver = Arc::clone(&self.driver);
            let started = Opener::start(
                move |interrupt| driver.connect(interrupt),
                &self.waker,
                OPENERS,
            );
            match started {
                Ok(opener) => self.opener = Some(opener),
                Err(error) => {
                    let message = format!("cannot start a thread to open connections: {error}");
                    self.growing -= usize::from(tag == NEW);
                    self.not_opened(tag, now_ns, Failure::lost(message));
                    return;
                }
            }
        }
        if let Some(opener) = &self.opener {
            opener.request(tag);
        }
    }

    /// Take over the connections that the opener has opened.
    fn take_opened(&mut self, recorder: &mut Recorder) {
        while let Some((tag, result)) = self.opener.as_ref().and_then(Opener::take) {
            self.growing -= usize::from(tag == NEW);
            let now_ns = self.now_ns();
            let session = match result {
                Ok(session) => session,
                Err(error) => {
                    self.not_opened(tag, now_ns, error.into_failure());
                    continue;
                }
            };
            recorder.connected(session.connect_ns);
            let opened = if tag == NEW {
                self.add(session)
            } else {
                self.open_connection(tag, session)
            };
            if let Err(error) = opened {
                let message = format!("a new connection cannot be watched: {error}");
                self.not_opened(tag, now_ns, Failure::lost(message));
                continue;
            }
            let connection = if tag == NEW {
                self.connections.len() - 1
            } else {
                tag
            };
            for local_slot in 0..self.depth() {
                let slot = self.slot(connection, local_slot);
                self.happened.push_back(Event::Opened {
                    slot,
                    at_ns: now_ns,
                });
            }
        }
    }

    fn not_opened(&mut self, tag: usize, at_ns: u64, failure: Box<Failure>) {
        if tag == NEW {
            self.happened.push_back(Event::NotOpened {
                slot: None,
                at_ns,
                failure,
            });
            return;
        }
        for local_slot in 0..self.depth() {
            self.happened.push_back(Event::NotOpened {
                slot: Some(self.slot(tag, local_slot)),
                at_ns,
                failure: failure.clone(),
            });
        }
    }
}

impl Endpoint for PostgresEndpoint {
    fn slots(&self) -> usize {
        self.connections.len() * self.depth()
    }

    fn now_ns(&self) -> u64 {
        // Five centuries fit.
        u64::try_from(self.driver.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_open(&self, slot: usize) -> bool {
        self.connections[slot / self.depth()].is_open()
    }

    fn growing(&self) -> usize {
        self.growing
    }

    fn restart_scripts(&mut self, warm_up: bool) {
        self.warm_up = warm_up;
        for (number, connection) in self.connections.iter_mut().enumerate() {
            let client = self.share.client(number);
            connection.restart(self.driver.script_sessions(client, warm_up));
        }
    }

    fn opening_wait_ns(&self) -> u64 {
        self.opener.as_ref().map_or(0, Opener::waited_ns)
    }

    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder) {
        let (connection, local_slot) = (slot / self.depth(), slot % self.depth());
        let context = Context {
            program: &self.driver.program,
            messages: &self.driver.messages,
            registry: self.poller.registry(),
            origin: self.driver.origin,
        };
        let step = self.connections[connection].begin(local_slot, task, context, recorder);
        // A script that sends nothing must also take time, or it would never end.
        let at_ns = match step {
            Step::Waiting => task.at_ns,
            Step::Sleeping { .. } | Step::Ended(_) => self.now_ns(),
        };
        self.stepped(connection, local_slot, at_ns, step);
    }

    fn next(&mut self, until_ns: u64, recorder: &mut Recorder) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.happened.pop_front() {
                return Ok(Some(event));
            }
            self.read_ready(recorder);
            if self.opener.is_some() {
                self.take_opened(recorder);
            }
            if !self.happened.is_empty() {
                continue;
            }
            let now_ns = self.now_ns();
            if !self.timed.is_empty() {
                self.run_timed(now_ns, recorder);
                if !self.happened.is_empty() {
                    continue;
                }
            }
            if now_ns >= until_ns {
                return Ok(None);
            }
            let timed_ns = self.timed.peek().map(|Reverse((at_ns, _))| *at_ns);
            let wake_ns = timed_ns.unwrap_or(u64::MAX).min(until_ns).max(now_ns + 1);
            self.poller.wait(wake_ns, now_ns, |number, closed| {
                let connection = &mut self.connections[number];
                connection.woken(closed);
                if connection.is_open() {
                    self.ready.push_back(number);
                }
            })?;
        }
    }

    fn reopen(&mut self, slot: usize, not_before_ns: u64) {
        let connection = slot / self.depth();
        let planned = Timed::Reopen { connection };
        // Each slot of a connection requests it; one request is enough.
        if self
            .timed
            .iter()
            .any(|Reverse((_, timed))| *timed == planned)
        {
            return;
        }
        if self.connections[connection].is_open() {
            self.counts.most -= 1;
            self.connections[connection].close();
            self.forget(connection);
            self.ready.retain(|&ready| ready != connection);
        }
        self.timed.push(Reverse((not_before_ns, planned)));
    }

    fn release(&mut self, slot: usize) {
        let connection = slot / self.depth();
        // The slots of a pipeline share a connection, which others may still need.
        if self.depth() == 1 && self.connections[connection].is_open() {
            self.connections[connection].close();
            self.ready.retain(|&ready| ready != connection);
        }
    }

    fn grow(&mut self) {
        let now_ns = self.now_ns();
        self.growing += 1;
        self.request(NEW, now_ns);
    }

    fn cancel(&mut self, slot: usize) -> bool {
        let connection = &self.connections[slot / self.depth()];
        cancel(&self.driver.target, connection.key).is_ok()
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

    fn backends(&self) -> Vec<i32> {
        self.connections
            .iter()
            .map(|connection| connection.key.0)
            .collect()
    }

    fn close(mut self) -> (u64, u64) {
        for connection in &mut self.connections {
            connection.close();
        }
        self.opener.take().map_or((0, 0), Opener::close)
    }
}
