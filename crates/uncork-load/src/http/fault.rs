//! What can go wrong with a request, by kind. The words are keys in results and do not change.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::sync::Arc;

use crate::Failure;
use crate::stop_signal::OTHER_PROTOCOL;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No server listens at the address.
    Refused,
    /// The address cannot be reached.
    Unreachable,
    /// The host name does not resolve.
    Dns,
    /// The connection did not open in time.
    ConnectTimeout,
    /// No local port was free for another connection.
    NoPort,
    /// The limit of open files is reached.
    NoFile,
    /// The TLS handshake failed.
    Tls,
    /// The server reset the connection.
    Reset,
    /// It was closed without an answer.
    Closed,
    /// It was closed in the middle of an answer.
    Truncated,
    /// The answer is not valid HTTP.
    Garbage,
    /// The server speaks another version of HTTP.
    OtherProtocol,
    /// The head of the answer is longer than the limit.
    LongHead,
    /// HTTP/2: the server closed the connection without answering a request that it had accepted.
    Goaway,
    /// HTTP/2: the server refused the request unprocessed, too many times.
    StreamRefused,
    /// HTTP/2: the server aborted the answer.
    StreamReset,
    /// The request timed out.
    TimedOut,
    /// The request was behind one that timed out, on a connection that was closed for it.
    Abandoned,
    /// The answer has an unexpected status.
    Status(u16),
    /// A header of the answer is missing or wrong.
    Header,
    /// The body has an unexpected size.
    Size,
    /// The body has an unexpected digest.
    Digest,
    /// The body is not JSON, or has an unexpected value.
    Json,
    /// The body does not contain a text.
    Text,
    /// The answer does not have a value that later requests need.
    Capture,
    /// The request was not sent: no answer has given it a value yet.
    NoValue,
}

impl Kind {
    /// The word for it in results.
    pub(crate) fn word(self) -> String {
        let word = match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Dns => "dns",
            Self::ConnectTimeout => "connect timeout",
            Self::NoPort => "no local port",
            Self::NoFile => "too many files",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Truncated => "truncated",
            Self::Garbage => "garbage",
            Self::OtherProtocol => OTHER_PROTOCOL,
            Self::LongHead => "header too long",
            Self::Goaway => "goaway",
            Self::StreamRefused => "stream refused",
            Self::StreamReset => "stream reset",
            Self::TimedOut => "timed out",
            Self::Abandoned => "abandoned",
            Self::Status(status) => return format!("status {status}"),
            Self::Header => "check header",
            Self::Size => "check size",
            Self::Digest => "check digest",
            Self::Json => "check json",
            Self::Text => "check text",
            Self::Capture => "check capture",
            Self::NoValue => "no value",
        };
        word.to_owned()
    }

    /// Classify an error of the operating system.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Reset,
            io::ErrorKind::TimedOut => Self::ConnectTimeout,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Self::NoPort,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ if error.raw_os_error() == Some(nix::libc::EMFILE) => Self::NoFile,
            _ if error
                .get_ref()
                .is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>) =>
            {
                Self::Tls
            }
            _ => Self::Unreachable,
        }
    }
}

/// What went wrong, and the message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Convert to a driver's failure.
    pub(crate) fn failure(&self) -> Failure {
        Failure {
            code: self.kind.word(),
            message: self.message.clone(),
            place: None,
        }
    }
}

/// Receives what is read from a connection. Requests are identified by their slot.
pub(crate) trait Sink {
    /// The head of a final answer: its status, its length as received and decompressed, and its
    /// fields if they are requested.
    fn head(&mut self, slot: usize, head: &Head);

    /// A part of the body.
    fn body(&mut self, slot: usize, bytes: &[u8]);

    /// The answer is complete.
    fn end(&mut self, slot: usize);

    /// This request failed; the connection stays open.
    fn failed(&mut self, slot: usize, fault: Fault);

    /// The server certainly did not process this request: it may be sent again.
    fn unprocessed(&mut self, slot: usize, kind: Kind);
}

/// The head of an answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Length as received.
    pub(crate) wire_bytes: usize,
    /// Length of names and values; in HTTP/1.1 the same as received.
    pub(crate) plain_bytes: usize,
    /// The declared length of the body, if nothing else marks its end.
    pub(crate) length: Option<u64>,
    /// Names in lower case, and values; empty unless they are requested.
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The headers whose fields are requested.
#[derive(Debug, Clone, Default)]
pub(crate) enum FieldNames {
    #[default]
    None,
    /// These, in lower case.
    These(Arc<[Vec<u8>]>),
    #[cfg(test)]
    All,
}

impl FieldNames {
    /// These names, in any case.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: BTreeSet<_> = names.map(str::to_ascii_lowercase).collect();
        if names.is_empty() {
            return Self::None;
        }
        Self::These(names.into_iter().map(String::into_bytes).collect())
    }

    /// Whether a field is requested.
    pub(crate) fn wants(&self, name: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::These(names) => names.iter().any(|it| it.eq_ignore_ascii_case(name)),
            #[cfg(test)]
            Self::All => true,
        }
    }
}
