//! What can go wrong with a request, by kind. The words are keys of results: they do not change.

use std::error::Error;
use std::io;

use crate::Failure;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nobody listens at the address.
    Refused,
    /// The address cannot be reached.
    Unreachable,
    /// The host's name has no address.
    Dns,
    /// The connection did not open in time.
    ConnectTimeout,
    /// No local port was free for another connection.
    NoPort,
    /// There may be no more open files.
    NoFile,
    /// Encryption did not come about.
    Tls,
    /// The other side threw the connection away.
    Reset,
    /// It was closed without an answer.
    Closed,
    /// It was closed in the middle of an answer.
    Truncated,
    /// What came is not HTTP, or not as it should be.
    Garbage,
    /// The head of the answer is longer than is kept.
    LongHead,
    /// HTTP/2: the server took leave and did not finish what it had accepted.
    Goaway,
    /// HTTP/2: the server refused the request unprocessed, again and again.
    StreamRefused,
    /// HTTP/2: the server broke off the answer.
    StreamReset,
    /// The request took longer than it may.
    TimedOut,
    /// The request was behind one that took too long, on a connection that was given up for it.
    Abandoned,
    /// The answer has a status that is not wanted.
    Status(u16),
    /// A header of the answer is not as it must be.
    Header,
    /// The body has another size.
    Size,
    /// The body has another digest.
    Digest,
    /// The body is not JSON, or has another value.
    Json,
}

impl Kind {
    /// The word in results.
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
        };
        word.to_owned()
    }

    /// The kind of an error of the operating system.
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

/// What went wrong, and what to say of it.
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

    /// As others know it.
    pub(crate) fn failure(&self) -> Failure {
        Failure {
            code: self.kind.word(),
            message: self.message.clone(),
        }
    }
}

/// Takes what comes of reading a connection; requests are called by their slot.
pub(crate) trait Sink {
    /// The head of a final answer: its status, its length as received and decompressed, and its
    /// fields where they are wanted.
    fn head(&mut self, slot: usize, head: &Head);

    /// A part of the body.
    fn body(&mut self, slot: usize, bytes: &[u8]);

    /// The answer is whole.
    fn end(&mut self, slot: usize);

    /// This request failed; the connection goes on.
    fn failed(&mut self, slot: usize, fault: Fault);

    /// The server has surely not processed this request: it may be sent again.
    fn unprocessed(&mut self, slot: usize, kind: Kind);
}

/// The head of an answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// As it was received.
    pub(crate) wire_bytes: usize,
    /// Names and values; of HTTP/1.1 the same as received.
    pub(crate) plain_bytes: usize,
    /// How long the body is said to be, where nothing else tells its end.
    pub(crate) length: Option<u64>,
    /// Names, in small letters, and values; empty unless they are wanted.
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
}
