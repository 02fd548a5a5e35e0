//! HTTP/2 (RFC 9113) from the client's side: sends requests, parses answers. Pure: bytes in, bytes
//! out.
//!
//! Input is parsed frame by frame; body data is passed on as it arrives. Our receive windows are so
//! large that they rarely need updates; what we send respects the server's windows.

mod frames;
mod sending;

use super::fault::{Fault, FieldNames, Head, Kind, Sink};
use super::hpack::{DecodeError, Decoder, Encoder};
use frames::{
    ACK, END_HEADERS, END_STREAM, FrameHead, HEAD_BYTES, PADDED, PRIORITY, Type, error_name, number,
};

/// The longest frame that is accepted: the default setting.
const LONGEST_FRAME: usize = 16_384;
/// The most bytes of a header block before decompression.
const LONGEST_BLOCK: usize = 256 * 1024;
/// Bytes that a stream may receive before its window needs an update.
const WINDOW: u32 = 1 << 30;
/// The largest stream number, and the largest window.
const GREATEST: u32 = i32::MAX as u32;

/// One connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    encoder: Encoder,
    decoder: Decoder,
    /// The state of each slot.
    streams: Vec<Stream>,
    /// Maps stream numbers to slots, until a later stream uses the slot.
    slots: Vec<(u32, usize)>,
    next_stream: u32,
    active: usize,
    /// The streams among them whose answer has begun.
    begun: usize,
    /// How many streams the server permits at once.
    most_active: usize,
    /// The server's windows: for the connection, and initially for a stream.
    send_window: i64,
    stream_window: i64,
    longest_sent: usize,
    /// Slots whose body could not be sent completely.
    blocked: Vec<usize>,
    /// Received bytes that were not returned to the server's window yet.
    received: u32,
    /// The header block that is being received.
    block: Vec<u8>,
    block_of: Option<(u32, bool)>,
    /// Number of frames of the header block so far.
    block_frames: usize,
    /// The DATA frame that is being received.
    data: Option<Data>,
    /// Whether the server's settings were received.
    greeted: bool,
    /// The last stream that the server will process, and why, after GOAWAY.
    leave: Option<(u32, u32)>,
    head: Head,
}

/// The HTTP/2 state of a slot.
#[derive(Debug, Default)]
struct Stream {
    /// Stream number; 0 if there is no request.
    id: u32,
    answered: bool,
    received: u32,
    window: i64,
    body: Vec<u8>,
    sent: usize,
}

/// A DATA frame that is incomplete.
#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    left: usize,
    padding: usize,
    ends: bool,
}

impl Http2 {
    /// Create the state of a connection with so many slots, for a load with so many lasting
    /// headers. `lists` names the fields of answers to keep.
    pub(crate) fn new(slots: usize, lasting: usize, lists: FieldNames) -> Self {
        Self {
            encoder: Encoder::new(lasting),
            decoder: Decoder::new(lists),
            streams: (0..slots).map(|_| Stream::default()).collect(),
            slots: vec![(0, 0); (2 * slots).next_power_of_two()],
            next_stream: 1,
            active: 0,
            begun: 0,
            most_active: usize::MAX,
            send_window: 65_535,
            stream_window: 65_535,
            longest_sent: LONGEST_FRAME,
            blocked: Vec::new(),
            received: 0,
            block: Vec::new(),
            block_of: None,
            block_frames: 0,
            data: None,
            greeted: false,
            leave: None,
            head: Head::default(),
        }
    }

    /// Whether the server's settings were received.
    pub(crate) fn greeted(&self) -> bool {
        self.greeted
    }

    /// Whether another request may be sent now.
    pub(crate) fn has_room(&self) -> bool {
        self.greeted && self.active < self.most_active && !self.is_leaving()
    }

    /// Whether the connection takes no more requests.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leave.is_some() || self.next_stream > GREATEST
    }

    /// Whether the server has announced that the connection takes no more requests.
    pub(crate) fn takes_no_more(&self) -> bool {
        self.leave.is_some()
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.active == 0
    }

    /// Whether an answer is incomplete.
    pub(crate) fn is_midway(&self) -> bool {
        self.begun > 0
    }

    /// The slots whose answers have begun.
    pub(crate) fn midway(&self) -> impl Iterator<Item = usize> {
        let streams = self.streams.iter().enumerate();
        streams
            .filter(|(_, stream)| stream.id != 0 && stream.answered)
            .map(|(slot, _)| slot)
    }

    /// Parse received bytes; return how many were used. Pass the rest again, followed by what
    /// arrives later.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Result<usize, Fault> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if let Some(data) = self.data {
                let taken = self.take_data(data, rest, sink, out);
                if taken == 0 && self.data.is_some() {
                    return Ok(used);
                }
                used += taken;
                continue;
            }
            let Some(head) = FrameHead::read(rest) else {
                return Ok(used);
            };
            if !self.greeted && (head.kind != Type::Settings || head.flags & ACK != 0) {
                return Err(not_spoken(rest));
            }
            if head.length > LONGEST_FRAME {
                return Err(garbage("a frame is longer than agreed"));
            }
            let body = &rest[HEAD_BYTES..];
            if head.kind == Type::Data {
                let begun = self.begin_data(head, body)?;
                let Some(begun) = begun else {
                    return Ok(used);
                };
                used += HEAD_BYTES + begun;
                continue;
            }
            let Some(payload) = body.get(..head.length) else {
                return Ok(used);
            };
            used += HEAD_BYTES + head.length;
            self.take_frame(head, payload, sink, out)?;
        }
    }

    /// Handle the end of the connection: decide what happens to requests under way, and return whether one of them
    /// failed.
    pub(crate) fn finish(&mut self, fault: &Fault, sink: &mut impl Sink) -> bool {
        let failed = !self.is_idle();
        for slot in 0..self.streams.len() {
            let stream = &self.streams[slot];
            if stream.id == 0 {
                continue;
            }
            let mut fault = fault.clone();
            if fault.kind == Kind::Closed && stream.answered {
                fault.kind = Kind::Truncated;
                "the server closed the connection in the middle of an answer"
                    .clone_into(&mut fault.message);
            }
            if let (Kind::Closed, Some((_, code))) = (fault.kind, self.leave) {
                fault.kind = Kind::Goaway;
                fault.message = format!(
                    "the server closed the connection (GOAWAY, {}) without answering a request \
                    that it had accepted",
                    error_name(code)
                );
            }
            self.free(slot);
            sink.failed(slot, fault);
        }
        failed
    }

    // ---- frames ----

    fn take_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if self.block_of.is_some() && head.kind != Type::Continuation {
            return Err(garbage("a header block was interrupted"));
        }
        match head.kind {
            Type::Headers => {
                let block = without_padding(head, payload)?;
                let skipped = if head.flags & PRIORITY != 0 { 5 } else { 0 };
                let block = block.get(skipped..);
                let block = block.ok_or_else(|| garbage("a HEADERS frame is too short"))?;
                self.take_headers(head, block, sink, out)
            }
            Type::Continuation => {
                let Some((stream, ends)) = self.block_of else {
                    return Err(garbage(
                        "a CONTINUATION frame without a header block before it",
                    ));
                };
                if head.stream != stream {
                    return Err(garbage("a header block continues on another stream"));
                }
                self.block.extend_from_slice(payload);
                self.block_frames += 1;
                // Empty CONTINUATION frames add nothing, and could arrive without end.
                if self.block.len() + self.block_frames * HEAD_BYTES > LONGEST_BLOCK {
                    return Err(long_head());
                }
                if head.flags & END_HEADERS != 0 {
                    self.block_of = None;
                    let block = std::mem::take(&mut self.block);
                    let result = self.take_block(stream, &block, ends, sink, out);
                    self.block = block;
                    self.block.clear();
                    return result;
                }
                Ok(())
            }
            Type::Settings => self.take_settings(head, payload, out),
            Type::Ping => {
                if payload.len() != 8 {
                    return Err(garbage("a PING frame is not 8 bytes long"));
                }
                if head.flags & ACK == 0 {
                    FrameHead::new(8, Type::Ping, ACK, 0).write(out);
                    out.extend_from_slice(payload);
                }
                Ok(())
            }
            Type::Reset => {
                let code =
                    number(payload).ok_or_else(|| garbage("a RST_STREAM frame is too short"))?;
                self.take_reset(head.stream, code, sink);
                Ok(())
            }
            Type::Goaway => {
                let (Some(last), Some(code)) = (number(payload), payload.get(4..).and_then(number))
                else {
                    return Err(garbage("a GOAWAY frame is too short"));
                };
                self.take_leave(last & GREATEST, code, sink);
                Ok(())
            }
            Type::WindowUpdate => {
                let step =
                    number(payload).ok_or_else(|| garbage("a WINDOW_UPDATE frame is too short"))?;
                self.widen(head.stream, i64::from(step & GREATEST), out)
            }
            Type::PushPromise => Err(garbage(
                "the server pushed a resource, although push is disabled",
            )),
            Type::Data | Type::Priority | Type::Unknown => Ok(()),
        }
    }

    fn take_headers(
        &mut self,
        head: FrameHead,
        block: &[u8],
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let ends = head.flags & END_STREAM != 0;
        if head.flags & END_HEADERS != 0 {
            return self.take_block(head.stream, block, ends, sink, out);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.block_of = Some((head.stream, ends));
        self.block_frames = 1;
        Ok(())
    }

    fn take_block(
        &mut self,
        stream: u32,
        block: &[u8],
        ends: bool,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let fields = self.decoder.decode(block).map_err(|error| match error {
            DecodeError::Damaged => garbage(error.to_string()),
            DecodeError::TooLong => long_head(),
        })?;
        self.head.status = fields.status;
        self.head.wire_bytes = block.len();
        self.head.plain_bytes = fields.plain_bytes;
        self.head.length = fields.length;
        self.head.fields.clone_from(&fields.listed);
        // For a stream that has ended, only the effect on the table counts.
        let Some(slot) = self.slot(stream) else {
            return Ok(());
        };
        if !self.streams[slot].answered {
            match self.head.status {
                0 => return Err(garbage("an answer has no status")),
                // An interim response: the final answer follows.
                ..200 if !ends => return Ok(()),
                _ => {}
            }
            self.streams[slot].answered = true;
            self.begun += 1;
            sink.head(slot, &self.head);
        }
        if ends {
            self.end(slot, sink, out);
        }
        Ok(())
    }

    fn begin_data(&mut self, head: FrameHead, body: &[u8]) -> Result<Option<usize>, Fault> {
        if head.stream == 0 {
            return Err(garbage("data belongs to no stream"));
        }
        let (padding, skipped) = if head.flags & PADDED == 0 {
            (0, 0)
        } else {
            let Some(&padding) = body.first() else {
                return Ok(None);
            };
            (usize::from(padding), 1)
        };
        let Some(left) = head.length.checked_sub(skipped + padding) else {
            return Err(garbage("a frame has more padding than length"));
        };
        self.received += u32::try_from(head.length).unwrap_or(0);
        if self.received > WINDOW {
            return Err(garbage("the server sends more than the window permits"));
        }
        self.data = Some(Data {
            stream: head.stream,
            left,
            padding,
            ends: head.flags & END_STREAM != 0,
        });
        Ok(Some(skipped))
    }

    /// Process the part of a DATA frame that was received; return how many bytes that were.
    fn take_data(
        &mut self,
        mut data: Data,
        bytes: &[u8],
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> usize {
        let slot = self.slot(data.stream);
        let content = data.left.min(bytes.len());
        let padding = data.padding.min(bytes.len() - content);
        data.left -= content;
        data.padding -= padding;
        if let Some(slot) = slot {
            if content > 0 {
                sink.body(slot, &bytes[..content]);
            }
            self.streams[slot].received += u32::try_from(content + padding).unwrap_or(0);
        }
        if data.left > 0 || data.padding > 0 {
            self.data = Some(data);
            return content + padding;
        }
        self.data = None;
        if let Some(slot) = slot {
            if data.ends {
                self.end(slot, sink, out);
            } else if self.streams[slot].received >= WINDOW / 2 {
                let received = std::mem::take(&mut self.streams[slot].received);
                FrameHead::new(4, Type::WindowUpdate, 0, data.stream).write(out);
                out.extend_from_slice(&received.to_be_bytes());
            }
        }
        if self.received >= WINDOW / 2 {
            let received = std::mem::take(&mut self.received);
            FrameHead::new(4, Type::WindowUpdate, 0, 0).write(out);
            out.extend_from_slice(&received.to_be_bytes());
        }
        content + padding
    }

    fn take_reset(&mut self, stream: u32, code: u32, sink: &mut impl Sink) {
        let Some(slot) = self.slot(stream) else {
            return;
        };
        self.free(slot);
        if code == frames::REFUSED_STREAM {
            sink.unprocessed(slot, Kind::StreamRefused);
            return;
        }
        let message = format!("the server aborted an answer ({})", error_name(code));
        sink.failed(slot, Fault::new(Kind::StreamReset, message));
    }

    fn take_leave(&mut self, last: u32, code: u32, sink: &mut impl Sink) {
        self.leave = Some((last, code));
        for slot in 0..self.streams.len() {
            if self.streams[slot].id > last {
                self.free(slot);
                sink.unprocessed(slot, Kind::Goaway);
            }
        }
    }

    // ---- streams ----

    fn end(&mut self, slot: usize, sink: &mut impl Sink, out: &mut Vec<u8>) {
        let stream = &self.streams[slot];
        if stream.sent < stream.body.len() {
            // The server answered before it had the whole body, and does not need the rest.
            FrameHead::new(4, Type::Reset, 0, stream.id).write(out);
            out.extend_from_slice(&frames::CANCEL.to_be_bytes());
        }
        let answered = stream.answered;
        self.free(slot);
        if answered {
            sink.end(slot);
        } else {
            sink.failed(slot, garbage("an answer has no headers"));
        }
    }

    fn slot(&self, stream: u32) -> Option<usize> {
        if stream == 0 {
            return None;
        }
        let place = (stream >> 1) as usize & (self.slots.len() - 1);
        let (id, slot) = self.slots[place];
        if id == stream {
            return (self.streams[slot].id == stream).then_some(slot);
        }
        self.streams.iter().position(|it| it.id == stream)
    }

    fn free(&mut self, slot: usize) {
        let stream = &mut self.streams[slot];
        stream.id = 0;
        stream.body.clear();
        stream.sent = 0;
        self.active -= 1;
        self.begun -= usize::from(std::mem::take(&mut stream.answered));
    }
}

fn without_padding(head: FrameHead, payload: &[u8]) -> Result<&[u8], Fault> {
    if head.flags & PADDED == 0 {
        return Ok(payload);
    }
    payload
        .split_first()
        .and_then(|(&padding, rest)| rest.get(..rest.len().checked_sub(usize::from(padding))?))
        .ok_or_else(|| garbage("a frame has more padding than length"))
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

fn not_spoken(bytes: &[u8]) -> Fault {
    garbage(if bytes.starts_with(b"HTTP/1") {
        "the server answers in HTTP/1, not in HTTP/2; leave out --h2"
    } else {
        "the server's first bytes are not HTTP/2; is the port right?"
    })
}

#[cfg(test)]
mod tests;
