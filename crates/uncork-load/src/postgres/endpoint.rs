//! One thread's connections and their event loop: it waits for answers, for scripts that sleep,
//! for connections that are being opened, and for the worker's next arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use mio::Waker;
use uncork_model::Connections;

use super::State;
use super::connect::cancel;
use super::lane::Step;
use super::link::{Link, Read, Surroundings};
use super::login::Session;
use super::opener::Opener;
use crate::socket::Poller;
use crate::{Endpoint, Event, Failure, LoadError, Recorder, Share, Task, Traffic};

/// What the opener is asked for when it is not the connection of a link.
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
    /// Started with the first connection that is opened while operations run.
    opener: Option<Opener>,
    links: Vec<Link>,
    /// Links that may have something to read.
    ready: VecDeque<usize>,
    happened: VecDeque<Event>,
    /// What is to be done when, the earliest first.
    timed: BinaryHeap<Reverse<(u64, Timed)>>,
    connections: Connections,
}

/// Something to be done at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    /// A script has slept enough.
    Wake { link: usize, lane: usize },
    /// A connection is to be opened again.
    Reopen { link: usize },
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
            links: Vec::with_capacity(sessions.len()),
            ready: VecDeque::with_capacity(sessions.len()),
            happened: VecDeque::new(),
            timed: BinaryHeap::new(),
            connections: Connections::default(),
        };
        for session in sessions {
            endpoint.add(session).map_err(system)?;
        }
        Ok(endpoint)
    }

    /// Adds a link with an open connection.
    fn add(&mut self, session: Session) -> io::Result<()> {
        let number = self.links.len();
        let client = self.share.client(number);
        let sessions = self.driver.script_sessions(client);
        self.links
            .push(Link::new(number, sessions, self.driver.digest));
        self.open_link(number, session)
    }

    fn open_link(&mut self, number: usize, session: Session) -> io::Result<()> {
        let Session {
            stream,
            received,
            key,
            connect_ns,
        } = session;
        let surroundings = Surroundings {
            program: &self.driver.program,
            registry: self.poller.registry(),
            origin: self.driver.origin,
        };
        let prepared = self.driver.prepares_ahead;
        let stream = stream.into_stream()?;
        self.links[number].open(stream, &received, key, prepared, surroundings)?;
        self.connections.opened += 1;
        self.connections.sum_ns += connect_ns;
        self.connections.max_ns = self.connections.max_ns.max(connect_ns);
        self.connections.most += 1;
        Ok(())
    }

    fn depth(&self) -> usize {
        self.driver.depth
    }

    fn slot(&self, link: usize, lane: usize) -> usize {
        link * self.depth() + lane
    }

    /// What a step of an operation means to the world.
    fn stepped(&mut self, link: usize, lane: usize, at_ns: u64, step: Step) {
        match step {
            Step::Waiting => {}
            Step::Sleeping { for_ns } => {
                let timed = Timed::Wake { link, lane };
                self.timed
                    .push(Reverse((at_ns.saturating_add(for_ns), timed)));
            }
            Step::Ended(end) => {
                let slot = self.slot(link, lane);
                self.happened.push_back(Event::Ended { slot, at_ns, end });
            }
        }
        if self.links[link].is_broken() {
            self.ready.push_back(link);
        }
    }

    fn lose(&mut self, link: usize, failure: &Failure, recorder: &mut Recorder) {
        self.links[link].lose(recorder);
        self.connections.lost += 1;
        self.connections.most -= 1;
        self.forget(link);
        let at_ns = self.now_ns();
        for lane in 0..self.depth() {
            self.happened.push_back(Event::Lost {
                slot: self.slot(link, lane),
                at_ns,
                failure: Box::new(failure.clone()),
            });
        }
    }

    /// Removes what was planned for the operations of a link that is closed.
    fn forget(&mut self, link: usize) {
        self.timed.retain(|Reverse((_, timed))| match timed {
            Timed::Wake { link: of, .. } => *of != link,
            Timed::Reopen { .. } => true,
        });
    }

    /// Reads what there is to read, up to the first thing that happens.
    fn read_ready(&mut self, recorder: &mut Recorder) {
        while self.happened.is_empty()
            && let Some(&number) = self.ready.front()
        {
            let surroundings = Surroundings {
                program: &self.driver.program,
                registry: self.poller.registry(),
                origin: self.driver.origin,
            };
            match self.links[number].read(surroundings, recorder) {
                Read::Drained => {
                    self.ready.pop_front();
                }
                Read::Stepped { lane, at_ns, step } => self.stepped(number, lane, at_ns, step),
                Read::Lost(failure) => {
                    self.ready.retain(|&ready| ready != number);
                    self.lose(number, &failure, recorder);
                }
            }
        }
    }

    /// Does what is due by now.
    fn run_timed(&mut self, now_ns: u64, recorder: &mut Recorder) {
        while let Some(Reverse((at_ns, timed))) = self.timed.peek().copied()
            && at_ns <= now_ns
        {
            self.timed.pop();
            match timed {
                Timed::Wake { link, lane } => {
                    let surroundings = Surroundings {
                        program: &self.driver.program,
                        registry: self.poller.registry(),
                        origin: self.driver.origin,
                    };
                    let step = self.links[link].wake(lane, now_ns, surroundings, recorder);
                    self.stepped(link, lane, now_ns, step);
                }
                Timed::Reopen { link } => self.request(link, now_ns),
            }
        }
    }

    /// Asks the opener for a connection.
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
                    self.not_opened(tag, now_ns, Failure::lost(message));
                    return;
                }
            }
        }
        if let Some(opener) = &self.opener {
            opener.request(tag);
        }
    }

    /// Takes over what the opener has opened.
    fn take_opened(&mut self, recorder: &mut Recorder) {
        while let Some((tag, result)) = self.opener.as_ref().and_then(Opener::take) {
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
                self.open_link(tag, session)
            };
            if let Err(error) = opened {
                let message = format!("a new connection cannot be watched: {error}");
                self.not_opened(tag, now_ns, Failure::lost(message));
                continue;
            }
            let link = if tag == NEW {
                self.links.len() - 1
            } else {
                tag
            };
            for lane in 0..self.depth() {
                let slot = self.slot(link, lane);
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
        for lane in 0..self.depth() {
            self.happened.push_back(Event::NotOpened {
                slot: Some(self.slot(tag, lane)),
                at_ns,
                failure: failure.clone(),
            });
        }
    }
}

impl Endpoint for PostgresEndpoint {
    fn slots(&self) -> usize {
        self.links.len() * self.depth()
    }

    fn now_ns(&self) -> u64 {
        // Five centuries fit.
        u64::try_from(self.driver.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn begin(&mut self, slot: usize, task: Task, recorder: &mut Recorder) {
        let (link, lane) = (slot / self.depth(), slot % self.depth());
        let surroundings = Surroundings {
            program: &self.driver.program,
            registry: self.poller.registry(),
            origin: self.driver.origin,
        };
        let step = self.links[link].begin(lane, task, surroundings, recorder);
        // A script that sends nothing takes time all the same, else it would never be up.
        let at_ns = match step {
            Step::Waiting => task.at_ns,
            Step::Sleeping { .. } | Step::Ended(_) => self.now_ns(),
        };
        self.stepped(link, lane, at_ns, step);
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
                let link = &mut self.links[number];
                link.woken(closed);
                if link.is_open() {
                    self.ready.push_back(number);
                }
            })?;
        }
    }

    fn reopen(&mut self, slot: usize, not_before_ns: u64) {
        let link = slot / self.depth();
        let planned = Timed::Reopen { link };
        // Each slot of a connection asks for it; one request is enough.
        if self
            .timed
            .iter()
            .any(|Reverse((_, timed))| *timed == planned)
        {
            return;
        }
        if self.links[link].is_open() {
            self.connections.most -= 1;
            self.links[link].close();
            self.forget(link);
            self.ready.retain(|&ready| ready != link);
        }
        self.timed.push(Reverse((not_before_ns, planned)));
    }

    fn grow(&mut self) {
        let now_ns = self.now_ns();
        self.request(NEW, now_ns);
    }

    fn cancel(&mut self, slot: usize) -> bool {
        let link = &self.links[slot / self.depth()];
        cancel(&self.driver.target, link.key).is_ok()
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

    fn backends(&self) -> Vec<i32> {
        self.links.iter().map(|link| link.key.0).collect()
    }

    fn close(mut self) -> (u64, u64) {
        for link in &mut self.links {
            link.close();
        }
        self.opener.take().map_or((0, 0), Opener::close)
    }
}
