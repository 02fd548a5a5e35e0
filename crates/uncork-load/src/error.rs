//! Why a trial could not be carried out. Statements that fail in the measured part are not errors
//! but results, which are counted.

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
    /// The arrivals of an open loop are not valid.
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
    /// A statement cannot be encoded as a request.
    #[error("statement \"{statement}\": {problem}")]
    Encode {
        /// The statement's name.
        statement: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server cannot be reached, or refuses the connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server does not accept a statement; correct its text, or create what it needs.
    #[error(transparent)]
    Prepare(#[from] PrepareFailure),
    /// The server's resource use could not be read.
    #[error("cannot watch the server's processes: {0}")]
    Watch(#[from] uncork_sample::SampleError),
    /// Threads or backends could not be bound to a processor.
    #[error("cannot bind {what} to processor {cpu}: {source}")]
    Pin {
        /// What should have been bound.
        what: &'static str,
        /// The processor.
        cpu: usize,
        /// The reason.
        source: io::Error,
    },
    /// The operating system refused something that the load engine needs.
    #[error("the load engine failed to {action}: {source}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The deadline passed before the measured part; [`crate::run`] turns it into an outcome.
    #[error("the deadline passed while {0}")]
    Deadline(&'static str),
    /// A defect of the load engine.
    #[error("the load engine failed: {0}; this is a defect, please report it")]
    Defect(&'static str),
}

impl LoadError {
    /// Convert to the failure of one connection.
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
            place: None,
        })
    }
}

/// A statement that the server rejects.
#[derive(Debug, thiserror::Error)]
#[error("statement \"{statement}\" cannot be prepared: {message} (SQLSTATE {sqlstate}{})",
        position.map(|at| format!(", at character {at}")).unwrap_or_default())]
pub struct PrepareFailure {
    /// The statement's name.
    pub statement: String,
    /// The SQLSTATE.
    pub sqlstate: String,
    /// The server's message.
    pub message: String,
    /// The position of the error in the text, in characters from 1, if the server reports it.
    pub position: Option<u32>,
}

/// Why a connection could not be opened. No message contains the password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No server listens at the address, or the address does not exist.
    #[error("cannot connect to {address}: {source}{}", hint(source))]
    Reach {
        /// The socket or host and port.
        address: String,
        /// The reason.
        source: io::Error,
    },
    /// The host name does not resolve.
    #[error("cannot connect to {address}: the host name does not resolve ({problem}); correct it")]
    Resolve {
        /// The host and port.
        address: String,
        /// The resolver's message.
        problem: String,
    },
    /// The host name was not resolved in time.
    #[error(
        "cannot connect to {address}: the host name did not resolve within {timeout_ms} ms; give \
         the address in its place, or a longer connect_timeout"
    )]
    ResolveTimeout {
        /// The host and port.
        address: String,
        /// The time limit.
        timeout_ms: u64,
    },
    /// It took too long.
    #[error("{address} did not answer within {timeout_ms} ms")]
    Timeout {
        /// The socket or host and port.
        address: String,
        /// The time limit.
        timeout_ms: u64,
    },
    /// The connection was opened, but broke.
    #[error("{address} closed the connection before it was ready: {problem}")]
    Lost {
        /// The socket or host and port.
        address: String,
        /// The error of the operating system or of TLS.
        problem: String,
    },
    /// The server rejected the connection.
    #[error("{address} refuses user \"{user}\": {message} (SQLSTATE {sqlstate})")]
    Refused {
        /// The socket or host and port.
        address: String,
        /// The role.
        user: String,
        /// The server's message.
        message: String,
        /// The SQLSTATE.
        sqlstate: String,
    },
    /// The server requires a password, and none was given.
    #[error("{address} asks user \"{user}\" for a password, and none was given")]
    NoPassword {
        /// The socket or host and port.
        address: String,
        /// The role.
        user: String,
    },
    /// The server requires an authentication method that uncork does not support.
    #[error(
        "{address} requires an authentication method that uncork does not support ({method}); it \
        supports trust, password, md5, scram-sha-256 and client certificates"
    )]
    Method {
        /// The socket or host and port.
        address: String,
        /// The method.
        method: String,
    },
    /// The password exchange failed, or the server did not prove that it knows the password.
    #[error("authentication at {address} failed: {source}")]
    Authentication {
        /// The socket or host and port.
        address: String,
        /// The reason.
        source: io::Error,
    },
    /// Encryption is required, but the server does not support it.
    #[error(
        "{address} does not support TLS, but sslmode {sslmode} requires it; enable it on the \
        server (ssl = on), or set sslmode to prefer or disable"
    )]
    NoTls {
        /// The host and port.
        address: String,
        /// The `sslmode`.
        sslmode: SslMode,
    },
    /// The TLS handshake failed; the problem ends with the remedy.
    #[error("TLS with {address} failed: {problem}")]
    Tls {
        /// The host and port.
        address: String,
        /// What was found, what was expected, and what to do.
        problem: String,
    },
    /// The TLS options cannot be carried out.
    #[error("{0}")]
    TlsSetup(String),
    /// Channel binding is required but impossible.
    #[error(
        "channel_binding require cannot be met by {address}: {problem}; correct that, or \
         set channel_binding to prefer"
    )]
    ChannelBinding {
        /// The socket or host and port.
        address: String,
        /// What prevents it.
        problem: &'static str,
    },
    /// An HTTP server could not be reached.
    #[error("{message}")]
    Http {
        /// The word that classifies it.
        kind: String,
        /// The problem, and what to do.
        message: String,
    },
    /// The connection failed both with and without encryption.
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
    /// The code for this failure: the server's SQLSTATE if it refused, `08006` for a connection
    /// that broke, `28000` if we could not authenticate, and otherwise `08001`.
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
            // A server's refusal says more than a failure to reach it.
            Self::Neither { first, second, .. } => match second.sqlstate() {
                "08001" => first.sqlstate(),
                sqlstate => sqlstate,
            },
        }
    }
}

/// Suggest what to do about an address that cannot be reached.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "; is a server listening there?",
        io::ErrorKind::NotFound => "; is a server running there, with this folder and port?",
        io::ErrorKind::PermissionDenied => {
            "; the socket's permissions do not allow this user to \
        connect"
        }
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
