//! Why a trial could not be carried out. Errors of statements in the measured part are results,
//! not errors: they are counted.

use std::io;
use std::path::PathBuf;

use uncork_model::{ParameterError, PlanError, SslMode};

use crate::Failure;

/// Why a trial could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan is wrong; correct it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The parameters do not fit the plan; correct either.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A script is wrong; the message names the place and what to do.
    #[error("{0}")]
    Script(String),
    /// The arrivals of an open loop make no sense.
    #[error("the load plan is not valid: {0}")]
    Pattern(#[from] uncork_schedule::PatternError),
    /// The log of operations cannot be written.
    #[error("cannot write the log {}: {source}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A statement cannot be written as a request.
    #[error("statement \"{statement}\": {problem}")]
    Encode {
        /// The statement's name.
        statement: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server cannot be reached, or refuses us.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server does not accept a statement; correct its text, or create what it needs.
    #[error(transparent)]
    Prepare(#[from] PrepareFailure),
    /// What the server costs could not be read.
    #[error("cannot watch the server's processes: {0}")]
    Watch(#[from] uncork_sample::SampleError),
    /// Threads or backends could not be bound to a processor.
    #[error("cannot bind {what} to processor {cpu}: {source}")]
    Pin {
        /// Who should have been bound.
        what: &'static str,
        /// To which processor.
        cpu: usize,
        /// The reason.
        source: io::Error,
    },
    /// The operating system refused something the engine needs.
    #[error("the load engine failed to {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The deadline passed before the measured part; [`crate::run`] makes an outcome of it.
    #[error("the deadline passed while {0}")]
    Deadline(&'static str),
    /// A defect of the load engine.
    #[error("the load engine failed: {0}; this is a defect, please report it")]
    Defect(&'static str),
}

impl LoadError {
    /// The error as what became of one connection.
    #[must_use]
    pub fn into_failure(self) -> Box<Failure> {
        let code = match &self {
            Self::Connect(error) => error.sqlstate().to_owned(),
            Self::Prepare(failure) => failure.sqlstate.clone(),
            _ => "08001".to_owned(),
        };
        Box::new(Failure {
            code,
            message: self.to_string(),
        })
    }
}

/// A statement that the server does not accept.
#[derive(Debug, thiserror::Error)]
#[error("statement \"{statement}\" cannot be prepared: {message} (SQLSTATE {sqlstate}{})",
        position.map(|at| format!(", at character {at}")).unwrap_or_default())]
pub struct PrepareFailure {
    /// The statement's name.
    pub statement: String,
    /// The server's code for the error.
    pub sqlstate: String,
    /// The server's message.
    pub message: String,
    /// Where in the text the error is, in characters from 1, if the server says.
    pub position: Option<u32>,
}

/// Why there is no connection. No message holds the password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address has no server, or does not exist.
    #[error("cannot connect to {address}: {source}{}", hint(source))]
    Reach {
        /// The socket or host and port.
        address: String,
        /// The reason.
        source: io::Error,
    },
    /// The host's name has no address.
    #[error("cannot connect to {address}: the host name does not resolve ({problem}); correct it")]
    Resolve {
        /// The host and port.
        address: String,
        /// What the resolver says.
        problem: String,
    },
    /// The host's name was not resolved in time.
    #[error(
        "cannot connect to {address}: the host name did not resolve within {timeout_ms} ms; give \
         the address in its place, or a longer connect_timeout"
    )]
    ResolveTimeout {
        /// The host and port.
        address: String,
        /// The time it was given.
        timeout_ms: u64,
    },
    /// It took too long.
    #[error("{address} did not answer within {timeout_ms} ms")]
    Timeout {
        /// The socket or host and port.
        address: String,
        /// The time it was given.
        timeout_ms: u64,
    },
    /// The connection was there, and broke.
    #[error("{address} broke off the connection before it was ready: {problem}")]
    Lost {
        /// The socket or host and port.
        address: String,
        /// What the operating system or the encryption says.
        problem: String,
    },
    /// The server said no.
    #[error("{address} refuses user \"{user}\": {message} (SQLSTATE {sqlstate})")]
    Refused {
        /// The socket or host and port.
        address: String,
        /// The role.
        user: String,
        /// The server's message.
        message: String,
        /// The server's code for the error.
        sqlstate: String,
    },
    /// The server wants a password that was not given.
    #[error("{address} asks user \"{user}\" for a password, and none was given")]
    NoPassword {
        /// The socket or host and port.
        address: String,
        /// The role.
        user: String,
    },
    /// The server wants to know us by a method that is not known here.
    #[error(
        "{address} asks for an authentication method that the load engine does not speak \
         ({method}); it speaks trust, password, md5, scram-sha-256 and client certificates"
    )]
    Method {
        /// The socket or host and port.
        address: String,
        /// The method.
        method: String,
    },
    /// The exchange of passwords went wrong, or the server did not prove that it knows ours.
    #[error("authentication at {address} failed: {source}")]
    Authentication {
        /// The socket or host and port.
        address: String,
        /// The reason.
        source: io::Error,
    },
    /// Encryption is demanded of a server that has none.
    #[error(
        "{address} does not speak TLS, and sslmode {sslmode} demands it; switch it on there \
         (ssl = on), or set sslmode to prefer or disable"
    )]
    NoTls {
        /// The host and port.
        address: String,
        /// What was demanded.
        sslmode: SslMode,
    },
    /// Encryption was begun and did not come about; the problem ends with the remedy.
    #[error("TLS with {address} failed: {problem}")]
    Tls {
        /// The host and port.
        address: String,
        /// What was found, what was expected, and what to do.
        problem: String,
    },
    /// What the connection options say of encryption cannot be carried out.
    #[error("{0}")]
    TlsSetup(String),
    /// Binding the password exchange to the connection is demanded and impossible.
    #[error(
        "channel_binding require cannot be fulfilled at {address}: {problem}; correct that, or \
         set channel_binding to prefer"
    )]
    ChannelBinding {
        /// The socket or host and port.
        address: String,
        /// What stands against it.
        problem: &'static str,
    },
    /// An HTTP server could not be reached.
    #[error("{message}")]
    Http {
        /// The word that classifies it.
        kind: String,
        /// What was found, and what to do.
        message: String,
    },
    /// Neither with nor without encryption.
    #[error("{first}; {}, {second}", if *encrypted_first { "without TLS" } else { "with TLS" })]
    Neither {
        /// Whether the first attempt was the encrypted one.
        encrypted_first: bool,
        /// Why the first attempt failed.
        first: Box<ConnectError>,
        /// Why the second attempt failed.
        second: Box<ConnectError>,
    },
}

impl ConnectError {
    /// The code that classifies it: the server's own for a refusal, `08006` for a connection that
    /// broke, else `08001`, or `28000` where it was us who could not authenticate.
    #[must_use]
    pub fn sqlstate(&self) -> &str {
        match self {
            Self::Refused { sqlstate, .. } => sqlstate,
            Self::Http { kind, .. } => kind,
            Self::NoPassword { .. }
            | Self::Method { .. }
            | Self::Authentication { .. }
            | Self::ChannelBinding { .. } => "28000",
            Self::Lost { .. } => "08006",
            Self::Reach { .. }
            | Self::Resolve { .. }
            | Self::ResolveTimeout { .. }
            | Self::Timeout { .. }
            | Self::NoTls { .. }
            | Self::Tls { .. }
            | Self::TlsSetup(_) => "08001",
            // The server's word counts for more than that there was no way to ask it.
            Self::Neither { first, second, .. } => match second.sqlstate() {
                "08001" => first.sqlstate(),
                sqlstate => sqlstate,
            },
        }
    }
}

/// What to do about an address that cannot be reached.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "; is a server listening there?",
        io::ErrorKind::NotFound => "; is a server running there, with this folder and port?",
        io::ErrorKind::PermissionDenied => "; the socket's permissions do not let us in",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(sqlstate: &str) -> ConnectError {
        ConnectError::Refused {
            address: "db:5432".to_owned(),
            user: "u".to_owned(),
            message: "no".to_owned(),
            sqlstate: sqlstate.to_owned(),
        }
    }

    fn no_tls() -> ConnectError {
        ConnectError::NoTls {
            address: "db:5432".to_owned(),
            sslmode: SslMode::Allow,
        }
    }

    #[test]
    fn the_servers_own_code_classifies_a_refusal() {
        assert_eq!(refused("53300").sqlstate(), "53300");
        assert_eq!(no_tls().sqlstate(), "08001");
        for (first, second, expected) in [
            (refused("28000"), no_tls(), "28000"),
            (refused("28000"), refused("28P01"), "28P01"),
            (no_tls(), refused("53300"), "53300"),
        ] {
            let error = ConnectError::Neither {
                encrypted_first: false,
                first: Box::new(first),
                second: Box::new(second),
            };
            assert_eq!(error.sqlstate(), expected, "{error}");
        }
    }
}
