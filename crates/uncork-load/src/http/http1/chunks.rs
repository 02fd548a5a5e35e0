//! Chunked bodies (RFC 9112, section 7.1).

/// The position in a chunked body.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunks {
    state: State,
    /// Bytes of the chunk that are still to come; while its size is read, the digits so far.
    left: u64,
    /// Digits of the size, then bytes of a line, to limit both.
    seen: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    /// After a size, on the same line.
    Extension,
    /// Before the line feed that ends a size's line.
    SizeEnd,
    Content,
    ContentReturn,
    ContentEnd,
    /// In a line after the last chunk: at its beginning, and further on.
    TrailerBegin,
    Trailer,
    /// Before the line feed of the empty line at the end.
    LastEnd,
}

/// The most bytes that extensions and trailers may take.
const LONGEST_LINES: u32 = 64 * 1024;

impl Chunks {
    /// Parse bytes and pass the content on; return how many bytes were used, and whether the body
    /// is complete.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        mut content: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), &'static str> {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::Content {
                let rest = &bytes[at..];
                let length = rest
                    .len()
                    .min(usize::try_from(self.left).unwrap_or(usize::MAX));
                content(&rest[..length]);
                at += length;
                self.left -= length as u64;
                if self.left == 0 {
                    self.state = State::ContentReturn;
                }
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if self.step(byte)? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Process a byte that is not content; return whether it was the last of the body.
    fn step(&mut self, byte: u8) -> Result<bool, &'static str> {
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.seen += 1;
                if self.seen > 15 {
                    return Err("the size of a chunk is too large");
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                State::Size
            }
            (State::Size, _) if self.seen == 0 => return Err("a chunk has no size"),
            (State::Size | State::Extension, b'\r') => State::SizeEnd,
            (State::Size | State::Extension | State::SizeEnd, b'\n') => self.begin(),
            (State::Size, b';' | b' ' | b'\t') => State::Extension,
            (State::Extension, _) => self.pass(State::Extension)?,
            (State::ContentReturn, b'\r') => State::ContentEnd,
            (State::ContentReturn | State::ContentEnd, b'\n') => State::Size,
            (State::TrailerBegin, b'\r') => State::LastEnd,
            (State::TrailerBegin | State::LastEnd, b'\n') => return Ok(true),
            (State::Trailer, b'\n') => State::TrailerBegin,
            (State::TrailerBegin | State::Trailer, _) => self.pass(State::Trailer)?,
            _ => return Err("the chunks of a body are damaged"),
        };
        Ok(false)
    }

    fn begin(&mut self) -> State {
        self.seen = 0;
        if self.left > 0 {
            State::Content
        } else {
            State::TrailerBegin
        }
    }

    fn pass(&mut self, state: State) -> Result<State, &'static str> {
        self.seen += 1;
        if self.seen > LONGEST_LINES {
            return Err("the chunk extensions or trailers of a body are too long");
        }
        Ok(state)
    }
}
