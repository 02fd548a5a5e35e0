//! Parses answers only as far as a measurement needs: message boundaries, errors, row counts, and
//! the end of the answer.

use postgres_protocol::message::backend::{
    COMMAND_COMPLETE_TAG, COPY_IN_RESPONSE_TAG, DATA_ROW_TAG, EMPTY_QUERY_RESPONSE_TAG,
    ERROR_RESPONSE_TAG, PARSE_COMPLETE_TAG, PORTAL_SUSPENDED_TAG, READY_FOR_QUERY_TAG,
    ROW_DESCRIPTION_TAG,
};
use uncork_model::DigestMode;

use super::captured::Captured;
use crate::{Failure, RowsDigest};

const HEADER: usize = 5;
/// The server's longest message; a greater length is not valid.
const LONGEST: usize = 1 << 30;
const IDLE: u8 = b'I';

/// What the next answer belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Awaited {
    /// A statement in a pipeline: it ends before its `Sync` does.
    pub(crate) in_pipeline: bool,
    /// Its rows are captured.
    pub(crate) captured: bool,
    /// Its COPY data has been sent.
    pub(crate) copies: bool,
}

/// An answer up to `ReadyForQuery`.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Rows returned or changed, as the server counts them.
    pub(crate) rows: u64,
    /// The error, if it failed.
    pub(crate) failure: Option<Box<Failure>>,
    /// Whether the session is inside a transaction, intact or failed.
    pub(crate) in_transaction: bool,
    /// A hash of the answer, if digests are requested.
    pub(crate) hash: u128,
}

/// What was found in the bytes received so far.
#[derive(Debug)]
pub(crate) enum Found {
    /// No complete message; `need` bytes complete the next one (0: unknown).
    Nothing {
        /// Bytes needed from the first unread one on.
        need: usize,
    },
    /// The end of an answer.
    Reply(Reply),
    /// The end of a statement in a pipeline.
    Completed {
        /// Rows returned or changed.
        rows: u64,
        /// A hash of the answer.
        hash: u128,
    },
    /// The end of a failed statement in a pipeline, and of all that follow up to the next `Sync`.
    Failed(Box<Failure>),
    /// The server waits for data of `COPY … FROM STDIN`, and there is none.
    CopyIn,
    /// The server closes the connection with an error.
    Farewell(Box<Failure>),
    /// The bytes are not the PostgreSQL protocol.
    Garbled,
}

/// Parses answers, and keeps the state of the current one.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    skip: usize,
    rows: u64,
    failure: Option<Box<Failure>>,
    /// Whether the server has parsed the statement's text.
    parsed: bool,
    digest: RowsDigest,
    captured: Captured,
}

impl ReplyReader {
    pub(crate) fn new(mode: DigestMode) -> Self {
        Self {
            skip: 0,
            rows: 0,
            failure: None,
            parsed: false,
            digest: RowsDigest::new(mode),
            captured: Captured::default(),
        }
    }

    /// Drop the current answer: the connection is gone.
    pub(crate) fn reset(&mut self) {
        self.skip = 0;
        self.rows = 0;
        self.failure = None;
        self.parsed = false;
        self.digest.finish(0, "");
        self.captured = Captured::default();
    }

    /// What was captured from the last answer with captured rows.
    pub(crate) fn take_captured(&mut self) -> Captured {
        std::mem::take(&mut self.captured)
    }

    /// Whether the server has parsed the text of the statement that ended last. From then on it
    /// knows it by name, even if its execution failed.
    pub(crate) fn take_parsed(&mut self) -> bool {
        std::mem::take(&mut self.parsed)
    }

    /// Parse further bytes; return how many are processed, and what was found.
    pub(crate) fn read(&mut self, bytes: &[u8], awaited: Awaited) -> (usize, Found) {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            if self.skip > 0 {
                let skipped = self.skip.min(rest.len());
                self.skip -= skipped;
                at += skipped;
                if self.skip > 0 {
                    return (at, Found::Nothing { need: 0 });
                }
                continue;
            }
            let [tag, a, b, c, d, ..] = *rest else {
                return (at, Found::Nothing { need: HEADER });
            };
            let length = u32::from_be_bytes([a, b, c, d]) as usize + 1;
            if !(HEADER..=LONGEST).contains(&length) {
                return (at, Found::Garbled);
            }
            let wanted = match tag {
                COMMAND_COMPLETE_TAG | ERROR_RESPONSE_TAG | READY_FOR_QUERY_TAG => true,
                DATA_ROW_TAG => awaited.captured || self.digest.is_wanted(),
                ROW_DESCRIPTION_TAG => awaited.captured,
                EMPTY_QUERY_RESPONSE_TAG | PORTAL_SUSPENDED_TAG => awaited.in_pipeline,
                PARSE_COMPLETE_TAG => {
                    self.parsed = true;
                    false
                }
                COPY_IN_RESPONSE_TAG if !awaited.copies => {
                    self.skip = length;
                    return (at, Found::CopyIn);
                }
                _ => false,
            };
            if !wanted {
                self.skip = length;
                continue;
            }
            if rest.len() < length {
                return (at, Found::Nothing { need: length });
            }
            let body = &rest[HEADER..length];
            at += length;
            match tag {
                ROW_DESCRIPTION_TAG => self.captured.describe(body),
                DATA_ROW_TAG => {
                    if awaited.captured {
                        self.captured.row(body);
                    }
                    if self.digest.is_wanted() {
                        self.digest.row(body);
                    }
                }
                COMMAND_COMPLETE_TAG => {
                    self.rows += row_count(body);
                    if awaited.in_pipeline {
                        return (at, self.complete());
                    }
                    self.captured.complete();
                }
                EMPTY_QUERY_RESPONSE_TAG | PORTAL_SUSPENDED_TAG => return (at, self.complete()),
                ERROR_RESPONSE_TAG => {
                    let error = ServerError::parse(body);
                    let ends_session = error.ends_session();
                    let ServerError {
                        sqlstate, message, ..
                    } = error;
                    let failure = Box::new(Failure {
                        code: sqlstate,
                        message,
                        place: None,
                    });
                    if ends_session {
                        return (at, Found::Farewell(failure));
                    }
                    if awaited.in_pipeline {
                        self.rows = 0;
                        return (at, Found::Failed(failure));
                    }
                    self.failure.get_or_insert(failure);
                }
                _ => return (at, Found::Reply(self.finish(body.first() != Some(&IDLE)))),
            }
        }
    }

    fn complete(&mut self) -> Found {
        let rows = std::mem::take(&mut self.rows);
        Found::Completed {
            rows,
            hash: self.digest.finish(rows, ""),
        }
    }

    fn finish(&mut self, in_transaction: bool) -> Reply {
        let failure = self.failure.take();
        let rows = std::mem::take(&mut self.rows);
        let sqlstate = failure.as_ref().map_or("", |failure| &failure.code);
        let hash = self.digest.finish(rows, sqlstate);
        Reply {
            rows,
            failure,
            in_transaction,
            hash,
        }
    }
}

/// The number at the end of a command tag: `SELECT 5`, `INSERT 0 1`; 0 if there is none.
fn row_count(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
    let digits = tag
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = &tag[tag.len() - digits..];
    number.iter().fold(0_u64, |sum, digit| {
        sum.wrapping_mul(10) + u64::from(digit - b'0')
    })
}

/// An error message of the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) severity: String,
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    pub(crate) position: Option<u32>,
}

impl ServerError {
    /// Read the body of an `ErrorResponse`.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|&byte| byte == 0) {
            let Some((code, text)) = field.split_first() else {
                continue;
            };
            let text = || String::from_utf8_lossy(text).into_owned();
            match code {
                b'V' => error.severity = text(),
                b'C' => error.sqlstate = text(),
                b'M' => error.message = text(),
                b'P' => error.position = text().parse().ok(),
                _ => {}
            }
        }
        error
    }

    /// Whether the server closes the connection after this error.
    pub(crate) fn ends_session(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short");
        [&[tag], length.to_be_bytes().as_slice(), body].concat()
    }

    fn answer() -> Vec<u8> {
        [
            message(b'2', b""),
            message(b'D', b"\0\x01\0\0\0\x01a"),
            message(b'N', b"a notice in between\0"),
            message(b'D', b"\0\x01\0\0\0\x01b"),
            message(b'C', b"SELECT 2\0"),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    fn read_in_chunks(bytes: &[u8], chunk: usize, mode: DigestMode) -> Vec<Reply> {
        let mut reader = ReplyReader::new(mode);
        let mut buffer = Vec::new();
        let mut replies = Vec::new();
        for part in bytes.chunks(chunk) {
            buffer.extend_from_slice(part);
            loop {
                let (used, found) = reader.read(&buffer, Awaited::default());
                buffer.drain(..used);
                match found {
                    Found::Reply(reply) => replies.push(reply),
                    Found::Nothing { need } => {
                        assert!(need == 0 || need > buffer.len());
                        break;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(buffer, [] as [u8; 0]);
        replies
    }

    #[test]
    fn an_answer_is_the_same_however_it_is_cut() {
        let bytes = [answer(), answer()].concat();
        for mode in [DigestMode::None, DigestMode::Multiset, DigestMode::Ordered] {
            let whole = read_in_chunks(&bytes, bytes.len(), mode);
            assert_eq!(whole.len(), 2);
            assert_eq!(whole[0].hash, whole[1].hash);
            for chunk in 1..bytes.len() {
                let replies = read_in_chunks(&bytes, chunk, mode);
                assert_eq!(replies.len(), 2);
                assert_eq!((replies[0].rows, replies[0].in_transaction), (2, false));
                assert_eq!(replies[0].hash, whole[0].hash);
            }
        }
    }

    #[test]
    fn errors_carry_their_state_and_leave_the_session() {
        let error = message(b'E', b"SERREUR\0VERROR\0C23505\0Mtwice\0P12\0\0");
        let bytes = [error, message(b'Z', b"E")].concat();
        let replies = read_in_chunks(&bytes, 3, DigestMode::None);
        let failure = replies[0].failure.as_deref().expect("failed");
        assert_eq!(
            (failure.code.as_str(), failure.message.as_str()),
            ("23505", "twice")
        );
        assert!(replies[0].in_transaction);
    }

    #[test]
    fn a_fatal_error_is_a_farewell() {
        let bytes = message(b'E', b"VFATAL\0C57P01\0Mgoing down\0\0");
        let (_, found) = ReplyReader::new(DigestMode::None).read(&bytes, Awaited::default());
        assert!(matches!(found, Found::Farewell(failure) if failure.code == "57P01"));
    }

    #[test]
    fn copy_in_and_rubbish_are_noticed() {
        let mut reader = ReplyReader::new(DigestMode::None);
        assert!(matches!(
            reader.read(&message(b'G', b"\0\0\0"), Awaited::default()),
            (0, Found::CopyIn)
        ));
        let mut reader = ReplyReader::new(DigestMode::None);
        assert!(matches!(
            reader.read(b"C\0\0\0\x01", Awaited::default()),
            (0, Found::Garbled)
        ));
    }

    #[test]
    fn statements_of_a_pipeline_end_before_their_sync() {
        let bytes = [
            message(b'C', b"UPDATE 2\0"),
            message(b'I', b""),
            message(b'E', b"VERROR\0C23505\0Mtwice\0\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        let mut reader = ReplyReader::new(DigestMode::None);
        let awaited = Awaited {
            in_pipeline: true,
            ..Awaited::default()
        };
        let mut at = 0;
        let mut next = || {
            let (used, found) = reader.read(&bytes[at..], awaited);
            at += used;
            found
        };
        assert!(matches!(next(), Found::Completed { rows: 2, .. }));
        assert!(matches!(next(), Found::Completed { rows: 0, .. }));
        assert!(matches!(next(), Found::Failed(failure) if failure.message == "twice"));
        assert!(matches!(next(), Found::Reply(reply) if reply.failure.is_none()));
    }

    #[test]
    fn command_tags_are_counted() {
        let tags: [(&[u8], u64); 5] = [
            (b"SELECT 5\0", 5),
            (b"INSERT 0 12\0", 12),
            (b"DELETE 0\0", 0),
            (b"BEGIN\0", 0),
            (b"\0", 0),
        ];
        for (tag, rows) in tags {
            assert_eq!(row_count(tag), rows);
        }
    }
}
