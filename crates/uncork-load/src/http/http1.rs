//! HTTP/1.1 (RFC 9112) from the client's side: parses answers, in the order of the requests. Pure.

mod chunks;

use std::collections::VecDeque;

use super::fault::{Fault, FieldNames, Head, Kind, Sink};
use chunks::Chunks;

/// The longest head of an answer that is accepted.
pub(crate) const LONGEST_HEAD: usize = 256 * 1024;
/// The most headers that an answer may have.
const MOST_HEADERS: usize = 256;

/// One connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    /// The requests under way, the oldest first: their slots, and whether they request a head only.
    expected: VecDeque<(usize, bool)>,
    state: State,
    /// Whether the server has announced that this answer is the last.
    last: bool,
    /// The fields that are requested.
    lists: FieldNames,
    /// The last head and its parsed form. Answers are often identical to the byte.
    known: Vec<u8>,
    parsed: Parsed,
}

/// What to parse next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The head of an answer.
    Head,
    /// A body with so many bytes left.
    Length(u64),
    /// A body in chunks.
    Chunks(Chunks),
    /// A body that ends with the connection.
    UntilEnd,
}

/// A parsed head.
#[derive(Debug, Default)]
struct Parsed {
    head: Head,
    framing: Framing,
    /// The connection ends after this answer.
    last: bool,
}

/// How the end of a body is marked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Framing {
    #[default]
    UntilEnd,
    Length(u64),
    Chunks,
}

impl Http1 {
    /// Create the state of a connection; `lists` names the fields of answers to keep.
    pub(crate) fn new(lists: FieldNames) -> Self {
        Self {
            expected: VecDeque::new(),
            state: State::Head,
            last: false,
            lists,
            known: Vec::new(),
            parsed: Parsed::default(),
        }
    }

    /// A request was sent on a slot.
    pub(crate) fn sent(&mut self, slot: usize, head_only: bool) {
        self.expected.push_back((slot, head_only));
    }

    /// Whether the server has announced that it takes no more requests.
    pub(crate) fn takes_no_more(&self) -> bool {
        self.last
    }

    /// Whether the last answer is complete.
    pub(crate) fn is_over(&self) -> bool {
        self.last && self.state == State::Head
    }

    /// Whether an answer is incomplete, not counting a part of a head.
    pub(crate) fn is_midway(&self) -> bool {
        self.state != State::Head
    }

    /// The slot whose answer is being received.
    pub(crate) fn midway(&self) -> Option<usize> {
        self.expected.front().map(|&(slot, _)| slot)
    }

    /// Parse received bytes; return how many were used. Pass the rest again, followed by what
    /// arrives later.
    pub(crate) fn receive(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        let mut used = 0;
        while used < bytes.len() {
            if self.is_over() {
                // Whatever follows the last answer is ignored.
                return Ok(bytes.len());
            }
            let rest = &bytes[used..];
            match &mut self.state {
                State::Head => {
                    let taken = self.take_head(rest, sink)?;
                    if taken == 0 {
                        return Ok(used);
                    }
                    used += taken;
                }
                State::Length(left) => {
                    let length = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= length as u64;
                    let over = *left == 0;
                    self.body(&rest[..length], sink);
                    used += length;
                    if over {
                        self.end(sink);
                    }
                }
                State::Chunks(chunks) => {
                    let slot = self.expected.front().map(|&(slot, _)| slot);
                    let taken = chunks.read(rest, |content| {
                        if let Some(slot) = slot {
                            sink.body(slot, content);
                        }
                    });
                    let (taken, over) = taken.map_err(garbage)?;
                    used += taken;
                    if over {
                        self.end(sink);
                    }
                }
                State::UntilEnd => {
                    self.body(rest, sink);
                    used = bytes.len();
                }
            }
        }
        Ok(used)
    }

    /// Handle the end of the connection: decide what happens to requests under way, and return whether one of them
    /// failed. `partial` says whether a part of an answer's head was received.
    pub(crate) fn finish(&mut self, fault: &Fault, partial: bool, sink: &mut impl Sink) -> bool {
        let mut failed = false;
        if self.state == State::UntilEnd && fault.kind == Kind::Closed {
            self.end(sink);
        }
        let begun = partial || self.state != State::Head;
        let dismissed = self.last && !begun;
        self.state = State::Head;
        for (number, (slot, _)) in std::mem::take(&mut self.expected).into_iter().enumerate() {
            if dismissed || (self.last && number > 0) {
                // Requests that were sent after the one with the announced last answer.
                sink.unprocessed(slot, Kind::Closed);
                continue;
            }
            let mut fault = fault.clone();
            if fault.kind == Kind::Closed && begun && number == 0 {
                fault.kind = Kind::Truncated;
                "the server closed the connection in the middle of an answer"
                    .clone_into(&mut fault.message);
            }
            failed = true;
            sink.failed(slot, fault);
        }
        failed
    }

    fn body(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        if let Some(&(slot, _)) = self.expected.front() {
            sink.body(slot, bytes);
        }
    }

    fn end(&mut self, sink: &mut impl Sink) {
        self.state = State::Head;
        if let Some((slot, _)) = self.expected.pop_front() {
            sink.end(slot);
        }
    }

    /// Parse a head; return its length, or 0 if it is incomplete.
    fn take_head(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        let Some(&(slot, head_only)) = self.expected.front() else {
            return Err(garbage("the server sends an answer that was not asked for"));
        };
        if self.known.is_empty() || !bytes.starts_with(&self.known) {
            self.known.clear();
            match http2_frame(bytes) {
                Some(true) => return Err(other_protocol()),
                Some(false) => {}
                None => return Ok(0),
            }
            let Some((parsed, length)) = parse(bytes, &self.lists)? else {
                return Ok(0);
            };
            if parsed.head.status < 200 {
                // An interim response: the final answer follows. No request asks for another
                // protocol.
                if parsed.head.status == 101 {
                    return Err(garbage("the server switched to another protocol"));
                }
                return Ok(length);
            }
            self.parsed = parsed;
            self.known.extend_from_slice(&bytes[..length]);
        }
        let length = self.known.len();
        let parsed = &self.parsed;
        self.last = parsed.last;
        sink.head(slot, &parsed.head);
        let bodiless = head_only || matches!(parsed.head.status, 204 | 304);
        self.state = match parsed.framing {
            _ if bodiless => State::Length(0),
            Framing::Length(length) => State::Length(length),
            Framing::Chunks => State::Chunks(Chunks::default()),
            Framing::UntilEnd => {
                self.last = true;
                State::UntilEnd
            }
        };
        if self.state == State::Length(0) {
            self.end(sink);
        }
        Ok(length)
    }
}

fn parse(bytes: &[u8], lists: &FieldNames) -> Result<Option<(Parsed, usize)>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(long_head()),
        Err(error) => {
            let looks = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
            return Err(garbage(format!(
                "the server's answer is not HTTP/1.1 ({error}; it begins with {looks:?})"
            )));
        }
    };
    let old = response.version == Some(0);
    let mut parsed = Parsed {
        head: Head {
            status: response.code.unwrap_or(0),
            wire_bytes: length,
            plain_bytes: length,
            length: None,
            fields: Vec::new(),
        },
        framing: Framing::UntilEnd,
        last: old,
    };
    let mut lengths: Option<u64> = None;
    for header in response.headers.iter() {
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            let value = str::from_utf8(header.value).ok();
            let value = value.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length = value.and_then(|text| text.parse().ok());
            let length = length.ok_or_else(|| garbage("a Content-Length is not a number"))?;
            if lengths.is_some_and(|other| other != length) {
                return Err(garbage("an answer has two different lengths"));
            }
            lengths = Some(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if has_token(header.value, "chunked") {
                parsed.framing = Framing::Chunks;
            }
        } else if name.eq_ignore_ascii_case("connection") {
            if has_token(header.value, "close") {
                parsed.last = true;
            } else if old && has_token(header.value, "keep-alive") {
                parsed.last = false;
            }
        }
        if lists.wants(name.as_bytes()) {
            let name = name.to_ascii_lowercase().into_bytes();
            parsed.head.fields.push((name, header.value.to_vec()));
        }
    }
    if let (Framing::UntilEnd, Some(length)) = (parsed.framing, lengths) {
        parsed.framing = Framing::Length(length);
    }
    Ok(Some((parsed, length)))
}

fn has_token(value: &[u8], token: &str) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// Whether bytes begin with the frame that an HTTP/2 server sends first: SETTINGS, or GOAWAY. `None` if
/// there are too few to decide.
fn http2_frame(bytes: &[u8]) -> Option<bool> {
    const HEAD: usize = 9;
    const SETTINGS: u8 = 4;
    const GOAWAY: u8 = 7;
    // No answer of HTTP/1.1 begins with a zero byte, and the first frame is shorter than 64 KiB.
    if bytes.first() != Some(&0) {
        return Some(false);
    }
    let head = bytes.get(..HEAD)?;
    let length = u16::from_be_bytes([head[1], head[2]]);
    let fits = match head[3] {
        SETTINGS => length % 6 == 0,
        GOAWAY => length >= 8,
        _ => false,
    };
    Some(fits && head[4..] == [0; 5])
}

fn other_protocol() -> Fault {
    Fault::new(
        Kind::OtherProtocol,
        "the server answers in HTTP/2, not in HTTP/1.1; use --h2",
    )
}

fn garbage(message: impl Into<String>) -> Fault {
    Fault::new(Kind::Garbage, message)
}

fn long_head() -> Fault {
    Fault::new(
        Kind::LongHead,
        "the head of an answer takes more than 256 KiB, or 256 headers",
    )
}

#[cfg(test)]
mod tests;
