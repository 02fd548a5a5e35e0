//! Adds the time at which a wrapper received a line, if the line itself has none (`log_line_prefix` without `%m`).

use std::borrow::Cow;

use crate::read::prefix::Prefix;
use crate::read::time::{Clock, epoch};

/// The fewest digits of microseconds since 1970, as journald writes them.
const MICROSECONDS: usize = 15;

/// Writes times before the first lines of entries and of additions.
#[derive(Debug)]
pub(super) struct Stamps {
    /// The prefix of inner lines, which has no time.
    inner: Prefix,
    clock: Clock,
    /// The time to write. A record without one was received with the record before it.
    time: Vec<u8>,
    text: Vec<u8>,
}

impl Stamps {
    pub(super) fn new(inner: Prefix) -> Self {
        Self {
            inner,
            clock: Clock::default(),
            time: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Set the time from a wrapper's text, unless that is not a time.
    pub(super) fn receive(&mut self, text: &[u8]) {
        if let Some(time) = stamp(text) {
            self.time.clear();
            self.time.extend_from_slice(&time);
        }
    }

    /// Write the time before each line of `out` from `begin` on that begins an entry or an addition. If `open`, the
    /// first of these lines continues an incomplete one.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, begin: usize, open: bool) {
        self.text.clear();
        self.text.extend_from_slice(&out[begin..]);
        out.truncate(begin);
        let lines = self.text.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in lines.enumerate() {
            let begins = number > 0 || !open;
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            if begins && self.inner.read(bare, &mut self.clock).is_some() {
                out.extend_from_slice(&self.time);
                out.push(b' ');
            }
            out.extend_from_slice(line);
        }
    }
}

/// Return a wrapper's time as a log line contains it; `None` if the text is not a time.
pub(super) fn stamp(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if text.len() >= MICROSECONDS && text.iter().all(u8::is_ascii_digit) {
        let (seconds, micros) = text.split_at(text.len() - 6);
        let time = [seconds, b".", micros].concat();
        return epoch(&time).map(|_| Cow::Owned(time));
    }
    let read = Clock::default().read(text).or_else(|| epoch(text));
    read.filter(|(_, length)| *length == text.len())
        .map(|_| Cow::Borrowed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_wrappers_are_read() {
        for (text, time) in [
            (
                "2026-05-31T08:00:00.123456789Z",
                Some("2026-05-31T08:00:00.123456789Z"),
            ),
            (
                "2026-05-31T10:00:00+02:00",
                Some("2026-05-31T10:00:00+02:00"),
            ),
            ("1780214400123456", Some("1780214400.123456")),
            ("1780214400.5", Some("1780214400.5")),
            ("", None),
            ("yesterday", None),
            ("2026-05-31T08:00:00Z and more", None),
            ("17802144001234567890", None),
        ] {
            let found = stamp(text.as_bytes());
            assert_eq!(found.as_deref(), time.map(str::as_bytes), "{text}");
        }
    }
}
