//! The PostgreSQL driver: protocol 3.0 over Unix sockets and TCP.

mod buffer;
mod captured;
mod connect;
mod connection;
mod endpoint;
mod frame;
mod literal;
mod login;
mod opener;
mod program;
mod reach;
mod request;
mod rows;
mod slot;
pub(crate) mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use endpoint::PostgresEndpoint;
use uncork_model::{DigestMode, LoadPlan, Parameters, PlanError, Prepare};
use uncork_script::{Defaults, Session as ScriptSession, Streams, Value};

use crate::recorder::Shape;
use crate::run::WARM_UP_SEED;
use crate::{Control, Driver, Interrupt, LoadError, Messages, Share};
use connect::{Limits, Target, connect};
use login::Session;
use program::Program;

/// Carries out operations on a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresDriver {
    state: Arc<State>,
}

/// What all connections of a trial share.
#[derive(Debug)]
struct State {
    target: Target,
    program: Program,
    preparations: Vec<(String, Vec<u8>)>,
    prepares_ahead: bool,
    depth: usize,
    digest: DigestMode,
    origin: Instant,
    deadline: Instant,
    interrupt: Interrupt,
    messages: Arc<Messages>,
    streams: Streams,
    /// The random numbers of an open loop's warm-up.
    warm_up_streams: Streams,
    variables: Vec<(String, String)>,
}

impl PostgresDriver {
    /// Compile the scripts of a plan and encode their requests. Opens no connection. The deadline
    /// counts from now.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the plan, or a statement with its parameters, cannot be carried out.
    pub fn new(
        plan: &LoadPlan,
        parameters: &Parameters,
        control: &Control,
    ) -> Result<Self, LoadError> {
        let missing = || PlanError::Invalid("the postgres driver needs a connection".to_owned());
        let connection = plan.connection.clone().ok_or_else(missing)?;
        let program = Program::compile(plan, parameters)?;
        let default_seed = plan
            .variables
            .get("default_seed")
            .and_then(|text| text.parse().ok());
        let clients = plan.most_clients() * plan.pipeline_depth;
        let streams = Streams::new(plan.seed, clients, default_seed);
        let origin = Instant::now();
        let state = State {
            target: Target::new(connection),
            preparations: program.preparations(plan),
            prepares_ahead: plan.prepare == Prepare::Ahead,
            program,
            depth: plan.pipeline_depth,
            digest: plan.digest,
            origin,
            deadline: origin + Duration::from_nanos(plan.deadline_ns),
            interrupt: control.interrupt.clone(),
            messages: Arc::clone(&control.messages),
            warm_up_streams: Streams::new(
                plan.seed ^ WARM_UP_SEED,
                clients,
                Some(streams.default_seed()),
            ),
            streams,
            variables: plan
                .variables
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        };
        Ok(Self {
            state: Arc::new(state),
        })
    }

    /// Check the scripts without connecting to a server.
    ///
    /// # Errors
    ///
    /// The [`LoadError`] that [`Self::new`] would return.
    pub fn check(plan: &LoadPlan, parameters: &Parameters) -> Result<(), LoadError> {
        Program::compile(plan, parameters).map(|_| ())
    }

    /// The scripts and statements to count, by name.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.state.program.shape
    }
}

impl Driver for PostgresDriver {
    type Endpoint = PostgresEndpoint;

    fn open(&self, share: Share, _interrupt: &Interrupt) -> Result<PostgresEndpoint, LoadError> {
        let mut sessions = Vec::with_capacity(share.count());
        for _ in 0..share.count() {
            sessions.push(self.state.connect(&self.state.interrupt)?);
        }
        PostgresEndpoint::new(Arc::clone(&self.state), share, sessions)
    }
}

impl State {
    fn connect(&self, interrupt: &Interrupt) -> Result<Session, LoadError> {
        let limits = Limits {
            trial: self.deadline,
            interrupt,
        };
        connect(&self.target, &self.preparations, limits)
    }

    /// Return the script variables and random numbers of a client, for each operation that it may
    /// have under way at once, in the warm-up of an open loop or in the measured part.
    fn script_sessions(&self, client: usize, warm_up: bool) -> Vec<ScriptSession> {
        let streams = if warm_up {
            &self.warm_up_streams
        } else {
            &self.streams
        };
        let symbols = &self.program.symbols;
        (0..self.depth)
            .map(|local_slot| {
                let stream = streams.client(client * self.depth + local_slot);
                let mut session = ScriptSession::new(symbols, stream.function);
                session.define_defaults(
                    symbols,
                    &Defaults {
                        scale: 1,
                        client_id: i64::try_from(client).unwrap_or(i64::MAX),
                        default_seed: self.streams.default_seed(),
                        random_seed: self.streams.random_seed(),
                    },
                );
                for (name, value) in &self.variables {
                    if let Some(slot) = symbols.lookup(name) {
                        session.set(slot, Value::from_text(value.as_str()));
                    }
                }
                session
            })
            .collect()
    }
}
