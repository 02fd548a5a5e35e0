//! Parses JSON logs: one record per line, as the server writes it (`log_destination = jsonlog`), or
//! wrapped by `CloudNativePG` or Azure.

use std::ops::Range;

use memchr::{memchr, memchr2, memrchr};

use crate::read::entry::{Entry, Sink};
use crate::read::prefix::{Head, Severity, signed};
use crate::read::time::Clock;

/// The deepest nesting of objects; a record with deeper nesting is rejected.
const DEEPEST: u32 = 8;

/// Known keys of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Key {
    Time,
    Pid,
    Session,
    User,
    Database,
    Application,
    Host,
    SqlState,
    Severity,
    Message,
    Detail,
    Hint,
    Context,
    Statement,
    Query,
    QueryId,
    /// A wrapped line of a plain-text log.
    Text,
    /// When a wrapper received the line.
    Received,
}

const KEYS: usize = Key::Received as usize + 1;

/// Scans a log of JSON records.
#[derive(Debug, Clone, Default)]
pub struct Json {
    clock: Clock,
    values: [Option<Value>; KEYS],
    /// Texts whose escapes were resolved.
    resolved: Vec<u8>,
}

/// Where a value is: in the line, or among the resolved ones.
#[derive(Debug, Clone)]
struct Value {
    range: Range<usize>,
    resolved: bool,
}

impl Json {
    /// Whether a line looks like a record.
    #[must_use]
    pub fn fits(line: &[u8]) -> bool {
        let mut json = Self::default();
        json.object(line, 0, 0).is_some()
            && json.values[Key::Severity as usize].is_some()
            && json.values[Key::Message as usize].is_some()
    }

    /// Cached points in time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Find the beginning of the last record of a text. `None` if it is the only one.
    #[must_use]
    pub fn cut(text: &[u8]) -> Option<usize> {
        memrchr(b'\n', text).map(|at| at + 1)
    }

    /// Scan a block that begins with a record; `offset` is its place in the file.
    pub fn scan(&mut self, block: &[u8], offset: u64, sink: &mut impl Sink) {
        let (mut at, mut heads, mut empty) = (0, 0, 0);
        while at < block.len() {
            let rest = &block[at..];
            let length = memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, place) = (&rest[..length], offset + at as u64);
            at += length + 1;
            if line.trim_ascii().is_empty() {
                empty += 1;
                continue;
            }
            if self.read(line).is_none() {
                sink.rejected(place, line);
            } else if self.values[Key::Severity as usize].is_none() {
                sink.foreign();
            } else {
                match self.entry(line, place) {
                    Some(entry) => {
                        heads += 1;
                        sink.entry(&entry);
                    }
                    None => sink.rejected(place, line),
                }
            }
        }
        sink.lines(heads, empty);
    }

    /// Return the plain-text line that a record wraps (Docker, Cloud SQL, journald).
    pub(crate) fn wrapped(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.read(line)?;
        let value = self.values[Key::Text as usize].as_ref()?;
        let text = if value.resolved { &self.resolved } else { line };
        out.extend_from_slice(&text[value.range.clone()]);
        Some(())
    }

    /// Return when a wrapper received the line that [`Self::wrapped`] has just returned; empty if the record does not
    /// contain it.
    pub(crate) fn received<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        let values = [Key::Time, Key::Received].map(|key| self.values[key as usize].as_ref());
        match values.into_iter().flatten().next() {
            Some(value) if value.resolved => &self.resolved[value.range.clone()],
            Some(value) => &line[value.range.clone()],
            None => b"",
        }
    }

    /// Find the values of a record; `None` if the line is not a complete object.
    fn read(&mut self, line: &[u8]) -> Option<()> {
        self.values = [const { None }; KEYS];
        self.resolved.clear();
        let end = self.object(line, 0, 0)?;
        line[end..].trim_ascii().is_empty().then_some(())
    }

    /// Convert the values of a record to an entry.
    fn entry<'a>(&'a mut self, line: &'a [u8], place: u64) -> Option<Entry<'a>> {
        let time = {
            let value = self.values[Key::Time as usize].as_ref()?;
            let text = if value.resolved { &self.resolved } else { line };
            self.clock.read(&text[value.range.clone()])?.0
        };
        let (values, resolved) = (&self.values, &self.resolved);
        let get = |key: Key| match &values[key as usize] {
            None => &b""[..],
            Some(value) if value.resolved => &resolved[value.range.clone()],
            Some(value) => &line[value.range.clone()],
        };
        let known = |key: Key| match get(key) {
            b"[unknown]" => &b""[..],
            text => text,
        };
        let head = Head {
            time: Some(time),
            pid: std::str::from_utf8(get(Key::Pid))
                .ok()?
                .parse()
                .unwrap_or(0),
            session: get(Key::Session),
            user: known(Key::User),
            database: known(Key::Database),
            application: known(Key::Application),
            host: crate::read::csv::address(get(Key::Host)),
            sqlstate: get(Key::SqlState),
            severity: Severity::named(get(Key::Severity))?,
        };
        Some(Entry {
            query_id: signed(get(Key::QueryId)),
            message: get(Key::Message),
            detail: get(Key::Detail),
            hint: get(Key::Hint),
            context: get(Key::Context),
            statement: get(Key::Statement),
            query: get(Key::Query),
            ..Entry::new(place, head)
        })
    }

    /// Read an object and nested objects; return where it ends.
    fn object(&mut self, line: &[u8], at: usize, depth: u32) -> Option<usize> {
        let mut at = space(line, at);
        if line.get(at) != Some(&b'{') || depth > DEEPEST {
            return None;
        }
        at = space(line, at + 1);
        if line.get(at) == Some(&b'}') {
            return Some(at + 1);
        }
        loop {
            at = space(line, at);
            let (key, _, after) = string(line, at)?;
            at = space(line, after);
            if line.get(at) != Some(&b':') {
                return None;
            }
            at = self.value(line, space(line, at + 1), named(&line[key]), depth)?;
            at = space(line, at);
            match line.get(at)? {
                b',' => at += 1,
                b'}' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// Read a value, and keep it if its key is known; return where it ends.
    fn value(&mut self, line: &[u8], at: usize, key: Option<Key>, depth: u32) -> Option<usize> {
        match line.get(at)? {
            b'"' => {
                let (range, escaped, end) = string(line, at)?;
                if let Some(key) = key {
                    self.keep(line, key, range, escaped);
                }
                Some(end)
            }
            b'{' => self.object(line, at, depth + 1),
            b'[' => {
                let mut at = space(line, at + 1);
                if line.get(at) == Some(&b']') {
                    return Some(at + 1);
                }
                if depth > DEEPEST {
                    return None;
                }
                loop {
                    at = self.value(line, space(line, at), None, depth + 1)?;
                    at = space(line, at);
                    match line.get(at)? {
                        b',' => at += 1,
                        b']' => return Some(at + 1),
                        _ => return None,
                    }
                }
            }
            _ => {
                let rest = &line[at..];
                let length = rest
                    .iter()
                    .position(|byte| matches!(byte, b',' | b'}' | b']' | b' '))?;
                if length == 0 {
                    return None;
                }
                if let Some(key) = key
                    && &rest[..length] != b"null"
                {
                    self.keep(line, key, at..at + length, false);
                }
                Some(at + length)
            }
        }
    }

    fn keep(&mut self, line: &[u8], key: Key, range: Range<usize>, escaped: bool) {
        let value = if escaped {
            let begin = self.resolved.len();
            resolve(&line[range], &mut self.resolved);
            Value {
                range: begin..self.resolved.len(),
                resolved: true,
            }
        } else {
            Value {
                range,
                resolved: false,
            }
        };
        self.values[key as usize] = Some(value);
    }
}

/// Map the names that the server and the wrappers use to keys.
fn named(key: &[u8]) -> Option<Key> {
    Some(match key {
        b"timestamp" | b"log_time" => Key::Time,
        b"pid" | b"process_id" | b"processId" => Key::Pid,
        b"session_id" => Key::Session,
        b"user" | b"user_name" => Key::User,
        b"dbname" | b"database_name" => Key::Database,
        b"application_name" => Key::Application,
        b"remote_host" | b"connection_from" => Key::Host,
        b"state_code" | b"sql_state_code" | b"sqlerrcode" => Key::SqlState,
        b"error_severity" | b"errorLevel" => Key::Severity,
        b"query_id" => Key::QueryId,
        b"message" => Key::Message,
        b"detail" => Key::Detail,
        b"hint" => Key::Hint,
        b"context" => Key::Context,
        b"statement" | b"query" => Key::Statement,
        b"internal_query" => Key::Query,
        b"log" | b"textPayload" | b"MESSAGE" => Key::Text,
        b"time" | b"@timestamp" | b"__REALTIME_TIMESTAMP" => Key::Received,
        _ => return None,
    })
}

fn space(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

/// Return the text between the quotes of a string, whether it has escapes, and where it ends.
fn string(line: &[u8], at: usize) -> Option<(Range<usize>, bool, usize)> {
    if line.get(at) != Some(&b'"') {
        return None;
    }
    let (mut end, mut escaped) = (at + 1, false);
    loop {
        end += memchr2(b'"', b'\\', line.get(end..)?)?;
        if line[end] == b'"' {
            return Some((at + 1..end, escaped, end + 1));
        }
        escaped = true;
        end += 2;
    }
}

/// Write a string with its escapes resolved. A lone surrogate becomes the replacement character.
fn resolve(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'\\', text) {
        out.extend_from_slice(&text[..at]);
        let mut taken = 2;
        match text.get(at + 1) {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'b') => out.push(0x08),
            Some(b'f') => out.push(0x0c),
            Some(b'u') => {
                let (character, length) = unicode(&text[at..]);
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                taken = length;
            }
            Some(other) => out.push(*other),
            None => {}
        }
        text = text.get(at + taken..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

/// Decode `\u0041`, or a surrogate pair; return the character and the number of bytes.
fn unicode(text: &[u8]) -> (char, usize) {
    let unit = |text: &[u8]| {
        let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(text) else {
        return (char::REPLACEMENT_CHARACTER, 2);
    };
    let second = text.get(6..).and_then(unit);
    match char::decode_utf16([Some(first), second].into_iter().flatten()).next() {
        Some(Ok(character)) => (character, 6 * character.len_utf16()),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen {
        entries: Vec<String>,
        rejected: usize,
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

        fn rejected(&mut self, _offset: u64, _line: &[u8]) {
            self.rejected += 1;
        }
    }

    fn read(log: &str) -> Seen {
        let mut seen = Seen::default();
        Json::default().scan(log.as_bytes(), 0, &mut seen);
        seen
    }

    #[test]
    fn records_of_the_server_are_read() {
        let seen = read(concat!(
            r#"{"timestamp":"2025-11-30 21:10:20.507 UTC","user":"me","dbname":"shop","pid":65,"remote_host":"[local]","session_id":"692cb2bc.41","line_num":4,"ps":"SELECT","txid":0,"error_severity":"ERROR","state_code":"42P01","message":"no \"a\"","statement":"SELECT 1,\n\t'\u00e9\ud83d\ude00'","application_name":"psql","query_id":0}"#,
            "\n\n",
            r#" { "timestamp" : "2025-11-30 21:10:20.6 UTC", "pid" : 7 , "x": [1, {"a": null}, []], "error_severity":"LOG", "message":"" } "#,
            "\n"
        ));
        assert_eq!(
            seen.entries,
            [
                "65 Error me@shop psql [local] 42P01 | no \"a\" | SELECT 1,\n\t'é😀'",
                "7 Log @    |  | ",
            ]
        );
        assert_eq!(seen.rejected, 0);
    }

    #[test]
    fn records_in_wrappers_are_read() {
        let seen = read(concat!(
            r#"{"level":"info","ts":1669575482.09,"logger":"postgres","msg":"record","record":{"log_time":"2022-11-27 18:58:02.096 UTC","user_name":"me","database_name":"shop","process_id":"600","connection_from":"10.0.0.1:55","error_severity":"LOG","sql_state_code":"00000","message":"hello","query":"SELECT 2"}}"#,
            "\n",
            r#"{"time":"2022-11-27T18:58:02Z","properties":{"timestamp":"2022-11-27 18:58:02.096 UTC","processId":600,"errorLevel":"LOG","sqlerrcode":"00000","message":"hello"}}"#
        ));
        assert_eq!(
            seen.entries,
            [
                "600 Log me@shop  10.0.0.1 00000 | hello | SELECT 2",
                "600 Log @   00000 | hello | ",
            ]
        );
    }

    #[test]
    fn records_of_other_programs_are_neither_entries_nor_rejected() {
        for line in [
            "{}",
            r#"{"message":"a"}"#,
            r#"{"level":"info","msg":"started"}"#,
        ] {
            let seen = read(line);
            assert_eq!((seen.entries.len(), seen.rejected), (0, 0), "{line}");
        }
    }

    #[test]
    fn what_is_no_record_is_rejected() {
        for line in [
            "{",
            "x",
            "[1]",
            r#"{"message":"a"} b"#,
            r#"{"timestamp":"now","error_severity":"LOG"}"#,
            r#"{"timestamp":"2025-11-30 21:10:20","error_severity":"LOUD"}"#,
            r#"{"a":"b"#,
            r#"{"a":}"#,
            r#"{"a" 1}"#,
            "{\"a\":\"\\",
        ] {
            let seen = read(line);
            assert_eq!((seen.entries.len(), seen.rejected), (0, 1), "{line}");
        }
        let deep = "{\"a\":".repeat(100_000);
        assert_eq!(read(&deep).rejected, 1);
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        assert_eq!(read(&deep).rejected, 1);
    }

    #[test]
    fn escapes_are_resolved() {
        for (escaped, plain) in [
            (r#"a\"b\\c\/d"#, "a\"b\\c/d"),
            (r"\n\t\r\b\f", "\n\t\r\u{8}\u{c}"),
            (r"\u0041\u00e9\ud83d\ude00", "Aé😀"),
            (r"\ud83dx\uzzzz\u12", "\u{fffd}x\u{fffd}zzzz\u{fffd}12"),
            ("\\", ""),
        ] {
            let mut out = Vec::new();
            resolve(escaped.as_bytes(), &mut out);
            assert_eq!(text(&out), plain, "{escaped}");
        }
    }

    #[test]
    fn a_line_of_it_is_told_from_others() {
        assert!(Json::fits(
            br#"{"timestamp":"x","error_severity":"LOG","message":"m"}"#
        ));
        assert!(!Json::fits(br#"{"log":"x"}"#));
        assert!(!Json::fits(b"2025-11-30 21:10:20.101 UTC [5] LOG:  a"));
    }
}
