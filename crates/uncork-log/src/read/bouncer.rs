//! Parses logs of `PgBouncer`.

use memchr::{memchr, memrchr};

use crate::form::form_choice;
use crate::read::entry::{Entry, Sink};
use crate::read::prefix::{Head, Severity};
use crate::read::time::Clock;

/// Scans a log of `PgBouncer`.
#[derive(Debug, Clone, Default)]
pub struct Bouncer {
    clock: Clock,
}

/// The side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// A client's connection to the pooler.
    Client,
    /// The pooler's connection to a server.
    Server,
}

impl Side {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// A parsed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMessage<'a> {
    /// A connection was begun, by a client or to a server.
    Opened,
    /// A connection has ended.
    Closed {
        /// `client close request`, `server idle timeout`, …
        why: &'a [u8],
        /// How long it was open, in seconds.
        age: u64,
    },
    /// Averages since the last such line (`log_stats`).
    Stats(Stats),
    /// Anything else.
    Other,
}

/// Averages over `stats_period`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions a second.
    pub transactions: u64,
    /// Queries a second.
    pub queries: u64,
    /// Bytes received from clients a second.
    pub bytes_in: u64,
    /// Bytes sent to clients a second.
    pub bytes_out: u64,
    /// Average duration of a transaction, in microseconds.
    pub transaction_micros: u64,
    /// Average duration of a query, in microseconds.
    pub query_micros: u64,
    /// Time that clients waited for a server connection, in microseconds of all clients per second.
    pub wait_micros: u64,
}

impl Bouncer {
    /// Whether a line looks like one of a `PgBouncer` log.
    #[must_use]
    pub fn fits(line: &[u8]) -> bool {
        head(&mut Clock::default(), line).is_some()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Return where a text may be cut: before its last line.
    pub(crate) fn cut(text: &[u8]) -> Option<usize> {
        memrchr(b'\n', text).map(|at| at + 1)
    }

    /// Scan a block that begins with a line; `offset` is its place in the file.
    pub fn scan(&mut self, block: &[u8], offset: u64, sink: &mut impl Sink) {
        let (mut at, mut heads, mut empty) = (0, 0, 0);
        while at < block.len() {
            let rest = &block[at..];
            let length = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest[..length].trim_ascii_end();
            let place = offset + at as u64;
            if let Some((mut head, message)) = head(&mut self.clock, line) {
                let (side, message) = connection(message, &mut head);
                let entry = Entry {
                    message,
                    ..Entry::new(place, head)
                };
                heads += 1;
                sink.pooler(&entry, side);
            } else if line.is_empty() {
                empty += 1;
            } else {
                sink.rejected(place, line);
            }
            at += length + 1;
        }
        sink.lines(heads, empty);
    }
}

/// Parse the prefix of a line: `2026-05-31 08:00:00.123 UTC [55] LOG `; older versions have no zone and brackets.
fn head<'a>(clock: &mut Clock, line: &'a [u8]) -> Option<(Head<'a>, &'a [u8])> {
    let (time, length) = clock.read(line)?;
    let rest = line[length..].strip_prefix(b" ")?;
    let bracket = rest.strip_prefix(b"[");
    let digits = bracket.unwrap_or(rest);
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    let pid = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    let rest = match bracket {
        Some(_) => digits[end..].strip_prefix(b"]")?,
        None => &digits[end..],
    };
    let rest = rest.strip_prefix(b" ")?;
    let space = memchr(b' ', rest)?;
    let severity = match &rest[..space] {
        b"NOISE" | b"DEBUG" => Severity::Debug,
        b"LOG" | b"INFO" => Severity::Log,
        b"WARNING" => Severity::Warning,
        b"ERROR" => Severity::Error,
        b"FATAL" => Severity::Fatal,
        _ => return None,
    };
    let head = Head {
        time: Some(time),
        pid,
        severity,
        ..Head::new()
    };
    Some((head, &rest[space + 1..]))
}

/// Remove `C-0x55d: database/user@host:port ` from the beginning of a message.
fn connection<'a>(message: &'a [u8], head: &mut Head<'a>) -> (Option<Side>, &'a [u8]) {
    let side = match message.first_chunk() {
        Some(b"C-0x") => Side::Client,
        Some(b"S-0x") => Side::Server,
        _ => return (None, message),
    };
    let parts = memchr::memmem::find(message, b": ").and_then(|colon| {
        let rest = &message[colon + 2..];
        let space = memchr(b' ', rest).unwrap_or(rest.len());
        let (who, text) = (&rest[..space], rest[space..].trim_ascii_start());
        let slash = memchr(b'/', who)?;
        let (database, user) = (&who[..slash], &who[slash + 1..]);
        let at = memrchr(b'@', user)?;
        Some((database, &user[..at], &user[at + 1..], text))
    });
    let Some((database, user, host, text)) = parts else {
        return (Some(side), message);
    };
    let known = |name: &'a [u8]| match name {
        b"(nodb)" | b"(nouser)" => b"",
        name => name,
    };
    (head.database, head.user) = (known(database), known(user));
    head.host = match host {
        b"unix" => b"[local]",
        host if host.starts_with(b"unix(") => b"[local]",
        host => memrchr(b':', host).map_or(host, |colon| &host[..colon]),
    };
    (Some(side), text)
}

impl<'a> PoolMessage<'a> {
    /// Parse a message without the connection before it.
    #[must_use]
    pub fn read(message: &'a [u8]) -> Self {
        if message.starts_with(b"login attempt: ")
            || message.starts_with(b"new connection to server")
        {
            return Self::Opened;
        }
        if let Some(rest) = message.strip_prefix(b"closing because: ") {
            let age = memchr::memmem::rfind(rest, b" (age=");
            let (why, seconds) = age.map_or((rest, &b""[..]), |at| (&rest[..at], &rest[at + 6..]));
            return Self::Closed {
                why,
                age: number(seconds).unwrap_or(0),
            };
        }
        let stats = message
            .strip_prefix(b"stats: ")
            .or_else(|| message.strip_prefix(b"Stats: "));
        match stats {
            Some(rest) => Self::Stats(Stats::read(rest)),
            None => Self::Other,
        }
    }
}

impl Stats {
    /// Parse `281 xacts/s, 1967 queries/s, in 118855 B/s, …, xact 17057 us, query 2360 us, wait time 8672 us`; before
    /// version 1.8 `5 req/s, in 300 b/s, out 200 b/s,query 1000 us`.
    fn read(text: &[u8]) -> Self {
        let mut stats = Self::default();
        for part in text.split(|byte| *byte == b',') {
            let part = part.trim_ascii();
            let digits = part
                .iter()
                .position(u8::is_ascii_digit)
                .unwrap_or(part.len());
            let (name, value) = part.split_at(digits);
            let unit = memchr(b' ', value).map_or(&b""[..], |at| &value[at + 1..]);
            let Some(value) = number(value) else {
                continue;
            };
            match (name.trim_ascii(), unit) {
                (b"", b"xacts/s") => stats.transactions = value,
                (b"", b"queries/s" | b"req/s") => stats.queries = value,
                (b"in", _) => stats.bytes_in = value,
                (b"out", _) => stats.bytes_out = value,
                (b"xact", _) => stats.transaction_micros = value,
                (b"query", _) => stats.query_micros = value,
                (b"wait" | b"wait time", _) => stats.wait_micros = value,
                _ => {}
            }
        }
        stats
    }
}

/// Parse the number at the beginning of a text.
fn number(text: &[u8]) -> Option<u64> {
    let end = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

form_choice!(Side { Client, Server });

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>, u64);

    impl Sink for Seen {
        fn entry(&mut self, _entry: &Entry<'_>) {}

        fn rejected(&mut self, _offset: u64, _line: &[u8]) {
            self.1 += 1;
        }

        fn pooler(&mut self, entry: &Entry<'_>, side: Option<Side>) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let head = &entry.head;
            self.0.push(format!(
                "{} {:?} {:?} {}/{}@{} {}",
                head.pid,
                head.severity,
                side,
                text(head.database),
                text(head.user),
                text(head.host),
                text(entry.message)
            ));
        }
    }

    #[test]
    fn lines_of_old_and_new_versions_are_read() {
        let log = "2018-09-12 16:09:05.313 3394 LOG C-0x562376c014e0: shop/ada@127.0.0.1:43866 login attempt: db=shop\n\
            2026-05-31 08:00:00.123 UTC [55] WARNING C-0x5: (nodb)/(nouser)@unix(77):6432 pooler error: no more \
            connections allowed (max_client_conn)\r\n\
            no line of it\n\
            2026-05-31 08:00:00.123 CEST [55] LOG S-0x7: shop/ada@10.0.0.7:5432 closing because: server idle timeout \
            (age=601s)\n\
            2026-05-31 08:00:00.123 UTC [55] LOG kernel file descriptor limit: 1024";
        let mut seen = Seen::default();
        Bouncer::default().scan(log.as_bytes(), 0, &mut seen);
        assert_eq!(
            seen.0,
            [
                "3394 Log Some(Client) shop/ada@127.0.0.1 login attempt: db=shop",
                "55 Warning Some(Client) /@[local] pooler error: no more connections allowed (max_client_conn)",
                "55 Log Some(Server) shop/ada@10.0.0.7 closing because: server idle timeout (age=601s)",
                "55 Log None /@ kernel file descriptor limit: 1024",
            ]
        );
        assert_eq!(seen.1, 1);
        assert!(!Bouncer::fits(
            b"2026-05-31 08:00:00.123 UTC [55] LOG:  ready"
        ));
    }

    #[test]
    fn messages_tell_openings_ends_and_averages() {
        assert_eq!(
            PoolMessage::read(b"login attempt: db=a user=b tls=no"),
            PoolMessage::Opened
        );
        assert_eq!(
            PoolMessage::read(b"closing because: client close request (age=12s)"),
            PoolMessage::Closed {
                why: b"client close request",
                age: 12
            }
        );
        let stats = Stats {
            transactions: 281,
            queries: 1_967,
            bytes_in: 118_855,
            bytes_out: 93_433,
            transaction_micros: 17_057,
            query_micros: 2_360,
            wait_micros: 8_672,
        };
        for text in [
            "stats: 281 xacts/s, 1967 queries/s, in 118855 B/s, out 93433 B/s, xact 17057 us, query 2360 us, wait time 8672 us",
            "stats: 281 xacts/s, 1967 queries/s, 0 client parses/s, 0 server parses/s, 0 binds/s, in 118855 B/s, out 93433 B/s, \
             xact 17057 us, query 2360 us, wait 8672 us",
        ] {
            assert_eq!(
                PoolMessage::read(text.as_bytes()),
                PoolMessage::Stats(stats)
            );
        }
        let old = PoolMessage::read(b"Stats: 5 req/s, in 300 b/s, out 200 b/s,query 1000 us");
        let PoolMessage::Stats(old) = old else {
            panic!("are averages");
        };
        assert_eq!((old.queries, old.query_micros), (5, 1_000));
        assert_eq!((old.bytes_in, old.bytes_out), (300, 200));
    }
}
