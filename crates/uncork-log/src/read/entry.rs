//! One entry of a log, in any format: a message and its additions.

use crate::read::bouncer::Side;
use crate::read::prefix::{Head, Severity};

/// One entry. Texts are as in the log: further lines of a message begin with a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The offset in its file, in bytes.
    pub offset: u64,
    /// Its prefix.
    pub head: Head<'a>,
    /// The server's identifier of the statement (`%Q`); 0 if it is not logged.
    pub query_id: i64,
    /// The message; if an addition stands alone, its text.
    pub message: &'a [u8],
    /// `DETAIL`.
    pub detail: &'a [u8],
    /// `HINT`.
    pub hint: &'a [u8],
    /// `CONTEXT`.
    pub context: &'a [u8],
    /// `STATEMENT`: what the session was doing.
    pub statement: &'a [u8],
    /// `QUERY`: the statement inside a function.
    pub query: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(crate) fn new(offset: u64, head: Head<'a>) -> Self {
        Self {
            offset,
            head,
            query_id: 0,
            message: b"",
            detail: b"",
            hint: b"",
            context: b"",
            statement: b"",
            query: b"",
        }
    }

    /// Whether it is an addition whose message is elsewhere, because other sessions wrote in
    /// between.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.head.severity.is_addition()
    }

    /// Store an addition by its severity.
    pub(crate) fn put(&mut self, severity: Severity, text: &'a [u8]) {
        match severity {
            Severity::Detail => self.detail = text,
            Severity::Hint => self.hint = text,
            Severity::Context => self.context = text,
            Severity::Statement => self.statement = text,
            Severity::Query => self.query = text,
            Severity::Location => {}
            _ => self.message = text,
        }
    }
}

/// Receives what a scanner finds.
pub trait Sink {
    /// An entry.
    fn entry(&mut self, entry: &Entry<'_>);

    /// A line that could not be read, and its offset.
    fn rejected(&mut self, offset: u64, line: &[u8]);

    /// The number of lines in a block that begin an entry or an addition, and of those that continue one or are empty.
    /// Together with rejected lines and foreign records these are all lines of the block.
    fn lines(&mut self, _heads: u64, _continuations: u64) {}

    /// A line of a pooler, and the side of its connection; the message does not include the connection.
    fn pooler(&mut self, _entry: &Entry<'_>, _side: Option<Side>) {}

    /// A whole record of another program, such as an operator that writes to the same stream.
    fn foreign(&mut self) {}
}
