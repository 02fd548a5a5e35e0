//! The frames of one answer, as its stream delivers them. Pure.

use super::frames::{
    CANCEL_PUSH, DATA, GOAWAY, HEADERS, MAX_PUSH_ID, OF_HTTP_2, PUSH_PROMISE, SETTINGS, read_number,
};
use super::{garbage, long_head};
use crate::http::fault::{Fault, Head, Kind, Sink};
use crate::http::hpack::DecodeError;
use crate::http::qpack::Decoder;

/// The most bytes of a header block before decompression.
const LONGEST_BLOCK: u64 = 256 * 1024;

/// What was read of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Whether its final head was received.
    pub(super) begun: bool,
    /// Whether the headers after its body were received.
    trailed: bool,
    /// A frame that is incomplete, unless its content is passed on as it arrives.
    pending: Vec<u8>,
    /// Bytes of the current frame that are passed on as they arrive, and whether they belong to the
    /// body; others are ignored.
    left: u64,
    is_body: bool,
}

/// Where the parts of an answer go.
pub(super) struct Reading<'a, S> {
    pub(super) slot: usize,
    pub(super) decoder: &'a mut Decoder,
    pub(super) head: &'a mut Head,
    pub(super) sink: &'a mut S,
}

impl Answer {
    /// Forget what was read, for another answer.
    pub(super) fn reset(&mut self) {
        self.pending.clear();
        *self = Self {
            pending: std::mem::take(&mut self.pending),
            ..Self::default()
        };
    }

    /// Parse received bytes.
    pub(super) fn receive<S: Sink>(
        &mut self,
        bytes: &[u8],
        reading: &mut Reading<'_, S>,
    ) -> Result<(), Fault> {
        if self.pending.is_empty() {
            let used = self.parse(bytes, reading)?;
            self.pending.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        let used = self.parse(&joined, reading)?;
        joined.drain(..used);
        self.pending = joined;
        Ok(())
    }

    /// The stream has ended: return what is wrong with the answer, if anything.
    pub(super) fn problem(&self) -> Option<Fault> {
        if !self.pending.is_empty() || self.left > 0 {
            let message = "the server ended an answer in the middle of a frame";
            return Some(Fault::new(Kind::Truncated, message));
        }
        (!self.begun).then(|| garbage("an answer has no headers"))
    }

    /// Parse bytes; return how many were used.
    fn parse<S: Sink>(
        &mut self,
        bytes: &[u8],
        reading: &mut Reading<'_, S>,
    ) -> Result<usize, Fault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.left > 0 {
                let length = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(rest.len());
                let (content, behind) = rest.split_at(length);
                if self.is_body {
                    reading.sink.body(reading.slot, content);
                }
                self.left -= length as u64;
                rest = behind;
                continue;
            }
            let mut behind = rest;
            let (Some(kind), Some(length)) = (read_number(&mut behind), read_number(&mut behind))
            else {
                break;
            };
            match kind {
                HEADERS => {
                    if length > LONGEST_BLOCK {
                        return Err(long_head());
                    }
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    let Some((block, behind)) = behind.split_at_checked(length) else {
                        break;
                    };
                    self.take_block(block, reading)?;
                    rest = behind;
                    continue;
                }
                DATA if !self.begun => return Err(garbage("data came before an answer's headers")),
                DATA if self.trailed => return Err(garbage("data came after an answer's end")),
                SETTINGS | GOAWAY | CANCEL_PUSH | MAX_PUSH_ID => {
                    return Err(garbage("a frame of the connection came within an answer"));
                }
                PUSH_PROMISE => {
                    return Err(garbage(
                        "the server pushed a resource, although push is disabled",
                    ));
                }
                kind if OF_HTTP_2.contains(&kind) => {
                    return Err(garbage("a frame of HTTP/2 came within an answer"));
                }
                _ => {}
            }
            self.is_body = kind == DATA;
            self.left = length;
            rest = behind;
        }
        Ok(bytes.len() - rest.len())
    }

    fn take_block<S: Sink>(
        &mut self,
        block: &[u8],
        reading: &mut Reading<'_, S>,
    ) -> Result<(), Fault> {
        let fields = reading.decoder.decode(block).map_err(|error| match error {
            DecodeError::Damaged => garbage(error.to_string()),
            DecodeError::TooLong => long_head(),
        })?;
        if self.begun {
            if self.trailed {
                return Err(garbage("headers came after an answer's end"));
            }
            self.trailed = true;
            return Ok(());
        }
        match fields.status {
            0 => return Err(garbage("an answer has no status")),
            // An interim response: the final answer follows.
            1..200 => return Ok(()),
            _ => {}
        }
        let head = &mut *reading.head;
        head.status = fields.status;
        head.wire_bytes = block.len();
        head.plain_bytes = fields.plain_bytes;
        head.length = fields.length;
        head.fields.clone_from(&fields.listed);
        self.begun = true;
        reading.sink.head(reading.slot, head);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uncork_script::Prng;

    use super::super::frames::write_number;
    use super::*;
    use crate::http::fault::FieldNames;
    use crate::http::recording_sink::{RecordingSink, SinkCall};

    fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_number(kind, &mut bytes);
        write_number(content.len() as u64, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    }

    /// Parse bytes in pieces of this size, to the end of the stream.
    fn read(bytes: &[u8], piece: usize) -> Result<Vec<SinkCall>, Kind> {
        let (mut answer, mut saw) = (Answer::default(), RecordingSink::default());
        let mut reading = Reading {
            slot: 3,
            decoder: &mut Decoder::new(FieldNames::All),
            head: &mut Head::default(),
            sink: &mut saw,
        };
        for part in bytes.chunks(piece) {
            let received = answer.receive(part, &mut reading);
            received.map_err(|fault| fault.kind)?;
        }
        match answer.problem() {
            Some(fault) => Err(fault.kind),
            None => Ok(saw.all),
        }
    }

    /// `:status: 200` and `:status: 103`, as the static table has them.
    const OK: &[u8] = &[0, 0, 0b1101_1001];
    const EARLY: &[u8] = &[0, 0, 0b1101_1000];

    #[test]
    fn answers_arrive_in_pieces_of_any_size() {
        let bytes = [
            frame(0x21, b"reserved"),
            frame(HEADERS, EARLY),
            frame(HEADERS, OK),
            frame(DATA, b"hello "),
            frame(0x40, &[7; 300]),
            frame(DATA, b""),
            frame(DATA, &[b'x'; 100]),
            frame(HEADERS, b"\x00\x00\x23abc\x01d"),
        ]
        .concat();
        let body = [&b"hello "[..], &[b'x'; 100]].concat();
        for piece in [1, 2, 3, 7, 100, bytes.len()] {
            let expected = vec![SinkCall::Head(3, 200), SinkCall::Body(3, body.clone())];
            assert_eq!(read(&bytes, piece), Ok(expected));
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let ok = frame(HEADERS, OK);
        for (frames, kind) in [
            (vec![], Kind::Garbage),
            (vec![frame(HEADERS, EARLY)], Kind::Garbage),
            (vec![frame(HEADERS, &[0, 0])], Kind::Garbage),
            (vec![frame(HEADERS, &[9, 0])], Kind::Garbage),
            (vec![frame(DATA, b"x")], Kind::Garbage),
            (vec![ok.clone(), frame(SETTINGS, b"")], Kind::Garbage),
            (vec![ok.clone(), frame(PUSH_PROMISE, b"")], Kind::Garbage),
            (vec![ok.clone(), frame(0x6, b"12345678")], Kind::Garbage),
            (
                vec![ok.clone(), ok.clone(), frame(DATA, b"x")],
                Kind::Garbage,
            ),
            (vec![ok.clone(), ok.clone(), ok.clone()], Kind::Garbage),
            (vec![ok.clone(), vec![0, 5, b'x']], Kind::Truncated),
            (vec![vec![1]], Kind::Truncated),
            (vec![frame(HEADERS, &vec![0; 300_000])], Kind::LongHead),
        ] {
            for piece in [1, 10_000] {
                assert_eq!(read(&frames.concat(), piece), Err(kind), "{kind:?}");
            }
        }
    }

    #[test]
    fn random_bytes_do_no_harm() {
        let mut random = Prng::new(3);
        for _ in 0..20_000 {
            let length = random.up_to(40);
            let bytes = (0..length).map(|_| random.bits().to_le_bytes()[0] & 0b0100_1111);
            let bytes: Vec<u8> = frame(HEADERS, OK).into_iter().chain(bytes).collect();
            let _ = read(&bytes, 5);
        }
    }
}
