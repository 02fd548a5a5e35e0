//! Bodies in chunks (RFC 9112, section 7.1).

/// Where in the body reading is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunks {
    state: State,
    /// Of a chunk's content, how much is to come; while its size is read, what is known of it.
    left: u64,
    /// Digits of the size, then bytes of a line, to bound them.
    seen: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    /// What follows a size on its line.
    Extension,
    /// The line feed behind a size.
    SizeEnd,
    Content,
    ContentReturn,
    ContentEnd,
    /// A line behind the last chunk, at its beginning and within.
    TrailerBegin,
    Trailer,
    /// The line feed of the empty line at the end.
    LastEnd,
}

/// The most bytes that extensions and trailers may have in all.
const LONGEST_LINES: u32 = 64 * 1024;

impl Chunks {
    /// Reads what is there and hands on the content; returns how many bytes were used and whether
    /// the body is over.
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

    /// Takes a byte that is no content; says whether it was the last.
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
            return Err("what stands around the chunks of a body is too long");
        }
        Ok(state)
    }
}
