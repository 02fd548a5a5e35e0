//! Unwraps syslog: it has each line of an entry separately, and mixes lines of several processes.

use std::collections::HashMap;
use std::io::Write as _;

use super::{behind_space, write_foreign};
use crate::read::prefix::Prefix;
use crate::read::shape::looks_like_head;
use crate::read::time::{Clock, Written, epoch};

/// The largest number of open entries; beyond it, the oldest are taken as complete.
const OPEN: usize = 10_000;

/// Joins the lines of entries again.
#[derive(Debug)]
pub(crate) struct Syslog {
    /// The reference for points in time without a year.
    written: Written,
    /// The prefix of inner lines.
    inner: Option<Prefix>,
    clock: Clock,
    /// By process: the open entry.
    open: HashMap<u32, Open>,
    /// The process of the last line, unless that was foreign.
    last: Option<u32>,
    turn: u64,
}

#[derive(Debug)]
struct Open {
    /// The number of the entry, if lines are numbered.
    number: Option<u64>,
    turn: u64,
    text: Vec<u8>,
}

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// When it was received, as logged.
    time: &'a [u8],
    pid: u32,
    /// The number of its entry, and which of its lines it is.
    number: Option<(u64, u64)>,
    text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Parse a line.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let (rest, modern) = without_priority(line);
        let (time, pid, text) = if modern {
            // RFC 5424: time, host, program, process, message ID, data, text.
            let (time, rest) = behind_space(rest)?;
            Clock::default().read(time)?;
            let (_, rest) = behind_space(rest)?;
            let (_, rest) = behind_space(rest)?;
            let (pid, rest) = behind_space(rest)?;
            let (_, rest) = behind_space(rest)?;
            (time, number(pid)?.0, behind_data(rest)?)
        } else {
            let (pid, place, text) = tag(rest)?;
            (time(&rest[..place])?, pid, text)
        };
        let text = text.strip_prefix(b" ").unwrap_or(text);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let (number, text) = numbered(text);
        Some(Self {
            time,
            pid: u32::try_from(pid).ok()?,
            number,
            text,
        })
    }
}

impl Line<'_> {
    /// Whether an unmatched line can continue an entry.
    fn goes_on(&self) -> bool {
        if self.text.starts_with(b"\t") || self.text.starts_with(b"#011") {
            return true;
        }
        self.number.is_none_or(|(_, part)| part > 1) && !looks_like_head(self.text)
    }
}

/// The text of a line that is, or may be, the first one of its entry.
pub(crate) fn head_text(line: &[u8]) -> Option<&[u8]> {
    let line = Line::read(line)?;
    line.number
        .is_none_or(|(_, part)| part == 1)
        .then_some(line.text)
}

impl Syslog {
    pub(crate) fn new(written: Written, inner: Option<Prefix>) -> Self {
        Self {
            written,
            inner,
            clock: Clock::default(),
            open: HashMap::new(),
            last: None,
            turn: 0,
        }
    }

    /// Process a line; write the previous entry of the same process if it is complete now.
    ///
    /// A line that the prefix does not match continues the open entry of its process. Without an open entry, or if it
    /// looks like the first line of another entry, it is foreign.
    pub(crate) fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let Some(found) = Line::read(line) else {
            // journalctl indents the further lines of a message, and writes nothing else before them.
            if line.starts_with(b" ")
                && let Some(open) = self.last.and_then(|pid| self.open.get_mut(&pid))
            {
                open.text.push(b'\t');
                write_text(&mut open.text, line.trim_ascii_start());
                return open.text.push(b'\n');
            }
            self.last = None;
            return write_foreign(line, out);
        };
        self.last = Some(found.pid);
        let inner = self.inner.as_ref();
        let head = inner.and_then(|prefix| prefix.read(found.text, &mut self.clock));
        let adds = head
            .as_ref()
            .map_or_else(|| found.goes_on(), |(head, _)| head.severity.is_addition());
        let entry = found.number.map(|(entry, _)| entry);
        if adds
            && let Some(open) = self.open.get_mut(&found.pid)
            && open.number == entry
        {
            return write_line(&mut open.text, &found, head.is_some(), self.written);
        }
        if let Some(before) = self.open.remove(&found.pid) {
            out.extend_from_slice(&before.text);
        }
        if head.is_none() {
            self.last = None;
            return write_foreign(line, out);
        }
        self.turn += 1;
        let mut text = Vec::new();
        write_line(&mut text, &found, true, self.written);
        let new = Open {
            number: entry,
            turn: self.turn,
            text,
        };
        self.open.insert(found.pid, new);
        if self.open.len() > OPEN {
            self.finish(out);
        }
    }

    /// Write what is still open, in the order in which it began.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_unstable_by_key(|open| open.turn);
        for one in open {
            out.extend_from_slice(&one.text);
        }
    }
}

/// Write a line as a server writes it to standard error, with `%m [%p] ` before its own prefix.
fn write_line(out: &mut Vec<u8>, line: &Line<'_>, is_head: bool, written: Written) {
    if is_head {
        if line.time.first().is_some_and(u8::is_ascii_digit) {
            out.extend_from_slice(line.time);
        } else {
            write_time(out, line.time, written);
        }
        // Writing to memory cannot fail.
        let _ = write!(out, " [{}] ", line.pid);
        write_text(out, line.text);
    } else {
        // The server put a tab before further lines, which syslog may have escaped.
        let text = line.text.strip_prefix(b"#011").unwrap_or(line.text);
        out.push(b'\t');
        write_text(out, text.strip_prefix(b"\t").unwrap_or(text));
    }
    out.push(b'\n');
}

/// Write a text, with tabs and line ends restored that syslog has escaped as `#011` and `#012`.
fn write_text(out: &mut Vec<u8>, mut text: &[u8]) {
    while let Some(at) = memchr::memmem::find(text, b"#01") {
        out.extend_from_slice(&text[..at]);
        let taken = match text.get(at + 3) {
            Some(b'1') => {
                out.push(b'\t');
                4
            }
            Some(b'2') => {
                out.extend_from_slice(b"\n\t");
                4
            }
            _ => {
                out.extend_from_slice(b"#01");
                3
            }
        };
        text = &text[at + taken..];
    }
    out.extend_from_slice(text);
}

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Write `Nov 30 21:10:20` with its year.
fn write_time(out: &mut Vec<u8>, time: &[u8], written: Written) {
    let month = (1..)
        .zip(MONTHS)
        .find(|(_, name)| time.starts_with(name))
        .map_or(1, |(month, _)| month);
    let (day, clock) = time.split_at(time.len().min(7));
    let day = day.get(3..6).unwrap_or_default().trim_ascii();
    let day = std::str::from_utf8(day)
        .ok()
        .and_then(|day| day.parse::<u32>().ok());
    let _ = write!(
        out,
        "{:04}-{month:02}-{:02} ",
        written.year_of(month),
        day.unwrap_or(1)
    );
    out.extend_from_slice(clock);
}

/// Return the point in time at the beginning of the text before a tag.
fn time(before: &[u8]) -> Option<&[u8]> {
    // `Sun 2026-05-31 08:00:00 CEST` of journalctl's short-full.
    if let Some(rest) = before.get(4..)
        && before[3] == b' '
        && rest[..].first().is_some_and(u8::is_ascii_digit)
        && let Some((_, length)) = Clock::default().read(rest)
    {
        return Some(&rest[..length]);
    }
    // `1780214400.123456` of its short-unix.
    if let Some((_, length)) = epoch(before)
        && before.get(length) == Some(&b' ')
    {
        return Some(&before[..length]);
    }
    if Clock::default().read(before).is_some() {
        let end = before.iter().position(|byte| *byte == b' ')?;
        // `2026-05-31 08:00:00` contains a space, `2026-05-31T08:00:00+00:00` does not.
        let end = if end == 10 {
            11 + before.get(11..)?.iter().position(|byte| *byte == b' ')?
        } else {
            end
        };
        return Some(&before[..end]);
    }
    let clock = before.get(7..15)?;
    let fits =
        MONTHS.iter().any(|name| before.starts_with(name)) && clock[2] == b':' && clock[5] == b':';
    let end = before.get(15..)?.iter().position(|byte| *byte == b' ')?;
    fits.then(|| &before[..15 + end])
}

/// Return the text after `<134>`, and whether the `1 ` of RFC 5424 follows it.
fn without_priority(line: &[u8]) -> (&[u8], bool) {
    let behind = line.strip_prefix(b"<").and_then(|rest| {
        let (_, length) = number(rest)?;
        rest[length..].strip_prefix(b">")
    });
    match behind {
        Some(rest) => rest
            .strip_prefix(b"1 ")
            .map_or((rest, false), |rest| (rest, true)),
        None => (line, false),
    }
}

/// Find the first `name[55]: ` (or logplex's `app[postgres.55] `): return the process ID, where it begins, and the
/// text after it.
fn tag(line: &[u8]) -> Option<(u64, usize, &[u8])> {
    let reach = &line[..line.len().min(256)];
    memchr::memchr_iter(b']', reach).find_map(|end| {
        let behind = &line[end + 1..];
        let text = behind.strip_prefix(b": ").or_else(|| {
            let text = behind.strip_prefix(b" ")?;
            text.starts_with(b"[").then_some(text)
        })?;
        let begin = memchr::memrchr(b'[', &reach[..end])?;
        // The server's own prefix, as in `UTC [55]: `, has a space before the bracket.
        if !reach[..begin].last().is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let within = &reach[begin + 1..end];
        let digits = within.rsplit(|byte| *byte == b'.').next()?;
        let (pid, length) = number(digits)?;
        (length == digits.len()).then_some((pid, begin, text))
    })
}

/// Return the text after the structured data of RFC 5424: `-`, or elements in brackets.
fn behind_data(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = text.strip_prefix(b"-") {
        return Some(rest);
    }
    let mut quoted = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b']' if !quoted && text.get(at) != Some(&b'[') => return Some(&text[at..]),
            _ => {}
        }
    }
    None
}

/// Parse the number of `[3-1] text`, also after a word in brackets as in `[GREEN] [15-1]  text`; return it and the
/// text.
fn numbered(text: &[u8]) -> (Option<(u64, u64)>, &[u8]) {
    let colour = text.strip_prefix(b"[").and_then(|rest| {
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_uppercase())
            .count();
        rest[length..].strip_prefix(b"] ").filter(|_| length > 0)
    });
    let rest = colour.unwrap_or(text);
    let found = rest.strip_prefix(b"[").and_then(|rest| {
        let (entry, length) = number(rest)?;
        let rest = rest[length..].strip_prefix(b"-")?;
        let (part, length) = number(rest)?;
        Some(((entry, part), rest[length..].strip_prefix(b"]")?))
    });
    match found {
        Some((number, text)) => (Some(number), text.strip_prefix(b" ").unwrap_or(text)),
        None => (None, text),
    }
}

fn number(text: &[u8]) -> Option<(u64, usize)> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[..length]).ok()?;
    Some((digits.parse().ok()?, length))
}
