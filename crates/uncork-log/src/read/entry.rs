//! One entry of a log, whatever the dialect: a message and what belongs to it.

use crate::read::bouncer::Side;
use crate::read::prefix::{Head, Severity};

/// One entry. Texts are as they stand in the log: further lines of a message begin with a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it begins in its file, in bytes.
    pub offset: u64,
    /// What its first line says of itself.
    pub head: Head<'a>,
    /// The message; of an addition that stands alone, its text.
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
            message: b"",
            detail: b"",
            hint: b"",
            context: b"",
            statement: b"",
            query: b"",
        }
    }

    /// Whether it is an addition whose message stands elsewhere: other sessions wrote in between.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.head.severity.is_addition()
    }

    /// Puts a text where its severity belongs.
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

/// Who is told what a scanner finds.
pub trait Sink {
    /// An entry.
    fn entry(&mut self, entry: &Entry<'_>);

    /// A line that belongs to nothing, and where it begins.
    fn rejected(&mut self, offset: u64, line: &[u8]);

    /// How many lines of a block were the first ones of entries or additions, and how many went on with one or
    /// were empty. Together with rejected lines and foreign records these are all lines of the block.
    fn lines(&mut self, _heads: u64, _continuations: u64) {}

    /// A line of a pooler, and whose connection it is about; its message is without that connection.
    fn pooler(&mut self, _entry: &Entry<'_>, _side: Option<Side>) {}

    /// A whole record of another program, such as an operator that writes to the same stream.
    fn foreign(&mut self) {}
}
