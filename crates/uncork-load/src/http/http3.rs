//! HTTP/3 (RFC 9114) from the client's side: sends requests, parses answers.
//!
//! QUIC orders and repeats what is sent on each stream, so frames of one answer come in order, and
//! answers do not wait for one another. [`answer`](Answer) and [`ServerStream`] parse frames, and
//! this module joins them to the streams of a QUIC connection.

mod answer;
mod frames;
mod server_stream;

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use mio::{Registry, Token};
use quinn_proto::{ConnectionError, Dir, Event, ReadError, Side, StreamEvent, StreamId};

use super::fault::{Fault, FieldNames, Head, Kind, Sink};
use super::hpack::Header;
use super::qpack::{Decoder, Encoder};
use super::quic::{Config, Quic};
use crate::Traffic;
use answer::{Answer, Reading};
use frames::{
    CONTROL_STREAM, DATA, HEADERS, NO_ERROR, REQUEST_CANCELLED, REQUEST_REJECTED, SETTINGS,
    write_number,
};
use server_stream::ServerStream;

pub(super) use frames::error_name;

/// One connection.
#[derive(Debug)]
pub(crate) struct Http3 {
    quic: Quic,
    encoder: Encoder,
    decoder: Decoder,
    /// The state of each slot.
    streams: Vec<Stream>,
    /// Maps stream numbers to slots, until a later stream uses the slot.
    slots: Vec<(u64, usize)>,
    server_streams: Vec<(StreamId, ServerStream)>,
    /// A stream that is open for the next request.
    next_stream: Option<StreamId>,
    active: usize,
    connected: bool,
    /// The first stream that the server will not process, after GOAWAY.
    leave: Option<u64>,
    head: Head,
    block: Vec<u8>,
    out: Vec<u8>,
}

/// The HTTP/3 state of a slot.
#[derive(Debug, Default)]
struct Stream {
    /// `None` if there is no request.
    id: Option<StreamId>,
    answer: Answer,
    /// What could not be sent yet.
    rest: Vec<u8>,
}

/// Why a connection cannot continue.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The server broke the rules of HTTP/3.
    Wrong(Fault),
    /// QUIC ended the connection.
    Lost(ConnectionError),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Wrong(fault)
    }
}

/// How far an answer was read.
enum Read {
    Waits,
    Ended,
    Reset(quinn_proto::VarInt),
}

impl Http3 {
    /// Begin to connect, with so many slots, for a load with so many lasting headers. `lists` names
    /// the fields of answers to keep. Nothing is sent before [`Http3::transmit`].
    pub(crate) fn connect(
        config: &Config,
        (address, host): (SocketAddr, &str),
        (registry, token): (&Registry, Token),
        slots: usize,
        lasting: usize,
        lists: FieldNames,
    ) -> io::Result<Self> {
        Ok(Self {
            quic: Quic::connect(config, address, host, registry, token)?,
            encoder: Encoder::new(lasting),
            decoder: Decoder::new(lists),
            streams: (0..slots).map(|_| Stream::default()).collect(),
            slots: vec![(u64::MAX, 0); (2 * slots).next_power_of_two()],
            server_streams: Vec::new(),
            next_stream: None,
            active: 0,
            connected: false,
            leave: None,
            head: Head::default(),
            block: Vec::new(),
            out: Vec::new(),
        })
    }

    /// Whether requests may be sent.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether another request may be sent now.
    pub(crate) fn has_room(&mut self) -> bool {
        if !self.connected || self.takes_no_more() {
            return false;
        }
        if self.next_stream.is_none() {
            self.next_stream = self.quic.connection.streams().open(Dir::Bi);
        }
        self.next_stream.is_some()
    }

    /// Whether the server has announced that the connection takes no more requests.
    pub(crate) fn takes_no_more(&self) -> bool {
        self.leave.is_some()
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.active == 0
    }

    // ---- the transport ----

    /// Bytes of datagrams sent and received.
    pub(crate) fn traffic(&self) -> Traffic {
        self.quic.traffic()
    }

    /// When the connection next has something to do, if nothing is received before.
    pub(crate) fn timeout(&mut self) -> Option<Instant> {
        self.quic.timeout()
    }

    /// Do what is due, and receive waiting datagrams; return whether none is left. Then
    /// [`Http3::process`] parses them.
    pub(crate) fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<bool> {
        self.quic.elapse(now);
        let drained = self.quic.receive(now, buffer);
        self.quic.take_error().map_or(Ok(drained), Err)
    }

    /// Send what is due, as far as the socket accepts it, and register for writability if it does
    /// not accept all.
    pub(crate) fn transmit(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.quic.transmit(Instant::now());
        self.quic.watch(registry, token)?;
        self.quic.take_error().map_or(Ok(()), Err)
    }

    /// Close the connection, and tell the server so.
    pub(crate) fn close(&mut self) {
        self.quic.close(NO_ERROR);
    }

    // ---- requests ----

    /// Send a request on a free slot; the connection must have room. Returns its length.
    pub(crate) fn send<'a>(
        &mut self,
        slot: usize,
        headers: impl Iterator<Item = Header<'a>>,
        body: &[u8],
    ) -> usize {
        let Some(id) = self.next_stream.take() else {
            return 0;
        };
        self.active += 1;
        let place = self.place(id);
        self.slots[place] = (id.index(), slot);
        self.block.clear();
        Encoder::begin(&mut self.block);
        for header in headers {
            self.encoder.write(header, &mut self.block);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        write_number(HEADERS, &mut out);
        write_number(self.block.len() as u64, &mut out);
        out.extend_from_slice(&self.block);
        if !body.is_empty() {
            write_number(DATA, &mut out);
            write_number(body.len() as u64, &mut out);
            out.extend_from_slice(body);
        }
        let stream = &mut self.streams[slot];
        stream.id = Some(id);
        stream.answer.reset();
        stream.rest.clear();
        let sent = self.write(id, &out);
        self.streams[slot].rest.extend_from_slice(&out[sent..]);
        let length = out.len();
        self.out = out;
        length
    }

    /// Write as much on a stream as QUIC accepts now, and end it after all; return how much.
    fn write(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let mut stream = self.quic.connection.send_stream(id);
        let mut sent = 0;
        // Only a refused write is followed by an event once there is room.
        while sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(length) => sent += length,
                Err(_) => return sent,
            }
        }
        // It is open.
        let _ = stream.finish();
        sent
    }

    /// Continue to send a request.
    fn continue_sending(&mut self, id: StreamId) {
        let Some(slot) = self.slot(id) else {
            return;
        };
        let mut rest = std::mem::take(&mut self.streams[slot].rest);
        if !rest.is_empty() {
            let sent = self.write(id, &rest);
            rest.drain(..sent);
        }
        self.streams[slot].rest = rest;
    }

    /// Cancel a request.
    pub(crate) fn cancel(&mut self, slot: usize) {
        if let Some(id) = self.streams[slot].id {
            // Either direction may be over.
            let _ = self.quic.connection.recv_stream(id).stop(REQUEST_CANCELLED);
            let _ = self
                .quic
                .connection
                .send_stream(id)
                .reset(REQUEST_CANCELLED);
            self.free(slot);
        }
    }

    // ---- answers ----

    /// Parse what was received.
    pub(crate) fn process(&mut self, sink: &mut impl Sink) -> Result<(), Broken> {
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.greet();
                }
                Event::ConnectionLost { reason } => return Err(Broken::Lost(reason)),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = self.quic.connection.streams().accept(Dir::Uni) {
                        self.server_streams.push((id, ServerStream::default()));
                        self.read_server_stream(id, sink)?;
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    if id.initiator() == Side::Client {
                        self.read_answer(id, sink)?;
                    } else {
                        self.read_server_stream(id, sink)?;
                    }
                }
                Event::Stream(StreamEvent::Writable { id }) => self.continue_sending(id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => {
                    // The server needs no more of the request.
                    if let Some(slot) = self.slot(id) {
                        self.streams[slot].rest.clear();
                    }
                    let _ = self.quic.connection.send_stream(id).reset(NO_ERROR);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Open our control stream, and send our settings: all have their defaults.
    fn greet(&mut self) {
        if let Some(id) = self.quic.connection.streams().open(Dir::Uni) {
            let mut out = Vec::new();
            for number in [CONTROL_STREAM, SETTINGS, 0] {
                write_number(number, &mut out);
            }
            // A server that leaves no room for three bytes cannot be greeted.
            let _ = self.quic.connection.send_stream(id).write(&out);
        }
    }

    fn read_answer(&mut self, id: StreamId, sink: &mut impl Sink) -> Result<(), Fault> {
        let Some(slot) = self.slot(id) else {
            return Ok(());
        };
        let stream = &mut self.streams[slot];
        let mut receiving = self.quic.connection.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else {
            return Ok(());
        };
        let mut reading = Reading {
            slot,
            decoder: &mut self.decoder,
            head: &mut self.head,
            sink: &mut *sink,
        };
        let read = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => stream.answer.receive(&chunk.bytes, &mut reading)?,
                Ok(None) => break Read::Ended,
                Err(ReadError::Blocked) => break Read::Waits,
                Err(ReadError::Reset(code)) => break Read::Reset(code),
            }
        };
        drop(chunks);
        if matches!(read, Read::Waits) {
            return Ok(());
        }
        let problem = stream.answer.problem();
        if !stream.rest.is_empty() {
            // The server answered before it had the whole body, and does not need the rest.
            let _ = self
                .quic
                .connection
                .send_stream(id)
                .reset(REQUEST_CANCELLED);
        }
        self.free(slot);
        match (read, problem) {
            (Read::Reset(REQUEST_REJECTED), _) => sink.unprocessed(slot, Kind::StreamRefused),
            (Read::Reset(code), _) => {
                let message = format!("the server aborted an answer ({})", error_name(code));
                sink.failed(slot, Fault::new(Kind::StreamReset, message));
            }
            (_, Some(fault)) => sink.failed(slot, fault),
            (_, None) => sink.end(slot),
        }
        Ok(())
    }

    fn read_server_stream(&mut self, id: StreamId, sink: &mut impl Sink) -> Result<(), Fault> {
        let Some(place) = self.server_streams.iter().position(|(its, _)| *its == id) else {
            return Ok(());
        };
        let stream = &mut self.server_streams[place].1;
        let mut receiving = self.quic.connection.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else {
            return Ok(());
        };
        let mut leave = None;
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => leave = stream.receive(&chunk.bytes)?.or(leave),
                Err(ReadError::Blocked) => break false,
                Ok(None) | Err(ReadError::Reset(_)) => break true,
            }
        };
        drop(chunks);
        if ended {
            if stream.is_critical() {
                return Err(garbage("the server closed its control stream"));
            }
            self.server_streams.swap_remove(place);
        }
        if let Some(first) = leave {
            self.take_leave(first, sink);
        }
        Ok(())
    }

    fn take_leave(&mut self, first: u64, sink: &mut impl Sink) {
        self.leave = Some(first);
        for slot in 0..self.streams.len() {
            if self.streams[slot]
                .id
                .is_some_and(|id| u64::from(id) >= first)
            {
                self.cancel(slot);
                sink.unprocessed(slot, Kind::Goaway);
            }
        }
    }

    /// Handle the end of the connection: decide what happens to requests under way, and return
    /// whether one of them failed.
    pub(crate) fn finish(&mut self, fault: &Fault, sink: &mut impl Sink) -> bool {
        let failed = !self.is_idle();
        for slot in 0..self.streams.len() {
            let stream = &self.streams[slot];
            if stream.id.is_none() {
                continue;
            }
            let mut fault = fault.clone();
            if fault.kind == Kind::Closed && stream.answer.begun {
                fault.kind = Kind::Truncated;
                "the server closed the connection in the middle of an answer"
                    .clone_into(&mut fault.message);
            } else if fault.kind == Kind::Closed && self.takes_no_more() {
                fault.kind = Kind::Goaway;
                "the server closed the connection (GOAWAY) without answering a request that it had \
                 accepted"
                    .clone_into(&mut fault.message);
            }
            self.free(slot);
            sink.failed(slot, fault);
        }
        failed
    }

    // ---- streams ----

    fn place(&self, id: StreamId) -> usize {
        // The lower bits are enough.
        usize::try_from(id.index() & (self.slots.len() as u64 - 1)).unwrap_or(0)
    }

    fn slot(&self, id: StreamId) -> Option<usize> {
        let (index, slot) = self.slots[self.place(id)];
        if index == id.index() {
            return (self.streams[slot].id == Some(id)).then_some(slot);
        }
        self.streams.iter().position(|it| it.id == Some(id))
    }

    fn free(&mut self, slot: usize) {
        self.streams[slot].id = None;
        self.streams[slot].rest.clear();
        self.active -= 1;
    }
}

fn garbage(message: impl Into<String>) -> Fault {
    Fault::new(Kind::Garbage, message)
}

fn long_head() -> Fault {
    Fault::new(
        Kind::LongHead,
        "the headers of an answer take more than 256 KiB",
    )
}

#[cfg(test)]
mod tests;
