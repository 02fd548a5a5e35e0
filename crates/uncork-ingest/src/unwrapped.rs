//! Reads a wrapped log as if it were not wrapped.

use std::io::{self, Read};

use memchr::memrchr;
use uncork_log::Unwrapper;

use crate::unpack::fill_most;

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// The inner log of a wrapped log.
pub(crate) struct Unwrapped<'a> {
    reader: &'a mut dyn Read,
    unwrapper: Unwrapper,
    /// Bytes that do not form a whole line yet.
    raw: Vec<u8>,
    /// Unwrapped text, and how much of it has been read.
    out: Vec<u8>,
    at: usize,
    ended: bool,
    trouble: Option<io::Error>,
}

impl<'a> Unwrapped<'a> {
    pub(crate) fn new(reader: &'a mut dyn Read, unwrapper: Unwrapper) -> Self {
        Self {
            reader,
            unwrapper,
            raw: Vec::new(),
            out: Vec::new(),
            at: 0,
            ended: false,
            trouble: None,
        }
    }

    /// Unwrap the next lines.
    fn refill(&mut self) {
        self.out.clear();
        self.at = 0;
        let begin = self.raw.len();
        self.raw.resize(begin + CHUNK, 0);
        let (length, trouble) = fill_most(self.reader, &mut self.raw[begin..]);
        self.raw.truncate(begin + length);
        self.ended = length == 0 || trouble.is_some();
        self.trouble = trouble;
        let whole = if self.ended {
            self.raw.len()
        } else {
            memrchr(b'\n', &self.raw).map_or(0, |at| at + 1)
        };
        self.unwrapper.feed(&self.raw[..whole], &mut self.out);
        self.raw.drain(..whole);
        if self.ended {
            self.unwrapper.finish(&mut self.out);
        }
    }
}

impl Read for Unwrapped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            if self.ended {
                return self.trouble.take().map_or(Ok(0), Err);
            }
            self.refill();
        }
        let length = buffer.len().min(self.out.len() - self.at);
        buffer[..length].copy_from_slice(&self.out[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}
