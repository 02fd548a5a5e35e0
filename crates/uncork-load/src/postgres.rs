//! The PostgreSQL driver: protocol 3.0 over Unix sockets and TCP.

mod connect;
mod encode;
mod endpoint;
mod frame;
mod literal;
mod stream;

use std::time::{Duration, Instant};

pub use endpoint::PostgresEndpoint;
use uncork_model::{Connection, LoadPlan, Parameters, PlanError};

use crate::{ConnectError, Driver, Interrupt, LoadError};
use connect::{Limits, connect};
use encode::Requests;

/// Carries out operations on a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresDriver {
    connection: Connection,
    requests: Requests,
    digest: uncork_model::DigestMode,
    origin: Instant,
    deadline: Instant,
}

impl PostgresDriver {
    /// Encodes all requests of a plan; connects to nothing. The deadline counts from now.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the plan, or a statement with its parameters, cannot be carried out.
    pub fn new(plan: &LoadPlan, parameters: &Parameters) -> Result<Self, LoadError> {
        let missing = || PlanError::Invalid("the postgres driver needs a connection".to_owned());
        let connection = plan.connection.clone().ok_or_else(missing)?;
        let on_socket = connection.host.starts_with('/');
        if connection.sslmode.demands_encryption() && !on_socket {
            let address = stream::address(&connection);
            return Err(ConnectError::Encryption { address }.into());
        }
        let requests = Requests::encode(plan, parameters)?;
        let origin = Instant::now();
        let deadline = origin + Duration::from_nanos(plan.deadline_ns);
        Ok(Self {
            connection,
            requests,
            digest: plan.digest,
            origin,
            deadline,
        })
    }
}

impl Driver for PostgresDriver {
    type Endpoint = PostgresEndpoint;

    fn open(&self, clients: usize, interrupt: &Interrupt) -> Result<PostgresEndpoint, LoadError> {
        let limits = Limits {
            trial: self.deadline,
            interrupt,
        };
        let mut sessions = Vec::with_capacity(clients);
        for _ in 0..clients {
            sessions.push(connect(&self.connection, &self.requests, limits)?);
        }
        PostgresEndpoint::new(
            sessions,
            self.requests.clone(),
            self.connection.clone(),
            self.digest,
            self.origin,
        )
    }
}
