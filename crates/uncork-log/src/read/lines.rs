//! Parses plain-text logs: what a server writes to standard error.

use memchr::{memchr, memrchr};

use crate::read::entry::{Entry, Sink};
use crate::read::memo::Memo;
use crate::read::prefix::{Head, Prefix, Severity};
use crate::read::shape::looks_like_head;
use crate::read::time::Clock;
use crate::read::unwrap::FOREIGN;

/// Scans a plain-text log.
///
/// A line is the first one of an entry or of an addition, it continues the one before, or it is rejected. If the
/// prefix does not match a line that looks like an entry's first one, it is rejected together with all that follows it
/// up to the next entry; it never becomes a part of the entry before.
///
/// Blocks are scanned independently, so several scanners can share a file; [`Lines::cut`] finds
/// where a file may be cut.
#[derive(Debug, Clone)]
pub struct Lines {
    memo: Memo,
}

/// An entry that is being read, and the part of it that further lines continue.
struct Open<'a> {
    entry: Entry<'a>,
    part: Severity,
    begin: usize,
    end: usize,
}

impl<'a> Open<'a> {
    fn new(offset: u64, head: Head<'a>, begin: usize, end: usize) -> Self {
        Self {
            entry: Entry::new(offset, head),
            part: head.severity,
            begin,
            end,
        }
    }

    fn end_part(&mut self, block: &'a [u8]) {
        let text = block[self.begin..self.end].trim_ascii_end();
        if self.part == self.entry.head.severity {
            self.entry.message = text;
        } else {
            self.entry.put(self.part, text);
        }
    }
}

impl Lines {
    /// Create a scanner for lines with a prefix.
    #[must_use]
    pub fn new(prefix: Prefix) -> Self {
        Self {
            memo: Memo::new(prefix),
        }
    }

    /// The prefix of lines.
    #[must_use]
    pub fn prefix(&self) -> &Prefix {
        self.memo.prefix()
    }

    /// Cached points in time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.memo.clock()
    }

    /// Find the beginning of the last entry of a text that is not a separate addition: up to there
    /// the text can be scanned on its own. `None` if no entry begins after the text's own
    /// beginning.
    pub fn cut(&mut self, text: &[u8]) -> Option<usize> {
        let mut end = text.len();
        loop {
            let begin = memrchr(b'\n', &text[..end])? + 1;
            let line = &text[begin..];
            let line = &line[..memchr(b'\n', line).unwrap_or(line.len())];
            // A truncated line may be read differently once it is complete.
            let whole = begin + line.len() < text.len();
            if whole && self.begins_entry(line) {
                return Some(begin);
            }
            end = begin - 1;
        }
    }

    /// Whether a line ends the entry before it, even if the line cannot be read.
    fn begins_entry(&mut self, line: &[u8]) -> bool {
        match line.first() {
            None | Some(b'\t') => false,
            Some(&FOREIGN) => true,
            Some(_) => match self.memo.read(line) {
                Some((head, _)) => !head.severity.is_addition(),
                None => looks_like_head(line),
            },
        }
    }

    /// Scan a block that begins with an entry and ends with one; `offset` is its place in the file.
    pub fn scan(&mut self, block: &[u8], offset: u64, sink: &mut impl Sink) {
        let mut open: Option<Open<'_>> = None;
        let (mut heads, mut continuations) = (0, 0);
        let mut at = 0;
        while at < block.len() {
            let rest = &block[at..];
            let length = memchr(b'\n', rest).unwrap_or(rest.len());
            let (end, place) = (at + length, offset + at as u64);
            let line = &rest[..length];
            let head = match rest[0] {
                b'\t' | FOREIGN => None,
                _ => self.memo.read(line),
            };
            heads += u64::from(head.is_some());
            match (head, &mut open) {
                (Some((head, message)), Some(one)) if belongs(&head, one) => {
                    one.end_part(block);
                    (one.part, one.begin, one.end) = (head.severity, at + message, end);
                }
                (Some((head, message)), _) => {
                    if let Some(mut one) = open.take() {
                        one.end_part(block);
                        sink.entry(&one.entry);
                    }
                    let mut one = Open::new(place, head, at + message, end);
                    one.entry.query_id = self.memo.query_id();
                    open = Some(one);
                }
                (None, Some(one)) if goes_on(line) => {
                    one.end = end;
                    continuations += 1;
                }
                (None, None) if line.trim_ascii().is_empty() => continuations += 1,
                (None, _) => {
                    if let Some(mut one) = open.take() {
                        one.end_part(block);
                        sink.entry(&one.entry);
                    }
                    sink.rejected(place, line);
                }
            }
            at = end + 1;
        }
        sink.lines(heads, continuations);
        if let Some(mut one) = open {
            one.end_part(block);
            sink.entry(&one.entry);
        }
    }
}

/// Whether an unmatched line continues the current entry.
fn goes_on(line: &[u8]) -> bool {
    match line.first() {
        None | Some(b'\t' | b' ') => true,
        Some(&FOREIGN) => false,
        Some(_) => !looks_like_head(line),
    }
}

/// Whether a line adds to the current entry.
fn belongs(head: &Head<'_>, open: &Open<'_>) -> bool {
    let of = &open.entry.head;
    head.severity.is_addition()
        && !of.severity.is_addition()
        && head.pid == of.pid
        && head.session == of.session
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen {
        entries: Vec<[String; 4]>,
        rejected: Vec<(u64, String)>,
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    impl Sink for Seen {
        fn entry(&mut self, entry: &Entry<'_>) {
            self.entries.push([
                format!("{} {:?}", entry.head.pid, entry.head.severity),
                text(entry.message),
                text(entry.detail),
                text(entry.statement),
            ]);
        }

        fn rejected(&mut self, offset: u64, line: &[u8]) {
            self.rejected.push((offset, text(line)));
        }
    }

    const LOG: &str = "noise before\n\
        2025-11-30 21:10:20.1 UTC [1] LOG:  duration: 0.1 ms  statement: SELECT 1,\n\
        \t  2\n\
        2025-11-30 21:10:20.2 UTC [2] ERROR:  no\n\
        2025-11-30 21:10:20.2 UTC [2] DETAIL:  because\n\
        \tof that\n\
        2025-11-30 21:10:20.2 UTC [2] STATEMENT:  SELECT 3\n\
        2025-11-30 21:10:20.3 UTC [2] ERROR:  again\n\
        2025-11-30 21:10:20.3 UTC [3] LOG:  other\n\
        2025-11-30 21:10:20.3 UTC [2] STATEMENT:  SELECT 4\n";

    fn scanner() -> Lines {
        Lines::new(Prefix::parse("%m [%p] ").expect("is a prefix"))
    }

    fn expected() -> Vec<[String; 4]> {
        [
            [
                "1 Log",
                "duration: 0.1 ms  statement: SELECT 1,\n\t  2",
                "",
                "",
            ],
            ["2 Error", "no", "because\n\tof that", "SELECT 3"],
            ["2 Error", "again", "", ""],
            ["3 Log", "other", "", ""],
            ["2 Statement", "SELECT 4", "", ""],
        ]
        .map(|row| row.map(str::to_owned))
        .to_vec()
    }

    #[test]
    fn entries_have_their_lines_and_additions() {
        let mut seen = Seen::default();
        scanner().scan(LOG.as_bytes(), 100, &mut seen);
        assert_eq!(seen.entries, expected());
        assert_eq!(seen.rejected, [(100, "noise before".to_owned())]);
    }

    #[test]
    fn cut_anywhere_it_reads_the_same() {
        for size in 1..LOG.len() {
            let mut seen = Seen::default();
            let (mut scanner, mut begin, mut end) = (scanner(), 0, 0);
            while begin < LOG.len() {
                end = LOG.len().min(end + size);
                let block = &LOG.as_bytes()[begin..end];
                let cut = if end == LOG.len() {
                    Some(block.len())
                } else {
                    scanner.cut(block)
                };
                if let Some(cut) = cut {
                    scanner.scan(&block[..cut], begin as u64, &mut seen);
                    begin += cut;
                }
            }
            assert_eq!(seen.entries, expected(), "blocks of {size}");
            assert_eq!(seen.rejected.len(), 1);
        }
    }

    #[test]
    fn line_ends_of_windows_and_a_missing_last_one_do_no_harm() {
        let mut seen = Seen::default();
        let log = LOG.replace('\n', "\r\n");
        scanner().scan(log.trim_end().as_bytes(), 0, &mut seen);
        assert_eq!(seen.entries.len(), 5);
        assert_eq!(seen.entries[4][1], "SELECT 4");
    }
}
