//! What a client sends on an HTTP/2 connection: requests, within the server's windows, and
//! settings.

use super::frames::{
    self, ACK, END_HEADERS, END_STREAM, FrameHead, HEAD_BYTES, PREFACE, Type, number,
};
use super::{GREATEST, Http2, WINDOW, garbage};
use crate::http::fault::Fault;
use crate::http::hpack::Header;

/// The largest possible increment of the connection's window.
const MORE: u32 = WINDOW - 65_535;

impl Http2 {
    /// Append the connection preface and our settings.
    pub(crate) fn open(out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        let settings = [
            (frames::ENABLE_PUSH, 0),
            (frames::INITIAL_WINDOW_SIZE, WINDOW),
        ];
        FrameHead::new(6 * settings.len(), Type::Settings, 0, 0).write(out);
        for (name, value) in settings {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&u32::to_be_bytes(value));
        }
        FrameHead::new(4, Type::WindowUpdate, 0, 0).write(out);
        out.extend_from_slice(&MORE.to_be_bytes());
    }

    /// Append a request on a free slot; the connection must be ready for another request.
    pub(crate) fn send<'a>(
        &mut self,
        slot: usize,
        headers: impl Iterator<Item = Header<'a>>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) {
        let id = self.next_stream;
        self.next_stream += 2;
        self.active += 1;
        let place = (id >> 1) as usize & (self.slots.len() - 1);
        self.slots[place] = (id, slot);
        let stream = &mut self.streams[slot];
        stream.id = id;
        stream.answered = false;
        stream.received = 0;
        stream.window = self.stream_window;
        stream.sent = 0;
        stream.body.clear();
        stream.body.extend_from_slice(body);
        let start = out.len();
        let ends = if body.is_empty() { END_STREAM } else { 0 };
        FrameHead::new(0, Type::Headers, ends | END_HEADERS, id).write(out);
        self.encoder.begin(out);
        for header in headers {
            self.encoder.write(header, out);
        }
        self.split(start, id, ends, out);
        if !body.is_empty() && !self.send_body(slot, out) {
            self.blocked.push(slot);
        }
    }

    /// Write the length of a header block into its frame; split a block that is longer than a
    /// frame.
    fn split(&self, start: usize, id: u32, ends: u8, out: &mut Vec<u8>) {
        let length = out.len() - start - HEAD_BYTES;
        if length <= self.longest_sent {
            let length = u32::try_from(length).unwrap_or(0).to_be_bytes();
            out[start..start + 3].copy_from_slice(&length[1..]);
            return;
        }
        let block = out.split_off(start + HEAD_BYTES);
        out.truncate(start);
        let parts = block.chunks(self.longest_sent);
        let last = parts.len() - 1;
        for (number, part) in parts.enumerate() {
            let kind = if number == 0 {
                Type::Headers
            } else {
                Type::Continuation
            };
            let flags = if number == 0 { ends } else { 0 };
            let whole = if number == last { END_HEADERS } else { 0 };
            FrameHead::new(part.len(), kind, flags | whole, id).write(out);
            out.extend_from_slice(part);
        }
    }

    /// Send as much of a slot's body as the windows permit; return whether that was all.
    fn send_body(&mut self, slot: usize, out: &mut Vec<u8>) -> bool {
        let stream = &mut self.streams[slot];
        while stream.id != 0 && stream.sent < stream.body.len() {
            let window = self.send_window.min(stream.window).max(0);
            let rest = stream.body.len() - stream.sent;
            let length = rest
                .min(self.longest_sent)
                .min(usize::try_from(window).unwrap_or(0));
            if length == 0 {
                return false;
            }
            let flags = if length == rest { END_STREAM } else { 0 };
            FrameHead::new(length, Type::Data, flags, stream.id).write(out);
            out.extend_from_slice(&stream.body[stream.sent..stream.sent + length]);
            stream.sent += length;
            stream.window -= i64::try_from(length).unwrap_or(0);
            self.send_window -= i64::try_from(length).unwrap_or(0);
        }
        true
    }

    fn send_blocked(&mut self, out: &mut Vec<u8>) {
        let blocked = std::mem::take(&mut self.blocked);
        for slot in blocked {
            if !self.send_body(slot, out) {
                self.blocked.push(slot);
            }
        }
    }

    /// Cancel a request, by `RST_STREAM`.
    pub(crate) fn cancel(&mut self, slot: usize, out: &mut Vec<u8>) {
        let id = self.streams[slot].id;
        if id != 0 {
            FrameHead::new(4, Type::Reset, 0, id).write(out);
            out.extend_from_slice(&frames::CANCEL.to_be_bytes());
            self.free(slot);
        }
    }

    // ---- what the server says of windows and settings ----

    pub(super) fn widen(&mut self, id: u32, step: i64, out: &mut Vec<u8>) -> Result<(), Fault> {
        let window = match id {
            0 => &mut self.send_window,
            id => match self.slot(id) {
                Some(slot) => &mut self.streams[slot].window,
                None => return Ok(()),
            },
        };
        *window += step;
        if *window > i64::from(GREATEST) {
            return Err(garbage(
                "the server opened a flow-control window beyond its limit",
            ));
        }
        self.send_blocked(out);
        Ok(())
    }

    pub(super) fn take_settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if head.flags & ACK != 0 {
            return Ok(());
        }
        if !payload.len().is_multiple_of(6) {
            return Err(garbage("the server's settings are damaged"));
        }
        for setting in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([setting[0], setting[1]]);
            let value = number(&setting[2..]).unwrap_or(0);
            self.set(name, value)?;
        }
        self.greeted = true;
        FrameHead::new(0, Type::Settings, ACK, 0).write(out);
        self.send_blocked(out);
        Ok(())
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Fault> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match name {
            frames::HEADER_TABLE_SIZE => self.encoder.resize(size),
            frames::MAX_CONCURRENT_STREAMS => self.most_active = size,
            frames::MAX_FRAME_SIZE if (16_384..=16_777_215).contains(&value) => {
                self.longest_sent = size;
            }
            frames::INITIAL_WINDOW_SIZE if value <= GREATEST => {
                let step = i64::from(value) - self.stream_window;
                self.stream_window += step;
                for stream in &mut self.streams {
                    stream.window += step;
                }
            }
            frames::MAX_FRAME_SIZE | frames::INITIAL_WINDOW_SIZE => {
                return Err(garbage("the server's settings are out of range"));
            }
            _ => {}
        }
        Ok(())
    }
}
