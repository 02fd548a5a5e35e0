//! Why a trial could not be carried out. Errors of statements in the measured part are results,
//! not errors: they are counted.

use std::io;

use uncork_model::{ParameterError, PlanError};

/// Why a trial could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan is wrong; correct it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The parameters do not fit the plan; correct either.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
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
    #[error("cannot connect to {address}: {source}")]
    Reach {
        /// The socket or host and port.
        address: String,
        /// The reason.
        source: io::Error,
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
         ({method}); it speaks trust, password, md5 and scram-sha-256"
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
    /// Encryption is demanded.
    #[error(
        "sslmode demands an encrypted connection to {address}, but the load engine does not \
         speak TLS yet; connect by a Unix socket, or set sslmode to prefer or disable"
    )]
    Encryption {
        /// The host and port.
        address: String,
    },
    /// It took too long.
    #[error("{address} did not answer within {timeout_ms} ms")]
    Timeout {
        /// The socket or host and port.
        address: String,
        /// The time it was given.
        timeout_ms: u64,
    },
}
