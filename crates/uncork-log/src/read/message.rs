//! Parses the messages that are counted.

/// A parsed message of severity `LOG`, or of an error about locks and cancellations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Message<'a> {
    /// A duration (`log_duration`, `log_min_duration_statement`, `auto_explain`).
    Duration {
        /// In microseconds.
        micros: u64,
        /// The step that took this long.
        what: Step,
        /// Its text: a statement, or a plan with its `Query Text`; empty if it is not logged.
        text: &'a [u8],
    },
    /// A statement before it runs (`log_statement`).
    Statement {
        /// How it was sent.
        what: Step,
        /// Its text.
        text: &'a [u8],
    },
    /// A client has connected, and is not authenticated yet.
    Received {
        /// Its address or name.
        host: &'a [u8],
    },
    /// A session has begun.
    Authorized,
    /// A session has ended.
    Disconnected {
        /// How long it lasted, in microseconds.
        micros: u64,
    },
    /// A temporary file was removed.
    TemporaryFile {
        /// How large it was, in bytes.
        bytes: u64,
    },
    /// A session waits for a lock for longer than `deadlock_timeout`, or has acquired it after
    /// that.
    Lock {
        /// Whether it still waits, has acquired the lock, or was part of a deadlock.
        state: LockState,
        /// The waiting process.
        pid: u32,
        /// `ShareLock on transaction 7`.
        what: &'a [u8],
        /// Duration of the wait so far, in microseconds.
        micros: u64,
    },
    /// A deadlock was broken by cancelling this statement.
    Deadlock,
    /// A checkpoint or restartpoint begins.
    CheckpointStarting {
        /// `time`, `wal`, `immediate force wait`, …
        reason: &'a [u8],
    },
    /// A checkpoint or restartpoint is done.
    CheckpointComplete {
        /// Buffers written.
        buffers: u64,
        /// Duration of writing, of syncing, and in total, in microseconds.
        micros: [u64; 3],
        /// WAL since the checkpoint before it, in kibibytes.
        distance: u64,
    },
    /// Autovacuum has vacuumed or analysed a table.
    Autovacuum {
        /// Whether it only analysed.
        analyze: bool,
        /// `database.schema.table`.
        table: &'a [u8],
        /// Duration, in microseconds; 0 if it is not logged.
        micros: u64,
    },
    /// A statement was cancelled.
    Cancelled {
        /// `user request`, `statement timeout`, …
        why: &'a [u8],
    },
    /// Anything else.
    Other,
}

/// A step of running a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A statement in the simple protocol.
    Statement,
    /// Parse of the extended protocol.
    Parse,
    /// Bind of the extended protocol.
    Bind,
    /// Execute of the extended protocol.
    Execute,
    /// A further fetch from a portal.
    Fetch,
    /// A plan of `auto_explain`.
    Plan,
    /// A call of the fast-path interface.
    Function,
    /// Unknown: only a duration is logged (`log_duration`).
    Unknown,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 8] = [
        Self::Statement,
        Self::Parse,
        Self::Bind,
        Self::Execute,
        Self::Fetch,
        Self::Plan,
        Self::Function,
        Self::Unknown,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Parse => "parse",
            Self::Bind => "bind",
            Self::Execute => "execute",
            Self::Fetch => "fetch",
            Self::Plan => "plan",
            Self::Function => "function",
            Self::Unknown => "untold",
        }
    }

    /// Whether a statement runs in this step, so that it counts as an execution.
    #[must_use]
    pub fn runs(self) -> bool {
        matches!(
            self,
            Self::Statement | Self::Execute | Self::Fetch | Self::Function
        )
    }
}

/// The state of a lock wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockState {
    /// The wait goes on.
    Waiting,
    /// The lock was acquired.
    Acquired,
    /// The wait was part of a deadlock.
    Deadlocked,
}

impl<'a> Message<'a> {
    /// Parse a message.
    #[must_use]
    pub fn read(text: &'a [u8]) -> Self {
        let found = match text.first() {
            Some(b'd') => after(text, b"duration: ")
                .and_then(duration)
                .or_else(|| after(text, b"disconnection: session time: ").and_then(disconnected))
                .or_else(|| {
                    text.starts_with(b"deadlock detected")
                        .then_some(Self::Deadlock)
                }),
            Some(b's' | b'e' | b'f') => statement(text),
            Some(b'c') => connection(text)
                .or_else(|| checkpoint(text, b"checkpoint "))
                .or_else(|| cancelled(text, b"canceling statement due to ")),
            Some(b't') => after(text, b"temporary file: ")
                .and_then(temporary_file)
                .or_else(|| cancelled(text, b"terminating connection due to ")),
            Some(b'p') => after(text, b"process ").and_then(lock),
            Some(b'a') => autovacuum(text),
            Some(b'r') => after(text, b"replication ")
                .and_then(connection)
                .or_else(|| checkpoint(text, b"restartpoint ")),
            _ => None,
        };
        found.unwrap_or(Self::Other)
    }
}

fn after<'a>(text: &'a [u8], beginning: &[u8]) -> Option<&'a [u8]> {
    text.strip_prefix(beginning)
}

/// Parse `0.123 ms  statement: SELECT 1`.
fn duration(text: &[u8]) -> Option<Message<'_>> {
    let (micros, length) = milliseconds(text)?;
    let rest = after(&text[length..], b" ms")?;
    let rest = rest.trim_ascii_start();
    if rest.is_empty() {
        return Some(Message::Duration {
            micros,
            what: Step::Unknown,
            text: b"",
        });
    }
    let (what, text) = if let Some(plan) = after(rest, b"plan:") {
        (Step::Plan, plan.trim_ascii_start())
    } else {
        step(rest)?
    };
    Some(Message::Duration { micros, what, text })
}

fn statement(text: &[u8]) -> Option<Message<'_>> {
    step(text).map(|(what, text)| Message::Statement { what, text })
}

/// Parse `statement: SELECT 1`, `execute <unnamed>: SELECT 1`, `parse S_1: …`, `bind S_1/C_2: …`.
fn step(text: &[u8]) -> Option<(Step, &[u8])> {
    if let Some(sql) = after(text, b"statement: ") {
        return Some((Step::Statement, sql));
    }
    if text == b"statement:" {
        return Some((Step::Statement, b""));
    }
    if let Some(call) = after(text, b"fastpath function call: ") {
        return Some((Step::Function, call));
    }
    let (step, rest) = if let Some(rest) = after(text, b"execute fetch from ") {
        (Step::Fetch, rest)
    } else if let Some(rest) = after(text, b"execute ") {
        (Step::Execute, rest)
    } else if let Some(rest) = after(text, b"parse ") {
        (Step::Parse, rest)
    } else {
        (Step::Bind, after(text, b"bind ")?)
    };
    // Names of prepared statements come from drivers, and contain no colon and space.
    match memchr::memmem::find(&rest[..rest.len().min(256)], b": ") {
        Some(name) => Some((step, &rest[name + 2..])),
        // An empty statement: the space at the end of the line is not part of the message.
        None => rest.strip_suffix(b":").map(|_| (step, &b""[..])),
    }
}

fn connection(text: &[u8]) -> Option<Message<'_>> {
    let rest = after(text, b"connection ")?;
    if let Some(host) = after(rest, b"received: host=") {
        let end = memchr::memchr(b' ', host).unwrap_or(host.len());
        return Some(Message::Received { host: &host[..end] });
    }
    rest.starts_with(b"authorized: ")
        .then_some(Message::Authorized)
}

/// Parse `0:00:00.170 user=…`.
fn disconnected(text: &[u8]) -> Option<Message<'_>> {
    let (hours, rest) = whole(text)?;
    let (minutes, rest) = whole(after(rest, b":")?)?;
    let (seconds, _) = decimal(after(rest, b":")?, 6)?;
    Some(Message::Disconnected {
        micros: (hours * 3_600 + minutes * 60) * 1_000_000 + seconds,
    })
}

/// Parse `path "base/pgsql_tmp/…", size 1073741824`.
fn temporary_file(text: &[u8]) -> Option<Message<'_>> {
    let size = memchr::memmem::rfind(text, b", size ")?;
    let (bytes, _) = whole(&text[size + 7..])?;
    Some(Message::TemporaryFile { bytes })
}

/// Parse `4882 still waiting for ShareLock on transaction 7 after 1000.119 ms`.
fn lock(text: &[u8]) -> Option<Message<'_>> {
    let (pid, rest) = whole(text)?;
    let (state, rest) = [
        (LockState::Waiting, &b" still waiting for "[..]),
        (LockState::Acquired, b" acquired "),
        (
            LockState::Deadlocked,
            b" detected deadlock while waiting for ",
        ),
        (LockState::Deadlocked, b" avoided deadlock for "),
    ]
    .into_iter()
    .find_map(|(state, words)| after(rest, words).map(|rest| (state, rest)))?;
    let end = memchr::memmem::rfind(rest, b" after ")?;
    let (micros, _) = milliseconds(&rest[end + 7..])?;
    let what = &rest[..end];
    let what = what
        .strip_suffix(b" by rearranging queue order")
        .unwrap_or(what);
    Some(Message::Lock {
        state,
        pid: u32::try_from(pid).ok()?,
        what,
        micros,
    })
}

fn checkpoint<'a>(text: &'a [u8], name: &[u8]) -> Option<Message<'a>> {
    let rest = after(text, name)?;
    if let Some(reason) = after(rest, b"starting:") {
        return Some(Message::CheckpointStarting {
            reason: reason.trim_ascii(),
        });
    }
    let rest = after(rest, b"complete: wrote ")?;
    let (buffers, _) = whole(rest)?;
    let seconds = |name: &[u8]| {
        memchr::memmem::find(rest, name)
            .and_then(|at| decimal(&rest[at + name.len()..], 6))
            .map_or(0, |(micros, _)| micros)
    };
    let distance = memchr::memmem::find(rest, b"distance=")
        .and_then(|at| whole(&rest[at + 9..]))
        .map_or(0, |(kibibytes, _)| kibibytes);
    Some(Message::CheckpointComplete {
        buffers,
        micros: [seconds(b" write="), seconds(b" sync="), seconds(b" total=")],
        distance,
    })
}

/// Parse `automatic vacuum of table "d.s.t": …`, `automatic aggressive vacuum to prevent wraparound of …`.
fn autovacuum(text: &[u8]) -> Option<Message<'_>> {
    let rest = after(text, b"automatic ")?;
    let at = memchr::memmem::find(&rest[..rest.len().min(80)], b"of table \"")?;
    let table = &rest[at + 10..];
    let end = memchr::memchr(b'"', table)?;
    // "elapsed: 0.07 s" is at the end; "elapsed 0.07 sec" in some versions.
    let micros = memchr::memmem::rfind(rest, b"elapsed")
        .map(|at| rest[at + 7..].trim_ascii_start())
        .map(|rest| rest.strip_prefix(b":").unwrap_or(rest).trim_ascii_start())
        .and_then(|rest| decimal(rest, 6))
        .map_or(0, |(micros, _)| micros);
    Some(Message::Autovacuum {
        analyze: rest.starts_with(b"analyze"),
        table: &table[..end],
        micros,
    })
}

fn cancelled<'a>(text: &'a [u8], beginning: &[u8]) -> Option<Message<'a>> {
    after(text, beginning).map(|why| Message::Cancelled { why })
}

/// Parse milliseconds with decimals; return microseconds and the number of bytes.
fn milliseconds(text: &[u8]) -> Option<(u64, usize)> {
    decimal(text, 3)
}

/// Parse a decimal number times ten to the power of `places`; return it and the number of bytes.
fn decimal(text: &[u8], places: usize) -> Option<(u64, usize)> {
    let (mut number, rest) = whole(text)?;
    let mut at = text.len() - rest.len();
    let mut left = places;
    if rest.first() == Some(&b'.') {
        at += 1;
        while let Some(byte) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
            if left > 0 {
                number = number
                    .checked_mul(10)?
                    .checked_add(u64::from(byte - b'0'))?;
                left -= 1;
            }
            at += 1;
        }
    }
    for _ in 0..left {
        number = number.checked_mul(10)?;
    }
    Some((number, at))
}

/// Parse an integer; return it and the rest of the text.
fn whole(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let number = text[..length].iter().try_fold(0_u64, |sum, byte| {
        sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
    })?;
    (length > 0).then_some((number, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Message<'_> {
        Message::read(text.as_bytes())
    }

    #[test]
    fn durations_are_exact_and_have_their_text() {
        for (text, micros, what, sql) in [
            (
                "duration: 21.376 ms  statement: SELECT 1",
                21_376,
                Step::Statement,
                "SELECT 1",
            ),
            ("duration: 0.027 ms  statement: ", 27, Step::Statement, ""),
            ("duration: 12 ms  statement:", 12_000, Step::Statement, ""),
            (
                "duration: 12 ms  execute <unnamed>:",
                12_000,
                Step::Execute,
                "",
            ),
            (
                "duration: 3600000.001 ms  parse <unnamed>: SELECT $1",
                3_600_000_001,
                Step::Parse,
                "SELECT $1",
            ),
            (
                "duration: 0.1 ms  bind S_1/C_2: SELECT $1",
                100,
                Step::Bind,
                "SELECT $1",
            ),
            (
                "duration: 0.1 ms  execute S_1/C_2: SELECT ': '",
                100,
                Step::Execute,
                "SELECT ': '",
            ),
            (
                "duration: 0.1 ms  execute fetch from S_1/C_2: SELECT 2",
                100,
                Step::Fetch,
                "SELECT 2",
            ),
            (
                "duration: 0.008 ms  plan:\n\tQuery Text: SELECT 1;\n\tResult",
                8,
                Step::Plan,
                "Query Text: SELECT 1;\n\tResult",
            ),
            (
                "duration: 1.5 ms  fastpath function call: \"lo_open\" (OID 952)",
                1_500,
                Step::Function,
                "\"lo_open\" (OID 952)",
            ),
            ("duration: 0.5 ms", 500, Step::Unknown, ""),
        ] {
            let text_of = Message::Duration {
                micros,
                what,
                text: sql.as_bytes(),
            };
            assert_eq!(read(text), text_of, "{text}");
        }
        for text in [
            "duration: x ms",
            "duration: 1.5",
            "duration: 99999999999999999999 ms",
            "duration: 1 ms  dance x: y",
        ] {
            assert_eq!(read(text), Message::Other, "{text}");
        }
    }

    #[test]
    fn statements_before_they_run() {
        let sql = &b"SELECT 1"[..];
        assert_eq!(
            read("statement: SELECT 1"),
            Message::Statement {
                what: Step::Statement,
                text: sql
            }
        );
        assert_eq!(
            read("execute <unnamed>: SELECT 1"),
            Message::Statement {
                what: Step::Execute,
                text: sql
            }
        );
        assert_eq!(read("startup process (PID 5) exited"), Message::Other);
    }

    #[test]
    fn sessions_begin_and_end() {
        assert_eq!(
            read("connection received: host=10.0.0.1 port=5"),
            Message::Received { host: b"10.0.0.1" }
        );
        assert_eq!(
            read("connection received: host=[local]"),
            Message::Received { host: b"[local]" }
        );
        for text in [
            "connection authorized: user=a database=b",
            "replication connection authorized: user=a",
        ] {
            assert_eq!(read(text), Message::Authorized);
        }
        assert_eq!(
            read("disconnection: session time: 1:02:03.170 user=a database=b host=[local]"),
            Message::Disconnected {
                micros: 3_723_170_000
            }
        );
    }

    #[test]
    fn locks_files_and_cancellations() {
        assert_eq!(
            read(
                "process 4882 still waiting for ShareLock on transaction 259635360 after 1000.119 ms"
            ),
            Message::Lock {
                state: LockState::Waiting,
                pid: 4_882,
                what: b"ShareLock on transaction 259635360",
                micros: 1_000_119
            }
        );
        assert_eq!(
            read(
                "process 7 acquired ExclusiveLock on tuple (0,1) of relation 16384 of database 5 after 20.5 ms"
            ),
            Message::Lock {
                state: LockState::Acquired,
                pid: 7,
                what: b"ExclusiveLock on tuple (0,1) of relation 16384 of database 5",
                micros: 20_500
            }
        );
        assert_eq!(
            read(
                "process 4849 detected deadlock while waiting for ShareLock on transaction 2 after 1000.134 ms"
            ),
            Message::Lock {
                state: LockState::Deadlocked,
                pid: 4_849,
                what: b"ShareLock on transaction 2",
                micros: 1_000_134
            }
        );
        assert_eq!(read("deadlock detected"), Message::Deadlock);
        assert_eq!(
            read("temporary file: path \"base/pgsql_tmp/pgsql_tmp7.0\", size 1073741824"),
            Message::TemporaryFile {
                bytes: 1_073_741_824
            }
        );
        assert_eq!(
            read("canceling statement due to statement timeout"),
            Message::Cancelled {
                why: b"statement timeout"
            }
        );
        assert_eq!(
            read("terminating connection due to administrator command"),
            Message::Cancelled {
                why: b"administrator command"
            }
        );
    }

    #[test]
    fn checkpoints_and_autovacuum() {
        assert_eq!(
            read("checkpoint starting: time"),
            Message::CheckpointStarting { reason: b"time" }
        );
        assert_eq!(
            read(
                "checkpoint complete: wrote 44 buffers (0.3%), wrote 1 SLRU buffers; 0 WAL file(s) added, 0 removed, 0 recycled; write=4.327 s, sync=0.007 s, total=4.343 s; sync files=11, longest=0.004 s, average=0.001 s; distance=260 kB, estimate=260 kB; lsn=0/1, redo lsn=0/1"
            ),
            Message::CheckpointComplete {
                buffers: 44,
                micros: [4_327_000, 7_000, 4_343_000],
                distance: 260
            }
        );
        assert_eq!(
            read(
                "automatic vacuum of table \"d.s.t\": index scans: 1\n\tpages: 0 removed\n\tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.07 s"
            ),
            Message::Autovacuum {
                analyze: false,
                table: b"d.s.t",
                micros: 70_000
            }
        );
        assert_eq!(
            read("automatic analyze of table \"d.s.t\""),
            Message::Autovacuum {
                analyze: true,
                table: b"d.s.t",
                micros: 0
            }
        );
    }
}
