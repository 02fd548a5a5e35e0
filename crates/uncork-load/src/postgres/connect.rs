//! Opening a connection: with or without encryption in libpq's order, then authentication, then
//! preparing statements. It blocks, but checks several times a second whether to stop.
//!
//! | `sslmode` | first attempt | second attempt |
//! |---|---|---|
//! | `disable`, or a Unix socket | plain | |
//! | `allow` | plain | encrypted, if the server refuses |
//! | `prefer` | encrypted, or plain at once if the server has no TLS | plain, if that fails |
//! | `require`, `verify-ca`, `verify-full` | encrypted | |

use std::io::{self, Read, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use uncork_model::{Connection, SslMode};

use super::login::Session;
use super::reach::{Resolver, address, reach};
use super::tls::Tls;
use crate::socket::BlockingStream;
use crate::{ConnectError, Interrupt, LoadError};

/// How often a wait is interrupted to check whether to stop.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// Time limit of a cancel request: the server may be busy, but it may also be gone.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// What limits the time of connecting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits<'a> {
    /// The deadline of the whole trial.
    pub(crate) trial: Instant,
    /// The caller's request to stop.
    pub(crate) interrupt: &'a Interrupt,
}

/// The server's address and options, shared by all attempts and threads.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) connection: Connection,
    pub(super) address: String,
    resolver: Resolver,
    /// Read on first use: a connection without encryption needs no certificates.
    tls: OnceLock<Tls>,
}

impl Target {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            address: address(&connection),
            connection,
            resolver: Resolver::default(),
            tls: OnceLock::new(),
        }
    }

    fn tls(&self) -> Result<&Tls, ConnectError> {
        if self.tls.get().is_none() {
            // Two threads may read the files at once; either result will do.
            let _ = self.tls.set(Tls::new(&self.connection)?);
        }
        self.tls
            .get()
            .ok_or_else(|| ConnectError::TlsSetup("TLS cannot be used".to_owned()))
    }

    /// The attempts to make.
    fn ways(&self) -> &'static [Way] {
        if self.connection.on_socket() {
            return &[Way::Plain];
        }
        match self.connection.sslmode {
            SslMode::Disable => &[Way::Plain],
            SslMode::Allow => &[Way::Plain, Way::Encrypted],
            SslMode::Prefer => &[Way::Encrypted, Way::Plain],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Way::Encrypted],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Encrypted,
}

/// The limits of one attempt: for which address, until when, and who may interrupt it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) target: &'a Target,
    until: Option<Instant>,
    timeout: Duration,
    limits: Limits<'a>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(target: &'a Target, timeout: Duration, limits: Limits<'a>) -> Self {
        let until = (!timeout.is_zero())
            .then(|| Instant::now().checked_add(timeout))
            .flatten();
        Self {
            target,
            until,
            timeout,
            limits,
        }
    }

    /// An attempt without a time limit of its own.
    pub(super) fn unbounded(target: &'a Target, limits: Limits<'a>) -> Self {
        Self::new(target, Duration::ZERO, limits)
    }

    /// The end of the attempt, if it has a limit.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Return the reason to stop, if there is one.
    pub(super) fn look_around(&self) -> Result<(), LoadError> {
        let now = Instant::now();
        if self.limits.interrupt.requested() {
            Err(LoadError::Interrupted)
        } else if now >= self.limits.trial {
            Err(LoadError::Deadline("connecting and preparing"))
        } else if self.until.is_some_and(|until| now >= until) {
            Err(ConnectError::Timeout {
                address: self.address(),
                timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            }
            .into())
        } else {
            Ok(())
        }
    }

    pub(super) fn address(&self) -> String {
        self.target.address.clone()
    }

    /// The error of a server that cannot be reached.
    pub(super) fn unreachable(&self, source: io::Error) -> LoadError {
        ConnectError::Reach {
            address: self.address(),
            source,
        }
        .into()
    }

    /// The error of a connection that broke.
    pub(super) fn broken(&self, error: &io::Error) -> LoadError {
        let address = self.address();
        let by_tls = error
            .get_ref()
            .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
        match self.target.tls.get() {
            // A server that checks our certificate reports a problem only after the handshake.
            Some(tls) if by_tls => ConnectError::Tls {
                address,
                problem: tls.problem(error),
            },
            _ => ConnectError::Lost {
                address,
                problem: if error.kind() == io::ErrorKind::UnexpectedEof {
                    "it closed it".to_owned()
                } else {
                    error.to_string()
                },
            },
        }
        .into()
    }
}

/// Why an attempt failed.
pub(super) enum Failed {
    /// The other kind of attempt may succeed.
    Refused(ConnectError),
    /// No other attempt would succeed.
    Entirely(LoadError),
}

impl<E: Into<LoadError>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Entirely(error.into())
    }
}

/// Open a connection, authenticate, and prepare statements: each a name and the messages that
/// prepare it and end with `Sync`.
pub(crate) fn connect(
    target: &Target,
    preparations: &[(String, Vec<u8>)],
    limits: Limits<'_>,
) -> Result<Session, LoadError> {
    if preparations.is_empty() {
        return log_in(target, limits);
    }
    log_in(target, limits)?.prepare(preparations, Watch::unbounded(target, limits))
}

fn log_in(target: &Target, limits: Limits<'_>) -> Result<Session, LoadError> {
    let start = Instant::now();
    let timeout = Duration::from_nanos(target.connection.connect_timeout_ns);
    let watch = Watch::new(target, timeout, limits);
    let ways = target.ways();
    let mut refusal: Option<ConnectError> = None;
    for (number, &way) in ways.iter().enumerate() {
        let another = ways.get(number + 1).copied();
        match attempt(way, another, watch) {
            Ok(mut session) => {
                session.connect_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                return Ok(session);
            }
            Err(Failed::Refused(error)) if another.is_some() => refusal = Some(error),
            Err(Failed::Refused(error)) => return Err(both(way, refusal, error).into()),
            Err(Failed::Entirely(LoadError::Connect(error))) => {
                return Err(both(way, refusal, error).into());
            }
            Err(Failed::Entirely(error)) => return Err(error),
        }
    }
    Err(LoadError::Defect("there was no way to connect"))
}

fn both(way: Way, first: Option<ConnectError>, second: ConnectError) -> ConnectError {
    match first {
        Some(first) if first.to_string() != second.to_string() => ConnectError::Neither {
            encrypted_first: way == Way::Plain,
            first: Box::new(first),
            second: Box::new(second),
        },
        _ => second,
    }
}

fn attempt(way: Way, another: Option<Way>, watch: Watch<'_>) -> Result<Session, Failed> {
    let (stream, another) = open(way, another, watch)?;
    Session::log_in(stream, watch).map_err(|failed| match failed {
        // The server does not support TLS, so the unencrypted attempt has been made already.
        Failed::Refused(error) if another.is_none() => Failed::Entirely(error.into()),
        failed => failed,
    })
}

/// Open a socket and encrypt it if required; also return which attempt is left.
fn open(
    way: Way,
    another: Option<Way>,
    watch: Watch<'_>,
) -> Result<(BlockingStream, Option<Way>), Failed> {
    let target = watch.target;
    let mut stream = reach(&target.connection, &target.resolver, watch)?;
    stream
        .set_timeout(CHECK_INTERVAL)
        .map_err(|error| watch.broken(&error))?;
    if way == Way::Plain {
        return Ok((stream, another));
    }
    let tls = || target.tls();
    let sure = target.connection.sslmode.demands_encryption();
    if sure {
        // Report an error in the TLS options before connecting.
        tls()?;
    }
    let direct = sure && tls()?.direct();
    if direct || server_has_tls(&mut stream, watch)? {
        let encrypted = encrypt(stream, tls()?, watch)?;
        Ok((encrypted, another))
    } else if another == Some(Way::Plain) {
        Ok((stream, None))
    } else {
        Err(ConnectError::NoTls {
            address: watch.address(),
            sslmode: target.connection.sslmode,
        }
        .into())
    }
}

/// Ask the server for encryption.
fn server_has_tls(stream: &mut BlockingStream, watch: Watch<'_>) -> Result<bool, LoadError> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    write_all(stream, &request, watch)?;
    let mut answer = [0; 2];
    let length = read_some(stream, &mut answer, watch)?;
    let problem = match &answer[..length] {
        b"S" => return Ok(true),
        b"N" => return Ok(false),
        [] => return Err(watch.broken(&io::ErrorKind::UnexpectedEof.into())),
        // The message is not trustworthy: the server has not proved its identity yet.
        [b'E', ..] => {
            "it answered the request for TLS with an error; see its log, and check that it is \
            PostgreSQL"
        }
        [b'S' | b'N', ..] => {
            "unencrypted data came after the answer to the request for TLS; it may have been \
            injected on the way"
        }
        _ => "it answered the request for TLS with an unknown message; is it PostgreSQL?",
    };
    Err(ConnectError::Tls {
        address: watch.address(),
        problem: problem.to_owned(),
    }
    .into())
}

fn encrypt(stream: BlockingStream, tls: &Tls, watch: Watch<'_>) -> Result<BlockingStream, Failed> {
    let BlockingStream::Tcp(socket) = stream else {
        return Err(LoadError::Defect("only TCP is encrypted").into());
    };
    let failed = |problem: String| {
        Failed::Refused(ConnectError::Tls {
            address: watch.address(),
            problem,
        })
    };
    let mut stream = tls
        .wrap(socket)
        .map_err(|error| failed(tls.problem(&error)))?;
    loop {
        match stream.handshake() {
            Ok(()) => break,
            Err(error) if is_wait(&error) => watch.look_around()?,
            Err(error) => return Err(failed(tls.problem(&error))),
        }
    }
    tls.check(&stream)
        .map_err(|problem| failed(problem.to_owned()))?;
    Ok(BlockingStream::Tls(stream))
}

/// Ask the server to cancel what a session does, encrypted like the session. A trial that is over
/// still has time for that.
pub(crate) fn cancel(target: &Target, (process, secret): (i32, i32)) -> Result<(), LoadError> {
    let interrupt = Interrupt::default();
    let limits = Limits {
        trial: Instant::now() + 2 * CANCEL_TIMEOUT,
        interrupt: &interrupt,
    };
    let watch = Watch::new(target, CANCEL_TIMEOUT, limits);
    let mut request = BytesMut::new();
    frontend::cancel_request(process, secret, &mut request);
    let ways = target.ways();
    let mut failure = LoadError::Defect("there was no way to connect");
    for (number, &way) in ways.iter().enumerate() {
        match open(way, ways.get(number + 1).copied(), watch) {
            Ok((mut stream, _)) => {
                write_all(&mut stream, &request, watch)?;
                // The server closes the connection once it has passed the request on.
                return read_some(&mut stream, &mut [0], watch).map(drop);
            }
            Err(Failed::Refused(error)) => failure = error.into(),
            Err(Failed::Entirely(error)) => return Err(error),
        }
    }
    Err(failure)
}

/// Read once something has arrived.
pub(super) fn read_some(
    stream: &mut BlockingStream,
    bytes: &mut [u8],
    watch: Watch<'_>,
) -> Result<usize, LoadError> {
    loop {
        match stream.read(bytes) {
            Ok(length) => return Ok(length),
            Err(error) if is_wait(&error) => watch.look_around()?,
            Err(error) => return Err(watch.broken(&error)),
        }
    }
}

/// Write all of it to the network.
pub(super) fn write_all(
    stream: &mut BlockingStream,
    mut bytes: &[u8],
    watch: Watch<'_>,
) -> Result<(), LoadError> {
    loop {
        let step = if bytes.is_empty() {
            match stream.flush() {
                Ok(()) => return Ok(()),
                Err(error) => Err(error),
            }
        } else {
            stream.write(bytes)
        };
        match step {
            Ok(0) => return Err(watch.broken(&io::ErrorKind::WriteZero.into())),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if is_wait(&error) => watch.look_around()?,
            Err(error) => return Err(watch.broken(&error)),
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests;
