//! Parses CSV logs (`log_destination = csvlog`).

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::read::entry::{Entry, Sink};
use crate::read::prefix::{Head, Severity, signed, without_port};
use crate::read::time::Clock;

// Columns of a record, in the order of the manual (section 19.8.4).
const TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const PID: usize = 3;
const HOST: usize = 4;
const SESSION: usize = 5;
const SEVERITY: usize = 11;
const SQLSTATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const HINT: usize = 15;
const INTERNAL_QUERY: usize = 16;
const CONTEXT: usize = 18;
const QUERY: usize = 19;
const APPLICATION: usize = 22;
/// Since version 14.
const QUERY_ID: usize = 25;
/// Columns that every version writes; later versions add more.
const LEAST: usize = 23;
/// Columns that are read; further ones are skipped.
const MOST: usize = 26;

/// Scans a CSV log.
#[derive(Debug, Clone, Default)]
pub struct Csv {
    clock: Clock,
    fields: Vec<Field>,
    /// Fields whose doubled quotes were replaced by single ones.
    unquoted: Vec<u8>,
}

/// Where a field is: in the block, or among the rewritten ones.
#[derive(Debug, Clone, Default)]
struct Field {
    range: Range<usize>,
    doubled: bool,
}

/// How a record ends.
enum End {
    /// At the end of a line; the next record begins there.
    At(usize),
    /// In the middle of a quoted field.
    Cut,
}

impl Csv {
    /// Whether a line looks like the first one of a record.
    #[must_use]
    pub fn fits(line: &[u8]) -> bool {
        let commas = memchr_iter(b',', line).count();
        // Tools that rewrite a log may quote every field.
        let (time, end) = match line.strip_prefix(b"\"") {
            Some(quoted) => (quoted, &b"\","[..]),
            None => (line, &b","[..]),
        };
        commas > SQLSTATE
            && Clock::default()
                .read(time)
                .is_some_and(|(_, length)| time[length..].starts_with(end))
    }

    /// Cached points in time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Find the beginning of the last record of a text that begins with a record. `None` if it is
    /// the only one.
    #[must_use]
    pub fn cut(text: &[u8]) -> Option<usize> {
        // A line end counts only outside of quotes, that is, after an even number of them.
        let mut quotes = memchr_iter(b'"', text).count();
        let mut end = text.len();
        loop {
            let at = memrchr(b'\n', &text[..end])?;
            quotes -= memchr_iter(b'"', &text[at..end]).count();
            if quotes.is_multiple_of(2) {
                return Some(at + 1);
            }
            end = at;
        }
    }

    /// Scan a block that begins with a record; `offset` is its place in the file.
    pub fn scan(&mut self, block: &[u8], offset: u64, sink: &mut impl Sink) {
        let (mut at, mut heads, mut continuations) = (0, 0, 0);
        while at < block.len() {
            let begin = at;
            self.fields.clear();
            at = match self.record(block, begin) {
                End::At(end) => end,
                End::Cut => {
                    // Reject its first line, and try the next one.
                    memchr(b'\n', &block[begin..]).map_or(block.len(), |length| begin + length + 1)
                }
            };
            let place = offset + begin as u64;
            let record = &block[begin..at];
            if let Some(entry) = self.entry(block, place) {
                heads += 1;
                let lines = record.strip_suffix(b"\n").unwrap_or(record);
                continuations += memchr_iter(b'\n', lines).count() as u64;
                sink.entry(&entry);
            } else {
                continuations += reject(record, place, sink);
            }
        }
        sink.lines(heads, continuations);
    }

    /// Find the fields of a record.
    fn record(&mut self, block: &[u8], mut at: usize) -> End {
        loop {
            let (field, end) = if block.get(at) == Some(&b'"') {
                let Some((field, end)) = quoted(block, at) else {
                    self.fields.clear();
                    return End::Cut;
                };
                (field, end)
            } else {
                let rest = &block[at..];
                let length = rest
                    .iter()
                    .position(|byte| matches!(byte, b',' | b'\n'))
                    .unwrap_or(rest.len());
                let field = Field {
                    range: at..at + length,
                    doubled: false,
                };
                (field, at + length)
            };
            if self.fields.len() < MOST {
                self.fields.push(field);
            }
            match block.get(end) {
                Some(b',') => at = end + 1,
                Some(b'\n') => return End::At(end + 1),
                Some(b'\r') if block.get(end + 1) == Some(&b'\n') => return End::At(end + 2),
                None => return End::At(end),
                Some(_) => {
                    // Characters after a closing quote: not a record.
                    self.fields.clear();
                    let rest = memchr(b'\n', &block[end..]);
                    return End::At(rest.map_or(block.len(), |length| end + length + 1));
                }
            }
        }
    }

    fn entry<'a>(&'a mut self, block: &'a [u8], place: u64) -> Option<Entry<'a>> {
        if self.fields.len() < LEAST {
            return None;
        }
        self.unquoted.clear();
        for field in &mut self.fields {
            if field.doubled {
                let begin = self.unquoted.len();
                single(&block[field.range.clone()], &mut self.unquoted);
                field.range = begin..self.unquoted.len();
            }
        }
        let mut head = Head::new();
        let (time, _) = self.clock.read(&block[self.fields[TIME].range.clone()])?;
        let (fields, unquoted) = (&self.fields, &self.unquoted);
        let get = |column: usize| {
            let field = &fields[column];
            if field.doubled {
                &unquoted[field.range.clone()]
            } else {
                &block[field.range.clone()]
            }
        };
        head.time = Some(time);
        head.severity = Severity::named(get(SEVERITY))?;
        head.pid = std::str::from_utf8(get(PID)).ok()?.parse().ok()?;
        (head.user, head.database) = (known(get(USER)), known(get(DATABASE)));
        (head.application, head.host) = (known(get(APPLICATION)), address(get(HOST)));
        (head.session, head.sqlstate) = (get(SESSION), get(SQLSTATE));
        let query_id = match fields.len() {
            0..=QUERY_ID => 0,
            _ => signed(get(QUERY_ID)),
        };
        Some(Entry {
            query_id,
            message: get(MESSAGE),
            detail: get(DETAIL),
            hint: get(HINT),
            context: get(CONTEXT),
            statement: get(QUERY),
            query: get(INTERNAL_QUERY),
            ..Entry::new(place, head)
        })
    }
}

/// Reject the lines of an invalid record; return how many of them are empty.
fn reject(record: &[u8], mut place: u64, sink: &mut impl Sink) -> u64 {
    let mut empty = 0;
    for whole in record.split_inclusive(|byte| *byte == b'\n') {
        match whole.trim_ascii() {
            b"" => empty += 1,
            line => sink.rejected(place, line),
        }
        place += whole.len() as u64;
    }
    empty
}

fn known(text: &[u8]) -> &[u8] {
    if text == b"[unknown]" { b"" } else { text }
}

/// Return `10.0.0.1:5432` without its port.
pub(crate) fn address(host: &[u8]) -> &[u8] {
    let port = host.iter().rposition(|byte| *byte == b':');
    match port {
        Some(at) if host[at + 1..].iter().all(u8::is_ascii_digit) => &host[..at],
        _ => without_port(host),
    }
}

/// Find the end of a quoted field that begins at `at`; `None` if it is truncated.
fn quoted(block: &[u8], at: usize) -> Option<(Field, usize)> {
    let (mut end, mut doubled) = (at + 1, false);
    loop {
        end += memchr(b'"', block.get(end..)?)? + 1;
        if block.get(end) != Some(&b'"') {
            break;
        }
        doubled = true;
        end += 1;
    }
    let range = at + 1..end - 1;
    Some((Field { range, doubled }, end))
}

/// Write a field with its doubled quotes replaced by single ones.
fn single(mut field: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'"', field) {
        out.extend_from_slice(&field[..=at]);
        field = field.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(field);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen {
        entries: Vec<String>,
        rejected: Vec<(u64, String)>,
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    impl Sink for Seen {
        fn entry(&mut self, entry: &Entry<'_>) {
            let head = &entry.head;
            self.entries.push(format!(
                "{} {:?} {}@{} {} {} {} | {} | {}",
                head.pid,
                head.severity,
                text(head.user),
                text(head.database),
                text(head.application),
                text(head.host),
                text(head.sqlstate),
                text(entry.message),
                text(entry.statement)
            ));
        }

        fn rejected(&mut self, offset: u64, line: &[u8]) {
            self.rejected.push((offset, text(line)));
        }
    }

    const LOG: &str = concat!(
        "2025-11-30 21:10:20.101 UTC,,,55,,692cb2bb.37,1,,2025-11-30 21:10:19 UTC,,0,LOG,00000,\"starting, \"\"now\"\"\",,,,,,,,,\"\",\"postmaster\",,0\n",
        "2025-11-30 21:10:20.507 UTC,\"me\",\"shop\",65,\"10.0.0.1:5432\",692cb2bc.41,4,\"SELECT\",2025-11-30 21:10:20 UTC,0/0,0,ERROR,42P01,\"no \"\"a\"\"\",,,,,,\"SELECT 1,\n  \"\"b\"\"\n\",15,,\"psql\",\"client backend\",,0\n",
        "not a record\n",
        "2025-11-30 21:10:20.600 UTC,\"me\",\"shop\",66,\"[local]\",692cb2bc.42,4,\"SELECT\",2025-11-30 21:10:20 UTC,0/0,0,LOG,00000,\"duration: 0.1 ms\",,,,,,,,,\"\"\n",
    );

    const EXPECTED: [&str; 3] = [
        "55 Log @   00000 | starting, \"now\" | ",
        "65 Error me@shop psql 10.0.0.1 42P01 | no \"a\" | SELECT 1,\n  \"b\"\n",
        "66 Log me@shop  [local] 00000 | duration: 0.1 ms | ",
    ];

    #[test]
    fn records_are_read_with_their_quotes() {
        let mut seen = Seen::default();
        Csv::default().scan(LOG.as_bytes(), 7, &mut seen);
        assert_eq!(seen.entries, EXPECTED);
        let at = LOG.find("not a").expect("is there") as u64 + 7;
        assert_eq!(seen.rejected, [(at, "not a record".to_owned())]);
    }

    #[test]
    fn every_field_may_be_quoted() {
        let quote = |line: &str| {
            let fields: Vec<String> = line
                .split(',')
                .map(|field| {
                    if field.starts_with('"') {
                        field.to_owned()
                    } else {
                        format!("\"{field}\"")
                    }
                })
                .collect();
            fields.join(",") + "\n"
        };
        let line = LOG.lines().next_back().expect("is there");
        let mut seen = Seen::default();
        Csv::default().scan(quote(line).as_bytes(), 0, &mut seen);
        assert_eq!(seen.entries, EXPECTED[2..]);
        assert!(seen.rejected.is_empty());
    }

    #[test]
    fn cut_anywhere_it_reads_the_same() {
        for size in 1..LOG.len() {
            let mut seen = Seen::default();
            let (mut scanner, mut begin, mut end) = (Csv::default(), 0, 0);
            while begin < LOG.len() {
                end = LOG.len().min(end + size);
                let block = &LOG.as_bytes()[begin..end];
                let cut = if end == LOG.len() {
                    Some(block.len())
                } else {
                    Csv::cut(block)
                };
                if let Some(cut) = cut {
                    scanner.scan(&block[..cut], begin as u64, &mut seen);
                    begin += cut;
                }
            }
            assert_eq!(seen.entries, EXPECTED, "blocks of {size}");
            assert_eq!(seen.rejected.len(), 1);
        }
    }

    #[test]
    fn what_is_cut_short_is_rejected_and_the_rest_read() {
        let mut seen = Seen::default();
        let log = format!(
            "2025-11-30 21:10:20.101 UTC,\"cut\n{}",
            &LOG[LOG.rfind("2025").expect("is there") - 60..]
        );
        Csv::default().scan(log.as_bytes(), 0, &mut seen);
        assert!(!seen.rejected.is_empty());
        let mut seen = Seen::default();
        Csv::default().scan(&LOG.as_bytes()[..200], 0, &mut seen);
        assert_eq!((seen.entries.len(), seen.rejected.len()), (1, 1));
    }

    #[test]
    fn a_line_of_it_is_told_from_others() {
        assert!(Csv::fits(LOG.lines().next().expect("is there").as_bytes()));
        let quoted = LOG.replacen(
            "2025-11-30 21:10:20.101 UTC",
            "\"2025-11-30 21:10:20.101 UTC\"",
            1,
        );
        assert!(Csv::fits(
            quoted.lines().next().expect("is there").as_bytes()
        ));
        assert!(!Csv::fits(
            b"\"2025-11-30 21:10:20.101 UTC,a,b,c,d,e,f,g,h,i,j,k,l,m,n\""
        ));
        assert!(!Csv::fits(b"2025-11-30 21:10:20.101 UTC [5] LOG:  a, b, c"));
        assert!(!Csv::fits(b"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"));
    }
}
