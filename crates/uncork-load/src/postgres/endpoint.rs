//! One thread's connections and their event loop.
//!
//! Readiness is edge-triggered: a connection is read until a read comes back short, which says
//! that nothing is left, and saves the call that would say so again. Interest in writing is
//! registered only while a request did not go out whole; else every read by the server would wake
//! us.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use mio::{Events, Interest, Poll, Token};
use postgres_protocol::message::frontend;
use uncork_model::{Connection, DigestMode};

use super::connect::{Session, cancel};
use super::encode::Requests;
use super::frame::{Found, ReplyReader};
use super::stream::Stream;
use crate::{Completion, Endpoint, LoadError, Lost, Reply, Request, Traffic};

/// First size of a connection's buffer: several of the server's own 8 KiB.
const BUFFER_BYTES: usize = 32 * 1024;

/// One thread's connections to a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresEndpoint {
    poll: Poll,
    events: Events,
    links: Vec<Link>,
    /// Connections that may have something to read.
    ready: VecDeque<usize>,
    requests: Requests,
    connection: Connection,
    origin: Instant,
    connect_ns: u64,
}

impl PostgresEndpoint {
    pub(crate) fn new(
        sessions: Vec<Session>,
        requests: Requests,
        connection: Connection,
        digest: DigestMode,
        origin: Instant,
    ) -> Result<Self, LoadError> {
        let system = |source| LoadError::System {
            action: "watch its sockets",
            source,
        };
        let poll = Poll::new().map_err(system)?;
        let connect_ns = sessions
            .iter()
            .map(|session| session.connect_ns)
            .max()
            .unwrap_or(0);
        let mut links = Vec::with_capacity(sessions.len());
        for (number, session) in sessions.into_iter().enumerate() {
            let mut stream = session.stream.into_stream().map_err(system)?;
            stream
                .register(poll.registry(), Token(number), Interest::READABLE)
                .map_err(system)?;
            links.push(Link::new(stream, number, session.key, digest));
        }
        let events = Events::with_capacity(links.len().clamp(16, 1024));
        let ready = VecDeque::with_capacity(links.len());
        Ok(Self {
            poll,
            events,
            links,
            ready,
            requests,
            connection,
            origin,
            connect_ns,
        })
    }
}

impl Endpoint for PostgresEndpoint {
    fn clients(&self) -> usize {
        self.links.len()
    }

    fn now_ns(&self) -> u64 {
        // Five centuries fit.
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn send(&mut self, client: usize, request: Request) -> Result<(), Lost> {
        let link = &mut self.links[client];
        match link.stream.write(self.requests.get(request)) {
            Ok(length) => {
                link.sent_bytes += length as u64;
                let rest = &self.requests.get(request)[length..];
                if rest.is_empty() {
                    return Ok(());
                }
                link.outgoing.extend_from_slice(rest);
            }
            Err(error) if is_wait(&error) => {
                link.outgoing.extend_from_slice(self.requests.get(request));
            }
            Err(error) => return Err(link.lost(&error)),
        }
        link.flush(&self.poll)
    }

    fn next(&mut self, until_ns: u64) -> io::Result<Option<Completion>> {
        loop {
            while let Some(&client) = self.ready.front() {
                let synchronizes = self.requests.synchronizes();
                let reply = match self.links[client].advance(&self.poll, synchronizes) {
                    Ok(Some(reply)) => Ok(reply),
                    Ok(None) => {
                        self.ready.pop_front();
                        continue;
                    }
                    Err(lost) => {
                        self.ready.pop_front();
                        Err(lost)
                    }
                };
                return Ok(Some(Completion {
                    client,
                    at_ns: self.now_ns(),
                    reply,
                }));
            }
            let wait = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
            match self.poll.poll(&mut self.events, Some(wait)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(error) => return Err(error),
            }
            if self.events.is_empty() {
                return Ok(None);
            }
            for event in &self.events {
                let Token(client) = event.token();
                let link = &mut self.links[client];
                link.drained = false;
                link.closing |= event.is_read_closed() || event.is_error();
                self.ready.push_back(client);
            }
        }
    }

    fn cancel(&mut self, client: usize) -> bool {
        cancel(&self.connection, self.links[client].key).is_ok()
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for link in &self.links {
            traffic.sent_bytes += link.sent_bytes;
            traffic.received_bytes += link.received_bytes;
        }
        traffic
    }

    fn connect_ns(&self) -> u64 {
        self.connect_ns
    }

    fn backends(&self) -> Vec<i32> {
        self.links.iter().map(|link| link.key.0).collect()
    }

    fn close(mut self) {
        let mut farewell = BytesMut::new();
        frontend::terminate(&mut farewell);
        for link in &mut self.links {
            // Who is gone cannot be told; the server notices the closed socket anyway.
            let _ = link.stream.write(&farewell);
        }
    }
}

/// One connection.
#[derive(Debug)]
struct Link {
    stream: Stream,
    token: Token,
    key: (i32, i32),
    buffer: Buffer,
    reader: ReplyReader,
    /// What could not be written yet.
    outgoing: Vec<u8>,
    awaits_writing: bool,
    /// The last read came back short.
    drained: bool,
    /// The other side has closed: what is there must be read to the end.
    closing: bool,
    sent_bytes: u64,
    received_bytes: u64,
}

impl Link {
    fn new(stream: Stream, number: usize, key: (i32, i32), digest: DigestMode) -> Self {
        Self {
            stream,
            token: Token(number),
            key,
            buffer: Buffer::default(),
            reader: ReplyReader::new(digest),
            outgoing: Vec::new(),
            awaits_writing: false,
            drained: true,
            closing: false,
            sent_bytes: 0,
            received_bytes: 0,
        }
    }

    /// Writes and reads as far as possible without waiting; `None` when that was not enough.
    fn advance(&mut self, poll: &Poll, synchronizes: bool) -> Result<Option<Reply>, Lost> {
        if !self.outgoing.is_empty() {
            self.flush(poll)?;
        }
        loop {
            let need = match self.parse() {
                Found::Reply(reply) => return Ok(Some(reply)),
                Found::Nothing { need } => need,
                Found::Farewell(message) => return Err(Lost { message }),
                Found::Garbled => return Err(lost("the server does not speak the protocol")),
                Found::CopyIn => {
                    self.refuse_copy(synchronizes);
                    self.flush(poll)?;
                    continue;
                }
            };
            if self.drained {
                return Ok(None);
            }
            self.receive(need)?;
        }
    }

    fn parse(&mut self) -> Found {
        let (used, found) = self.reader.read(self.buffer.filled());
        self.buffer.consume(used);
        found
    }

    fn receive(&mut self, need: usize) -> Result<(), Lost> {
        let space = self.buffer.space(need);
        let room = space.len();
        match self.stream.read(space) {
            Ok(0) => Err(lost("the server closed the connection")),
            Ok(length) => {
                self.buffer.fill(length);
                self.received_bytes += length as u64;
                self.drained = length < room && !self.closing;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(lost(&format!("the connection broke: {error}"))),
        }
    }

    /// Writes what is left of a request, and asks to be woken for what is still left then.
    fn flush(&mut self, poll: &Poll) -> Result<(), Lost> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(length) => {
                    self.sent_bytes += length as u64;
                    self.outgoing.drain(..length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
        let awaits_writing = !self.outgoing.is_empty();
        if awaits_writing != self.awaits_writing {
            let mut interest = Interest::READABLE;
            if awaits_writing {
                interest |= Interest::WRITABLE;
            }
            self.stream
                .reregister(poll.registry(), self.token, interest)
                .map_err(|error| lost(&format!("the connection cannot be watched: {error}")))?;
            self.awaits_writing = awaits_writing;
        }
        Ok(())
    }

    /// Answers the server's wait for data. While it waits it ignores `Sync`, so that the one of
    /// the request is lost and another must follow.
    fn refuse_copy(&mut self, synchronizes: bool) {
        let mut answer = BytesMut::new();
        // The text has no zero byte, which alone could make this fail.
        let _ = frontend::copy_fail("uncork has no data for COPY FROM STDIN", &mut answer);
        if synchronizes {
            frontend::sync(&mut answer);
        }
        self.outgoing.extend_from_slice(&answer);
    }

    /// Why writing failed: the server's last words, if it left some, else the system's.
    fn lost(&mut self, error: &io::Error) -> Lost {
        self.drained = false;
        self.closing = true;
        loop {
            match self.parse() {
                Found::Farewell(message) => return Lost { message },
                Found::Reply(_) => {}
                Found::Nothing { need } if !self.drained => {
                    if self.receive(need).is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
        lost(&format!("the connection broke: {error}"))
    }
}

fn lost(message: &str) -> Lost {
    Lost {
        message: message.to_owned(),
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Received bytes that were not parsed yet.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            bytes: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
        }
    }
}

impl Buffer {
    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, length: usize) {
        self.start += length;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Room to read into, so much that `need` bytes from the first unparsed one on will fit.
    fn space(&mut self, need: usize) -> &mut [u8] {
        if self.end == self.bytes.len() || self.start + need > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if need > self.bytes.len() {
                self.bytes.resize(need.next_power_of_two(), 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    fn fill(&mut self, length: usize) {
        self.end += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_makes_room_for_a_long_message() {
        let mut buffer = Buffer::default();
        let room = buffer.space(0).len();
        assert_eq!(room, BUFFER_BYTES);
        buffer.bytes[room - 2..].copy_from_slice(b"ab");
        buffer.fill(room);
        buffer.consume(room - 2);
        assert!(buffer.space(5).len() >= 3);
        assert_eq!(buffer.filled(), b"ab");
        assert!(buffer.space(3 * BUFFER_BYTES).len() >= 3 * BUFFER_BYTES - 2);
        assert_eq!(buffer.filled(), b"ab");
        buffer.consume(2);
        assert_eq!(buffer.filled(), [] as [u8; 0]);
    }
}
