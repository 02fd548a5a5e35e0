//! Opening a connection: address, authentication, prepared statements. It blocks, but looks
//! around several times a second for a reason to stop.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use uncork_model::Connection;

use super::encode::Requests;
use super::frame::ServerError;
use super::stream::{BlockingStream, address};
use crate::{ConnectError, Interrupt, LoadError, PrepareFailure};

/// How often a wait is broken off to look for a reason to stop.
const GLANCE: Duration = Duration::from_millis(25);
/// How long a request to cancel may take: the server may be busy, but it may also be gone.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// What bounds the time of connecting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits<'a> {
    /// When the whole trial must be over.
    pub(crate) trial: Instant,
    /// The caller's request to stop.
    pub(crate) interrupt: &'a Interrupt,
}

/// An open, authenticated and prepared connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) stream: BlockingStream,
    /// The server's process and the secret that permits to cancel what it does.
    pub(crate) key: (i32, i32),
    pub(crate) connect_ns: u64,
}

/// Opens one connection and prepares all statements on it.
pub(crate) fn connect(
    connection: &Connection,
    requests: &Requests,
    limits: Limits<'_>,
) -> Result<Session, LoadError> {
    let start = Instant::now();
    let timeout = Duration::from_nanos(connection.connect_timeout_ns);
    let stream = BlockingStream::connect(connection, timeout).map_err(|source| {
        let address = address(connection);
        if source.kind() == io::ErrorKind::TimedOut {
            ConnectError::Timeout {
                address,
                timeout_ms: milliseconds(timeout),
            }
        } else {
            ConnectError::Reach { address, source }
        }
    })?;
    let mut handshake = Handshake {
        connection,
        stream,
        incoming: BytesMut::with_capacity(4096),
        until: Some(start + timeout),
        limits,
    };
    handshake
        .stream
        .set_read_timeout(GLANCE)
        .map_err(|source| handshake.broken(source))?;
    let key = handshake.authenticate()?;
    let connect_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    handshake.until = None;
    for (name, messages) in requests.preparations() {
        handshake.prepare(name, messages)?;
    }
    Ok(Session {
        stream: handshake.stream,
        key,
        connect_ns,
    })
}

/// Asks the server to cancel what a session does.
pub(crate) fn cancel(connection: &Connection, (process, secret): (i32, i32)) -> io::Result<()> {
    let mut stream = BlockingStream::connect(connection, CANCEL_TIMEOUT)?;
    let mut request = BytesMut::new();
    frontend::cancel_request(process, secret, &mut request);
    stream.set_read_timeout(CANCEL_TIMEOUT)?;
    stream.write_all(&request)?;
    // The server closes the connection when it has passed the request on.
    stream.read(&mut [0]).map(drop)
}

struct Handshake<'a> {
    connection: &'a Connection,
    stream: BlockingStream,
    incoming: BytesMut,
    until: Option<Instant>,
    limits: Limits<'a>,
}

impl Handshake<'_> {
    fn authenticate(&mut self) -> Result<(i32, i32), LoadError> {
        self.start()?;
        loop {
            match self.receive()? {
                Message::AuthenticationOk => break,
                Message::AuthenticationCleartextPassword => {
                    let password = self.password()?.to_owned();
                    self.send(|bytes| frontend::password_message(&password, bytes))?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let user = self.connection.user.as_bytes();
                    let hashed = md5_hash(user, self.password()?, body.salt());
                    self.send(|bytes| frontend::password_message(hashed.as_bytes(), bytes))?;
                }
                Message::AuthenticationSasl(body) => self.scram(&body)?,
                Message::ErrorResponse(body) => return Err(self.refused(&body)),
                Message::AuthenticationGss => return Err(self.method("GSSAPI")),
                Message::AuthenticationSspi => return Err(self.method("SSPI")),
                Message::AuthenticationKerberosV5 => return Err(self.method("Kerberos")),
                Message::AuthenticationScmCredential => return Err(self.method("SCM")),
                _ => {}
            }
        }
        let mut key = (0, 0);
        loop {
            match self.receive()? {
                Message::BackendKeyData(body) => key = (body.process_id(), body.secret_key()),
                Message::ReadyForQuery(_) => return Ok(key),
                Message::ErrorResponse(body) => return Err(self.refused(&body)),
                _ => {}
            }
        }
    }

    fn start(&mut self) -> Result<(), LoadError> {
        let Connection {
            user,
            database,
            options,
            ..
        } = self.connection;
        let mut parameters = vec![
            ("user", user.as_str()),
            ("database", database.as_str()),
            ("application_name", "uncork"),
            ("client_encoding", "UTF8"),
        ];
        if !options.is_empty() {
            parameters.push(("options", options.as_str()));
        }
        self.send(|bytes| frontend::startup_message(parameters, bytes))
    }

    fn scram(&mut self, body: &AuthenticationSaslBody) -> Result<(), LoadError> {
        let mechanisms: Vec<String> = body
            .mechanisms()
            .map(|name| Ok(name.to_owned()))
            .collect()
            .map_err(|source| self.authentication(source))?;
        if !mechanisms.iter().any(|name| name == SCRAM_SHA_256) {
            return Err(self.method(&mechanisms.join(", ")));
        }
        let mut scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
        self.send(|bytes| frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), bytes))?;
        loop {
            match self.receive()? {
                Message::AuthenticationSaslContinue(body) => {
                    scram
                        .update(body.data())
                        .map_err(|source| self.authentication(source))?;
                    self.send(|bytes| frontend::sasl_response(scram.message(), bytes))?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let proof = scram.finish(body.data());
                    return proof.map_err(|source| self.authentication(source));
                }
                Message::ErrorResponse(body) => return Err(self.refused(&body)),
                _ => {}
            }
        }
    }

    fn prepare(&mut self, name: &str, messages: &[u8]) -> Result<(), LoadError> {
        self.stream
            .write_all(messages)
            .map_err(|source| self.broken(source))?;
        let mut failure = None;
        loop {
            match self.receive()? {
                Message::ErrorResponse(body) => {
                    let ServerError {
                        sqlstate,
                        message,
                        position,
                        ..
                    } = server_error(&body);
                    let statement = name.to_owned();
                    failure = Some(PrepareFailure {
                        statement,
                        sqlstate,
                        message,
                        position,
                    });
                }
                Message::ReadyForQuery(_) => return failure.map_or(Ok(()), |it| Err(it.into())),
                _ => {}
            }
        }
    }

    fn send(
        &mut self,
        encode: impl FnOnce(&mut BytesMut) -> io::Result<()>,
    ) -> Result<(), LoadError> {
        let mut bytes = BytesMut::new();
        encode(&mut bytes)
            .and_then(|()| self.stream.write_all(&bytes))
            .map_err(|source| self.broken(source))
    }

    fn receive(&mut self) -> Result<Message, LoadError> {
        loop {
            let message = Message::parse(&mut self.incoming);
            if let Some(message) = message.map_err(|source| self.broken(source))? {
                return Ok(message);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.incoming.extend_from_slice(&chunk[..length]),
                Err(error) if is_wait(&error) => self.look_around()?,
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    fn look_around(&self) -> Result<(), LoadError> {
        let now = Instant::now();
        if self.limits.interrupt.requested() {
            Err(LoadError::Interrupted)
        } else if now >= self.limits.trial {
            Err(LoadError::Deadline("connecting and preparing"))
        } else if self.until.is_some_and(|until| now >= until) {
            let timeout_ms = milliseconds(Duration::from_nanos(self.connection.connect_timeout_ns));
            Err(ConnectError::Timeout {
                address: address(self.connection),
                timeout_ms,
            }
            .into())
        } else {
            Ok(())
        }
    }

    fn password(&self) -> Result<&[u8], ConnectError> {
        let password = self.connection.password.as_ref();
        password
            .map(uncork_model::Password::reveal)
            .ok_or_else(|| ConnectError::NoPassword {
                address: address(self.connection),
                user: self.connection.user.clone(),
            })
    }

    fn refused(&self, body: &ErrorResponseBody) -> LoadError {
        let ServerError {
            message, sqlstate, ..
        } = server_error(body);
        let user = self.connection.user.clone();
        ConnectError::Refused {
            address: address(self.connection),
            user,
            message,
            sqlstate,
        }
        .into()
    }

    fn method(&self, method: &str) -> LoadError {
        let method = method.to_owned();
        ConnectError::Method {
            address: address(self.connection),
            method,
        }
        .into()
    }

    fn authentication(&self, source: io::Error) -> LoadError {
        ConnectError::Authentication {
            address: address(self.connection),
            source,
        }
        .into()
    }

    fn broken(&self, source: io::Error) -> LoadError {
        ConnectError::Reach {
            address: address(self.connection),
            source,
        }
        .into()
    }
}

fn server_error(body: &ErrorResponseBody) -> ServerError {
    let mut error = ServerError::default();
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let text = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'V' => error.severity = text(),
            b'C' => error.sqlstate = text(),
            b'M' => error.message = text(),
            b'P' => error.position = text().parse().ok(),
            _ => {}
        }
    }
    error
}

fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
