//! One entry as a row of the table of all entries.

use std::borrow::Cow;

use crate::gather::example::Explained;
use crate::read::entry::Entry;
use crate::read::message::{LockState, Message, Step};
use crate::read::prefix::Severity;

/// One entry as a row. Statements are separated from messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow<'a> {
    /// `duration`, `statement`, `error`, …
    pub kind: &'static str,
    /// The step of running a statement.
    pub step: Option<Step>,
    /// Duration of a statement, a wait, a session, a checkpoint or a vacuum, in microseconds.
    pub micros: Option<u64>,
    /// Size of a temporary file, in bytes.
    pub bytes: Option<u64>,
    /// The statement; for other messages, the statement during which they were logged.
    pub statement: &'a [u8],
    /// The message, unless the other columns contain all of it.
    pub message: &'a [u8],
    /// The statement's parameters.
    pub parameters: Cow<'a, [u8]>,
    /// Further details.
    pub detail: &'a [u8],
    /// A plan of `auto_explain`, with its statement.
    pub plan: &'a [u8],
}

impl<'a> EntryRow<'a> {
    /// Read an entry.
    #[must_use]
    pub fn read(entry: &Entry<'a>) -> Self {
        let mut row = Self {
            kind: "other",
            step: None,
            micros: None,
            bytes: None,
            statement: entry.statement,
            message: entry.message,
            parameters: Cow::Borrowed(b""),
            detail: entry.detail,
            plan: b"",
        };
        if entry.stands_alone() {
            row.kind = "addition";
            return row;
        }
        if entry.head.severity >= Severity::Warning {
            row.kind = "error";
            return row;
        }
        match Message::read(entry.message) {
            Message::Duration { micros, what, text } => {
                (row.kind, row.micros) = ("duration", Some(micros));
                row.run(what, text, entry);
            }
            Message::Statement { what, text } => {
                row.kind = "statement";
                row.run(what, text, entry);
            }
            Message::Received { .. } | Message::Authorized => row.kind = "connection",
            Message::Disconnected { micros } => {
                (row.kind, row.micros) = ("disconnection", Some(micros));
            }
            Message::TemporaryFile { bytes } => {
                (row.kind, row.bytes) = ("temporary file", Some(bytes));
            }
            Message::Lock { state, micros, .. } => {
                row.kind = match state {
                    LockState::Waiting => "lock waits",
                    LockState::Acquired => "lock acquired",
                    LockState::Deadlocked => "lock deadlocked",
                };
                row.micros = Some(micros);
            }
            Message::Deadlock => row.kind = "deadlock",
            Message::CheckpointStarting { .. } => row.kind = "checkpoint begins",
            Message::CheckpointComplete { micros, .. } => {
                (row.kind, row.micros) = ("checkpoint", Some(micros[2]));
            }
            Message::Autovacuum {
                analyze, micros, ..
            } => {
                row.kind = if analyze { "autoanalyze" } else { "autovacuum" };
                row.micros = Some(micros);
            }
            Message::Cancelled { .. } => row.kind = "cancellation",
            Message::Other => {}
        }
        row
    }

    /// Read an entry of a pooler.
    #[must_use]
    pub fn pooler(entry: &Entry<'a>) -> Self {
        let kind = if entry.head.severity >= Severity::Warning {
            "error"
        } else {
            "pooler"
        };
        Self {
            kind,
            ..Self::read(entry)
        }
    }

    fn run(&mut self, what: Step, text: &'a [u8], entry: &Entry<'a>) {
        self.step = Some(what);
        self.message = b"";
        if what == Step::Plan {
            (self.statement, self.plan) = (b"", text);
            self.parameters = Explained::read(text).parameters;
        } else {
            self.statement = text;
            let (parameters, detail) = parameters(entry.detail);
            (self.parameters, self.detail) = (Cow::Borrowed(parameters), detail);
        }
    }
}

/// Split a detail into parameters, if it is `parameters: $1 = '5', $2 = NULL` (`Parameters:` in some versions), and
/// other details.
pub(crate) fn parameters(detail: &[u8]) -> (&[u8], &[u8]) {
    let found = [&b"parameters: "[..], b"Parameters: "]
        .into_iter()
        .find_map(|beginning| detail.strip_prefix(beginning));
    match found {
        Some(parameters) => (parameters, b""),
        None => (b"", detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::prefix::Head;

    fn entry(message: &'static str) -> Entry<'static> {
        let mut entry = Entry::new(0, Head::new());
        entry.message = message.as_bytes();
        entry
    }

    #[test]
    fn entries_tell_their_kind_and_figures() {
        for (message, kind, micros, bytes) in [
            (
                "duration: 1.5 ms  statement: SELECT 1",
                "duration",
                Some(1_500),
                None,
            ),
            ("statement: SELECT 1", "statement", None, None),
            (
                "temporary file: path \"base/1\", size 8192",
                "temporary file",
                None,
                Some(8_192),
            ),
            (
                "process 7 acquired ShareLock on transaction 8 after 1000.5 ms",
                "lock acquired",
                Some(1_000_500),
                None,
            ),
            ("database system is ready", "other", None, None),
        ] {
            let entry = entry(message);
            let row = EntryRow::read(&entry);
            assert_eq!(
                (row.kind, row.micros, row.bytes),
                (kind, micros, bytes),
                "{message}"
            );
        }
    }

    #[test]
    fn a_statement_stands_apart_from_its_message() {
        let mut one = entry("duration: 1.5 ms  execute <unnamed>: SELECT $1");
        one.detail = b"parameters: $1 = '5'";
        let row = EntryRow::read(&one);
        assert_eq!(row.step, Some(Step::Execute));
        assert_eq!(row.statement, b"SELECT $1");
        assert_eq!(
            (&*row.parameters, row.detail, row.message),
            (&b"$1 = '5'"[..], &b""[..], &b""[..])
        );
    }
}
