//! Login: the start of a session, its authentication, and the statements prepared in it.

use std::io;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::{AuthenticationSaslBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use uncork_model::{ChannelBinding, Connection, Password};

use super::connect::{Failed, Watch, read_some, write_all};
use super::frame::ServerError;
use super::tls::binding_data;
use crate::socket::BlockingStream;
use crate::{ConnectError, LoadError, PrepareFailure};

/// An open and authenticated connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) stream: BlockingStream,
    /// Bytes that the server sent after the expected answers: the session's reader parses them
    /// first.
    pub(crate) received: BytesMut,
    /// The server's process ID and the secret key for cancel requests.
    pub(crate) key: (i32, i32),
    /// Duration of the attempt, from the first step to a session ready for queries.
    pub(crate) connect_ns: u64,
}

impl Session {
    /// Start the session and authenticate.
    pub(super) fn log_in(stream: BlockingStream, watch: Watch<'_>) -> Result<Self, Failed> {
        let mut exchange = LoginExchange {
            stream,
            incoming: BytesMut::with_capacity(4096),
            watch,
        };
        exchange.start()?;
        exchange.authenticate()?;
        let mut key = (0, 0);
        loop {
            match exchange.receive()? {
                Message::BackendKeyData(body) => key = (body.process_id(), body.secret_key()),
                Message::ReadyForQuery(_) => break,
                Message::ErrorResponse(body) => return Err(exchange.refused(&body).into()),
                _ => {}
            }
        }
        exchange.take_held()?;
        Ok(Self {
            stream: exchange.stream,
            received: exchange.incoming,
            key,
            connect_ns: 0,
        })
    }

    /// Prepare statements: each a name and the messages that prepare it and end with `Sync`.
    pub(super) fn prepare(
        self,
        preparations: &[(String, Vec<u8>)],
        watch: Watch<'_>,
    ) -> Result<Self, LoadError> {
        let mut exchange = LoginExchange {
            stream: self.stream,
            incoming: self.received,
            watch,
        };
        for (name, messages) in preparations {
            exchange.prepare(name, messages)?;
        }
        exchange.take_held()?;
        Ok(Self {
            stream: exchange.stream,
            received: exchange.incoming,
            ..self
        })
    }
}

/// An exchange of messages with the server, one at a time.
struct LoginExchange<'a> {
    stream: BlockingStream,
    incoming: BytesMut,
    watch: Watch<'a>,
}

impl<'a> LoginExchange<'a> {
    fn start(&mut self) -> Result<(), LoadError> {
        let connection = self.connection();
        let mut parameters = vec![
            ("user", connection.user.as_str()),
            ("database", connection.database.as_str()),
            ("application_name", connection.application_name.as_str()),
            ("client_encoding", "UTF8"),
        ];
        if !connection.options.is_empty() {
            parameters.push(("options", connection.options.as_str()));
        }
        self.send(|bytes| frontend::startup_message(parameters, bytes))
    }

    fn authenticate(&mut self) -> Result<(), Failed> {
        let mut bound = false;
        loop {
            let message = self.receive()?;
            if let Some(problem) = self.unbound(&message, bound) {
                return Err(self.not_bound(problem).into());
            }
            match message {
                Message::AuthenticationOk => return Ok(()),
                Message::AuthenticationCleartextPassword => {
                    let password = self.password()?.to_owned();
                    self.send(|bytes| frontend::password_message(&password, bytes))?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let user = self.connection().user.as_bytes();
                    let hashed = md5_hash(user, self.password()?, body.salt());
                    self.send(|bytes| frontend::password_message(hashed.as_bytes(), bytes))?;
                }
                Message::AuthenticationSasl(body) => bound = self.scram(&body)?,
                Message::ErrorResponse(body) => return Err(Failed::Refused(self.refused(&body))),
                Message::AuthenticationGss => return Err(self.method("GSSAPI").into()),
                Message::AuthenticationSspi => return Err(self.method("SSPI").into()),
                Message::AuthenticationKerberosV5 => return Err(self.method("Kerberos").into()),
                Message::AuthenticationScmCredential => return Err(self.method("SCM").into()),
                _ => {}
            }
        }
    }

    /// Reject an authentication message that rules out channel binding, if binding is required.
    fn unbound(&self, message: &Message, bound: bool) -> Option<&'static str> {
        if self.connection().channel_binding != ChannelBinding::Require {
            return None;
        }
        match message {
            Message::AuthenticationOk if !bound => Some(
                "the server accepts the connection without a bound password exchange (scram-sha-256)",
            ),
            Message::AuthenticationCleartextPassword
            | Message::AuthenticationMd5Password(_)
            | Message::AuthenticationGss
            | Message::AuthenticationSspi => {
                Some("the server asks for a method other than scram-sha-256")
            }
            Message::AuthenticationSasl(_) if !self.stream.encrypted() => {
                Some("the connection is not encrypted")
            }
            _ => None,
        }
    }

    /// Authenticate by SCRAM; return whether the exchange was bound to the connection.
    fn scram(&mut self, body: &AuthenticationSaslBody) -> Result<bool, Failed> {
        let mechanisms: Vec<String> = body
            .mechanisms()
            .map(|name| Ok(name.to_owned()))
            .collect()
            .map_err(|source| self.authentication(source))?;
        let offers = |wanted: &str| mechanisms.iter().any(|name| name == wanted);
        let wish = self.connection().channel_binding;
        let certificate = self.stream.certificate();
        let data = certificate
            .filter(|_| wish != ChannelBinding::Disable)
            .and_then(binding_data);
        let (mechanism, binding, bound) = match data {
            Some(data) if offers(SCRAM_SHA_256_PLUS) => {
                let binding = sasl::ChannelBinding::tls_server_end_point(data);
                (SCRAM_SHA_256_PLUS, binding, true)
            }
            _ if wish == ChannelBinding::Require => {
                return Err(self
                    .not_bound(if offers(SCRAM_SHA_256_PLUS) {
                        "the server's certificate is signed by an algorithm that has no hash"
                    } else {
                        "the server does not offer SCRAM-SHA-256-PLUS"
                    })
                    .into());
            }
            // This tells the server that we support binding, so that an attacker cannot hide its
            // offer.
            Some(_) => (SCRAM_SHA_256, sasl::ChannelBinding::unrequested(), false),
            None => (SCRAM_SHA_256, sasl::ChannelBinding::unsupported(), false),
        };
        if !offers(mechanism) {
            return Err(self.method(&mechanisms.join(", ")).into());
        }
        let mut scram = ScramSha256::new(self.password()?, binding);
        self.send(|bytes| frontend::sasl_initial_response(mechanism, scram.message(), bytes))?;
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
                    proof.map_err(|source| self.authentication(source))?;
                    return Ok(bound);
                }
                Message::ErrorResponse(body) => return Err(Failed::Refused(self.refused(&body))),
                _ => {}
            }
        }
    }

    fn prepare(&mut self, name: &str, messages: &[u8]) -> Result<(), LoadError> {
        write_all(&mut self.stream, messages, self.watch)?;
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
        encode(&mut bytes).map_err(|source| LoadError::System {
            action: "encode what it says on connecting",
            source,
        })?;
        write_all(&mut self.stream, &bytes, self.watch)
    }

    fn receive(&mut self) -> Result<Message, LoadError> {
        loop {
            let message = Message::parse(&mut self.incoming);
            if let Some(message) = message.map_err(|error| self.watch.broken(&error))? {
                return Ok(message);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), LoadError> {
        let mut chunk = [0; 4096];
        match read_some(&mut self.stream, &mut chunk, self.watch)? {
            0 => Err(self.watch.broken(&io::ErrorKind::UnexpectedEof.into())),
            length => {
                self.incoming.extend_from_slice(&chunk[..length]);
                Ok(())
            }
        }
    }

    /// Take the bytes that the TLS session holds: an event loop would not be woken for them.
    fn take_held(&mut self) -> Result<(), LoadError> {
        let taken = self.stream.take_held(&mut self.incoming);
        taken.map_err(|error| self.watch.broken(&error))
    }

    fn connection(&self) -> &'a Connection {
        &self.watch.target.connection
    }

    fn password(&self) -> Result<&[u8], ConnectError> {
        let connection = self.connection();
        let password = connection.password.as_ref().map(Password::reveal);
        password.ok_or_else(|| ConnectError::NoPassword {
            address: self.watch.address(),
            user: connection.user.clone(),
        })
    }

    fn refused(&self, body: &ErrorResponseBody) -> ConnectError {
        let ServerError {
            message, sqlstate, ..
        } = server_error(body);
        ConnectError::Refused {
            address: self.watch.address(),
            user: self.connection().user.clone(),
            message,
            sqlstate,
        }
    }

    fn method(&self, method: &str) -> ConnectError {
        ConnectError::Method {
            address: self.watch.address(),
            method: method.to_owned(),
        }
    }

    fn authentication(&self, source: io::Error) -> ConnectError {
        ConnectError::Authentication {
            address: self.watch.address(),
            source,
        }
    }

    fn not_bound(&self, problem: &'static str) -> ConnectError {
        ConnectError::ChannelBinding {
            address: self.watch.address(),
            problem,
        }
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
